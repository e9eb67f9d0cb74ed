"""Ratios that hold on a noisy machine: the things compared take turns, and the median counts.

Each side is a process of its own (`worker.py`) that answers "run, and say how long it took", and is
stopped while others have their turn: PyTorch's OpenMP threads spin while they wait for work, for
good where they are told to wait actively, and would take a core from the other side. Waiting
without spinning (OMP_WAIT_POLICY=passive) costs PyTorch a little on a quiet machine and saves much
on a busy one, so it runs with whichever of the two is faster here.
"""

import dataclasses
import functools
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

THREADS = len(os.sched_getaffinity(0))  # for every side
REST = 0.05  # seconds between turns, in which the threads of the last one fall asleep


@dataclasses.dataclass(frozen=True)
class Timing:
    """Seconds per call in each turn; the median counts, the quartiles say how sure it is."""

    turns: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.turns)

    @property
    def quartiles(self) -> tuple[float, float]:
        low, _, high = statistics.quantiles(self.turns, n=4)
        return low, high

    def times(self, factor: float) -> "Timing":
        return Timing(tuple(factor * seconds for seconds in self.turns))


class Row(NamedTuple):
    """One line of the table; a ratio above 1 always means that ours is better."""

    name: str
    ours: float
    peer: float | None
    unit: str
    ratio: float | None = None
    bar: float | None = None  # what the ratio is asked to reach
    higher_is_better: bool = False  # of ours and peer
    spread: tuple[float, float] | None = None  # quartiles of the ratio over the turns
    memory_mb: int | None = None  # at its peak

    def __str__(self) -> str:
        parts = [f"{self.name}: {self.ours:.4g} {self.unit}"]
        if self.ratio is not None:
            parts.append(f"{self.ratio:.2f}x of {self.peer:.4g}")
        if self.spread is not None:
            parts.append(f"({self.spread[0]:.2f} to {self.spread[1]:.2f})")
        if self.bar is not None:
            parts.append(f"[asked: {self.bar:.2f}]")
        if self.memory_mb is not None:
            parts.append(f"{self.memory_mb} MB")
        return " ".join(parts)


def compared(
    name: str, ours: Timing, peer: Timing, unit: str = "ms", bar: float | None = None
) -> Row:
    """How many times longer the peer takes, turn by turn."""
    ratios = Timing(tuple(b / a for a, b in zip(ours.turns, peer.turns, strict=True)))
    scale = {"s": 1, "ms": 1e3, "us": 1e6}[unit]
    return Row(
        name=name,
        ours=scale * ours.median,
        peer=scale * peer.median,
        unit=unit,
        ratio=ratios.median,
        bar=bar,
        spread=ratios.quartiles,
    )


class Worker:
    """A process that holds contenders and times them on demand."""

    def __init__(self, function: str, arguments: Mapping[str, Any], waiting: str | None = None):
        threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "PJRT_NPROC"), str(THREADS))
        if waiting:
            threads["OMP_WAIT_POLICY"] = waiting
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("worker.py")), function,
             json.dumps(arguments)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | threads,
        )  # fmt: skip
        answer = self._answer()
        self._pause()
        self.names: list[str] = answer.get("names", [])
        self.missing: str | None = answer.get("missing")

    def run(self, name: str) -> dict[str, float]:
        """Seconds per call, the process's peak memory, and what the contender says itself."""
        assert self._process.stdin is not None
        self._process.send_signal(signal.SIGCONT)
        self._process.stdin.write(f"{name}\n")
        self._process.stdin.flush()
        answer = self._answer()
        self._pause()
        return answer

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.send_signal(signal.SIGCONT)
        self._process.stdin.close()
        self._process.wait()

    def _pause(self) -> None:
        """Between its turns a side takes nothing from the others."""
        self._process.send_signal(signal.SIGSTOP)

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"a side of the benchmark ended with {self._process.wait()}")
        return json.loads(line)


def race(
    sides: Sequence[tuple[str, Mapping[str, Any]]], seconds: float, least: int = 5
) -> dict[str, Timing]:
    """The contenders of all sides, which are functions named MODULE.FUNCTION with their arguments,
    in turn until `seconds` have passed and each had `least` turns. A side whose library is not
    installed is left out.
    """
    workers = [Worker(*side, waiting=best_waiting(side[0])) for side in sides]
    for worker in workers:
        if worker.missing:
            print(f"not compared: {worker.missing} is not installed", flush=True)
    try:
        return take_turns(
            {
                name: lambda worker=worker, name=name: worker.run(name)["seconds"]
                for worker in workers
                for name in worker.names
            },
            seconds,
            least,
        )
    finally:
        for worker in workers:
            worker.close()


def best_waiting(function: str) -> str | None:
    """How the OpenMP threads of a side should wait for each other; asked for PyTorch alone."""
    return _faster_waiting() if function.endswith(".pytorch") else None


@functools.cache
def _faster_waiting() -> str:
    workers = {policy: Worker("torch_grasp.trial", {}, policy) for policy in ("passive", "active")}
    if any(worker.missing for worker in workers.values()):
        return "passive"
    timings = take_turns(
        {name: lambda one=one: one.run("trial")["seconds"] for name, one in workers.items()}, 0, 3
    )
    for worker in workers.values():
        worker.close()
    return min(timings, key=lambda name: timings[name].median)


def take_turns(
    contenders: Mapping[str, Callable[[], float]], seconds: float, least: int = 5
) -> dict[str, Timing]:
    """Let each contender say how long it takes, in turn; the first turn does not count."""
    turns: dict[str, list[float]] = {name: [] for name in contenders}
    for run in contenders.values():
        run()
    started = time.perf_counter()
    rounds = 0
    while contenders and (rounds < least or time.perf_counter() - started < seconds):
        for name, run in contenders.items():
            time.sleep(REST)
            turns[name].append(run())
        rounds += 1
    return {name: Timing(tuple(values)) for name, values in turns.items()}
