"""Faults of files: kills while saving, damage, a full or read-only disk, two runs in one place."""

import contextlib
import itertools
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from fault_rows import Row, in_child

from grasp.checkpoints import SavedReplay
from grasp.errors import CorruptCheckpoint, DiskFault
from grasp.replay import Replay
from grasp.runs import Run

CONFIG = {"task": "none", "seed": 0}


def saves(run: Run, count: int, acknowledge: int | None = None, rows: int = 3_000) -> None:
    """Checkpoints as a training run writes them, without what is slow about training."""
    replay = Replay(capacity=rows, lanes=2, observation_size=8, goal_size=2, action_size=3)
    saved = SavedReplay(run, replay)
    weights = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    for lane in (0, 1):
        replay.begin(lane, np.zeros(8), np.zeros(2))
    for step in range(1, count + 1):
        for lane, _ in itertools.product((0, 1), range(40)):
            replay.add(
                lane, action=np.full(3, step), reward=float(step), duration=1, terminated=False,
                observation=np.full(8, step), goal=np.full(2, step),
            )  # fmt: skip
        run.append({"decisions": step, "environment_steps": step})
        loop = {"begun": replay.begun}
        facts = {"segments": saved.save(), "counters": {"decisions": step}, "rows": replay.rows}
        run.save((step, 0), {"agent": {"w": weights + step}, "loop": loop}, facts)
        if acknowledge is not None:
            os.write(acknowledge, step.to_bytes(4, "little"))


def whole(run: Run) -> int:
    """The step of the newest checkpoint, whose content must be that of its step."""
    checkpoint = run.latest()
    if checkpoint is None:
        return 0
    step = checkpoint.facts["step"][0]
    weights = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    assert np.array_equal(checkpoint.parts["agent"]["w"], weights + step)
    return step


def kills_while_saving(place: Path, trials: int, seed: int = 0) -> Row:
    """A process that does nothing but save, killed at random moments."""
    draw = random.Random(seed)
    held = unfinished = 0
    for _ in range(trials):
        shutil.rmtree(place / "saving", ignore_errors=True)
        run = Run(place / "saving")
        run.claim(CONFIG)
        reader, writer = os.pipe()
        child = in_child(lambda run=run, writer=writer: saves(run, 10**6, writer))
        os.close(writer)
        os.read(reader, 4)  # the first checkpoint is there
        time.sleep(draw.uniform(0, 0.06))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        told = os.read(reader, 1 << 20)
        os.close(reader)
        promised = int.from_bytes(told[-4:], "little") if told else 1
        unfinished += any(run.path.rglob(".tmp-*"))
        with contextlib.suppress(CorruptCheckpoint, AssertionError):
            held += whole(run) >= promised
    return Row("kills during saving: the newest promised checkpoint is readable", trials, held,
               "all", f"{unfinished} left a half-written file behind")  # fmt: skip


def damage(place: Path, flips: int, truncations: int, seed: int = 0) -> list[Row]:
    """Every kind of damage to the newest checkpoint: refused, and the one before is used."""
    draw = random.Random(seed)
    run = Run(place / "damaged")
    run.claim(CONFIG)
    saves(run, 8, rows=400)
    newest = run.latest()
    assert newest is not None
    mine = {run._segment(mark) for mark in newest.facts["segments"]}
    files = sorted([*newest.folder.iterdir(), *mine])
    weights = [path.stat().st_size for path in files]

    def answered(path: Path, content: bytes | None) -> bool:
        before = path.read_bytes()
        path.unlink() if content is None else path.write_bytes(content)
        try:
            found = run.latest()
            return found is not None and found.facts["step"][0] == 7 and bool(found.problems)
        finally:
            path.write_bytes(before)

    def flipped(path: Path) -> bytes:
        content = bytearray(path.read_bytes())
        bit = draw.randrange(8 * len(content))
        content[bit // 8] ^= 1 << bit % 8
        return bytes(content)

    def cut(path: Path) -> bytes:
        content = path.read_bytes()
        return content[: draw.randrange(len(content))]

    def chosen() -> Path:  # half by size, half each file alike, so that small ones get their share
        return draw.choices(files, weights)[0] if draw.random() < 0.5 else draw.choice(files)

    flip = sum(answered(path, flipped(path)) for path in (chosen() for _ in range(flips)))
    short = sum(answered(path, cut(path)) for path in (chosen() for _ in range(truncations)))
    gone = sum(answered(path, None) for path in files)
    pairs = [
        (a, b) for a, b in itertools.permutations(files, 2) if a.read_bytes() != b.read_bytes()
    ]
    swap = sum(answered(a, b.read_bytes()) for a, b in pairs)
    answer = "noticed, named, answered with the checkpoint before"
    return [
        Row(f"bit flips: {answer}", flips, flip, "all"),
        Row(f"truncations: {answer}", truncations, short, "all"),
        Row(f"every single deletion: {answer}", len(files), gone, "all"),
        Row(f"every swap of two files: {answer}", len(pairs), swap, "all"),
    ]


@contextlib.contextmanager
def small_disk(place: Path, size: int) -> Iterator[Path]:
    """A disk of that many bytes, in memory; needs the right to mount."""
    place.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def full_disk(place: Path, trials: int, seed: int = 0) -> Row:
    """Saving until the disk is full, at many sizes; then the last good checkpoint is read."""
    draw = random.Random(seed)
    held, steps = 0, []
    for _ in range(trials):
        with small_disk(place / "disk", draw.randrange(250_000, 1_500_000)) as disk:
            run = Run(disk / "run")
            run.claim(CONFIG)
            reader, writer = os.pipe()
            child = in_child(lambda run=run, writer=writer: saves(run, 10**4, writer, rows=10**5))
            os.close(writer)
            told = b""
            while part := os.read(reader, 1 << 16):
                told += part
            os.close(reader)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            promised = int.from_bytes(told[-4:], "little") if told else 0
            with contextlib.suppress(CorruptCheckpoint, AssertionError):
                held += code == DiskFault.exit_code and 0 < promised <= whole(run)
            steps.append(promised)
    note = f"after {min(steps)} to {max(steps)} checkpoints" if steps else ""
    return Row("disk full: exit 74, the last good checkpoint restorable", trials, held, "all", note)


def read_only(place: Path) -> Row:
    """The same for a directory that became read-only."""
    with small_disk(place / "disk", 2**21) as disk:
        run = Run(disk / "run")
        run.claim(CONFIG)
        saves(run, 3)
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        code = os.waitstatus_to_exitcode(os.waitpid(in_child(lambda: saves(run, 4)), 0)[1])
        held = code == DiskFault.exit_code and whole(run) == 3
    return Row(
        "read-only directory: exit 74, the last good checkpoint restorable", 1, int(held), "all"
    )


def two_runs(place: Path, trials: int) -> list[Row]:
    """A second start in a directory that is in use, and one after its owner was killed."""
    path = place / "shared"
    start = [sys.executable, "-m", "grasp", "train", "GA-4", "--task", "collect", "--run", path]
    refused = free = quick = 0
    seconds = []
    for _ in range(trials):
        ready, tell = os.pipe()

        def hold(tell: int = tell) -> None:
            with Run(path).locked():
                os.write(tell, b"1")
                time.sleep(600)

        holder = in_child(hold)
        os.read(ready, 1)
        began, used = time.monotonic(), _processor_seconds()
        second = subprocess.run(start, capture_output=True, text=True, check=False)
        seconds.append(time.monotonic() - began)
        quick += _processor_seconds() - used < 1
        refused += second.returncode == 2 and "another process is running" in second.stderr
        os.kill(holder, signal.SIGKILL)
        os.waitpid(holder, 0)
        os.close(ready)
        os.close(tell)
        with contextlib.suppress(Exception):
            Run(path).refuse_if_locked()
            free += 1
    median, load = sorted(seconds)[trials // 2], os.getloadavg()[0]
    note = (
        f"by the clock {median:.2f} s in the median, {max(seconds):.2f} s at most, load {load:.0f}"
    )
    return [
        Row("two runs in one directory: the second refused", trials, refused, "all"),
        Row(
            "that in under 1 s of processor time, Python's start included",
            trials,
            quick,
            "all",
            note,
        ),
        Row("no lock left after SIGKILL", trials, free, "all"),
    ]


def _processor_seconds() -> float:
    """Of all children so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
