"""Clocks and costs: what time may not change, and what saving may take of it."""

import contextlib
import itertools
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from fault_rows import Row, ending, in_child, train_small
from fault_worlds import loop_on

from grasp.agents.grasp import Grasp
from grasp.environments import make
from grasp.runs import Run

HOUR, DAY = 3_600.0, 86_400.0


def clock_jumps(place: Path, task: str = "collect", agent: str = "drift") -> Row:
    """Killed, its files dated as if the clock had jumped, continued with the clock elsewhere."""
    whole = place / "clock-whole"
    assert os.waitpid(in_child(lambda: train_small(whole, task, agent)), 0)[1] == 0
    expected = ending(whole)
    held = 0
    jumps = (HOUR, -HOUR, DAY, -DAY)
    for number, jump in enumerate(jumps):
        path = place / f"clock-{number}"
        child = in_child(lambda path=path: train_small(path, task, agent))
        while len(list(path.glob("checkpoints/step-*"))) < 2:
            time.sleep(0.002)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        for index, file in enumerate(sorted(path.rglob("*"))):
            moment = time.time() + (jump if index % 2 else -jump)  # neighbours in the wrong order
            os.utime(file, (moment, moment), follow_symlinks=False)

        def elsewhere(path: Path = path, jump: float = jump) -> None:
            right, calls = time.time, itertools.count()
            time.time = lambda: right() + (jump if next(calls) % 2 else 0.0)
            train_small(path, task, agent)

        code = os.waitpid(in_child(elsewhere), 0)[1]
        held += code == 0 and ending(path) == expected
    return Row("clock jumps of an hour and a day, both ways: the digest and log of the "
               "uninterrupted run", len(jumps), held, "all")  # fmt: skip


def same_bits(place: Path, task: str = "cartpole-swingup") -> Row:
    """The agent after one seed, whatever the machine does beside and whatever is looked at."""
    cores = sorted(os.sched_getaffinity(0))
    variants: dict[str, tuple[list[int], int, dict[str, Any]]] = {  # cores, load beside, settings
        "as it is": (cores, 0, {}),
        "one core": (cores[:1], 0, {}),
        "the other core": (cores[-1:], 0, {}),
        "loaded": (cores, 2 * len(cores), {}),
        "no evaluation": (cores, 0, {"evaluate_every": 10**9}),
        "evaluated often": (cores, 0, {"evaluate_every": 60}),
        "saved at every step": (cores, 0, {"save_seconds": 0}),
        "saved at the end only": (cores, 0, {"save_seconds": 10**9}),
        "logged at every step": (cores, 0, {"log_every": 1}),
    }
    agents = {}
    for number, (name, (visible, load, settings)) in enumerate(variants.items()):
        path = place / f"bits-{number}"

        def work(path: Path = path, visible: Any = visible, settings: Any = settings) -> None:
            os.sched_setaffinity(0, visible)
            train_small(path, task, "GA-2", **settings)

        with _busy(load):
            assert os.waitpid(in_child(work), 0)[1] == 0
        checkpoint = Run(path).latest()
        assert checkpoint is not None
        agents[name] = checkpoint.parts["agent"]
    first, *others = agents.values()
    same = sum(all(np.array_equal(first[n], agent[n]) for n in first) for agent in others)
    note = "; ".join(list(variants)[1:])
    return Row("the same seed, the same bits", len(others), same, "all", note)


@contextlib.contextmanager
def _busy(processes: int) -> Iterator[None]:
    spin = [sys.executable, "-c", "while True: pass"]
    children = [subprocess.Popen(spin) for _ in range(processes)]
    try:
        yield
    finally:
        for child in children:
            child.kill()
            child.wait()


def work_lost(place: Path, seconds: int, task: str = "walker-walk") -> Row:
    """How old the newest checkpoint of a usual run is, second by second."""
    path = place / "lost"
    command = [sys.executable, "-m", "grasp", "train", "GA-4", "--task", task, "--run", str(path)]
    oldest = held = 0
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as run:
        while not (path / "metrics.jsonl").exists():
            assert run.poll() is None, "the run ended early"
            time.sleep(0.5)
        newest, since = "", time.monotonic()
        for _ in range(seconds):
            time.sleep(1)
            found = max((p.name for p in path.glob("checkpoints/step-*")), default="")
            if found != newest:
                newest, since = found, time.monotonic()
            age = round(time.monotonic() - since)
            oldest, held = max(oldest, age), held + (age <= 60)
        run.kill()
    return Row(f"work lost if GA-4 on {task} were killed in any second: at most 60 s of it",
               seconds, held, "all", f"{oldest} s at most")  # fmt: skip


def saving_cost(place: Path, saves: int, task: str = "walker-walk") -> Row:
    """Checkpoints with a full replay, against the seconds between them."""
    agent = Grasp(warm_up=10**9)
    with loop_on(place / "saving-cost", task, lambda: make(task), agent) as loop:
        draw = np.random.default_rng(0)
        rings = loop.replay._rings()
        for name in ("observations", "actions", "rewards"):
            rings[name][:] = draw.normal(size=rings[name].shape)
        loop.replay.stand_at(np.array([loop.replay.rows]))
        loop._begin(0)
        began = time.monotonic()
        loop._save()
        first = time.monotonic() - began
        between, took = loop.training.schedule.save_seconds, []
        for _ in range(saves):
            for _ in range(2_000):  # more than a run takes between two saves
                loop.decide(loop.actions())
            began = time.monotonic()
            loop._save()
            took.append(time.monotonic() - began)
    held = sum(seconds <= 0.01 * between for seconds in took)
    size = sum(file.stat().st_size for file in (place / "saving-cost").rglob("*")) / 1e6
    note = (
        f"{statistics.median(took):.2f} s in the median, {max(took):.2f} s at most, "
        f"every {between:.0f} s; the first, of all {loop.replay.rows:,} rows, {first:.1f} s; "
        f"{size:.0f} MB"
    )
    return Row("a checkpoint with a full replay takes at most 1 % of the time between two", saves,
               held, "all", note)  # fmt: skip


def deterministic_cost(place: Path, repeats: int, task: str = "walker-walk") -> Row:
    """Steps per second with `--deterministic`, against without, in turns: no promise, a figure."""
    speeds: dict[bool, list[float]] = {False: [], True: []}
    for repeat, single in itertools.product(range(repeats), speeds):
        path = place / f"deterministic-{single}-{repeat}"
        command = [
            sys.executable, "-m", "grasp", "train", "GA-4", "--task", task, "--run", str(path),
            "--steps", "6000", "--evaluate-every", "6000", "--evaluation-episodes", "1",
            "--log-every", "1000", *(["--deterministic"] if single else []),
        ]  # fmt: skip
        environment = {k: v for k, v in os.environ.items() if k != "PJRT_NPROC"}
        subprocess.run(command, check=True, capture_output=True, env=environment)
        rows = [row for row in Run(path).metrics() if row["updates"]]
        steps = rows[-2]["environment_steps"] - rows[0]["environment_steps"]
        speeds[single].append(steps / (rows[-2]["time/seconds"] - rows[0]["time/seconds"]))
    plain, single = (statistics.median(speeds[key]) for key in (False, True))
    note = f"{single:.0f} against {plain:.0f} steps per second: {single / plain:.2f} of the speed"
    return Row(f"--deterministic on {task}: what it costs", repeats, repeats, "a figure", note)
