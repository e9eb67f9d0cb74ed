"""SIGKILL at random moments, then resume: the end must be that of the run nobody killed."""

import os
import random
import shutil
import signal
import time
from pathlib import Path

from fault_rows import Row, ending, in_child, train_small

from grasp.runs import Run


def kill_and_resume(
    place: Path, task: str, trials: int, agent: str = "drift", seed: int = 0
) -> list[Row]:
    """Digest and log of runs that were killed once, against the run that was not."""
    draw = random.Random(seed)
    seconds = 0.0
    for number in (1, 2):  # the first also compiles, so the second says how long a run takes
        whole = place / f"{agent}-{task}-whole-{number}"
        began = time.monotonic()
        assert os.waitpid(in_child(lambda whole=whole: train_small(whole, task, agent)), 0)[1] == 0
        seconds = time.monotonic() - began
    expected, log = ending(whole)
    assert (expected, log) == ending(place / f"{agent}-{task}-whole-1"), (
        "the task is not deterministic"
    )
    last = log[-1]["decisions"]
    held = logs = tried = 0
    fell: list[int] = []  # decisions of the last checkpoint when the kill came
    parts = draw.sample(range(trials), trials)  # of the run, one for each kill
    while tried < trials:
        path = place / f"{agent}-{task}-killed"
        shutil.rmtree(path, ignore_errors=True)
        child = in_child(lambda path=path: train_small(path, task, agent))
        if tried % 5:  # four of five kills come after a checkpoint in their part, one at any moment
            aim, moment = last * (parts[tried] + draw.random()) / trials, draw.uniform(0, 0.1)
        else:
            aim, moment = -1, draw.uniform(0, seconds)
        while _newest(path) < aim and not _ended(child):
            time.sleep(0.002)
        began = time.monotonic()
        while (passed := time.monotonic() - began) < moment and not _ended(child):
            time.sleep(0.002)
        if passed < moment:
            os.waitpid(child, 0)
            continue  # it was through already
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        tried += 1
        before = Run(path).latest() if (path / "config.json").exists() else None
        fell.append(before.facts["counters"]["decisions"] if before else 0)
        code = os.waitpid(in_child(lambda path=path: train_small(path, task, agent)), 0)[1]
        if code == 0:
            digest, rows = ending(path)
            held += digest == expected
            logs += rows == log
    quarters = [0, 0, 0, 0]
    for at in fell:
        quarters[min(4 * at // max(last, 1), 3)] += 1
    after = sum(at > 0 for at in fell)
    assert trials < 10 or (min(quarters) and after > trials / 2), (
        f"kills do not fall across the run: {quarters} by quarters, {after} after a checkpoint"
    )
    note = f"{after} after a checkpoint; by quarters of the run {quarters}"
    ends = f"SIGKILL of {agent} on {task}, then resume: the digest of the uninterrupted run"
    same = f"metrics.jsonl of {agent} on {task} after kills equals the uninterrupted but for time"
    return [Row(ends, tried, held, "all", note), Row(same, tried, logs, "all")]


def _newest(path: Path) -> int:
    """Decisions of the newest checkpoint, whole or not; -1 before the first."""
    found = (int(place.name.split("-")[1]) for place in path.glob("checkpoints/step-*"))
    return max(found, default=-1)


def _ended(child: int) -> bool:
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def signals(place: Path, task: str, trials: int, seed: int = 1) -> Row:
    """SIGTERM and SIGINT at random moments: saved and gone within 5 s, with 143 and 130."""
    import subprocess
    import sys

    draw = random.Random(seed)
    held, slowest = 0, 0.0
    for trial in range(trials):
        path = place / f"signal-{trial}"
        command = [
            sys.executable, "-m", "grasp", "train", "GA-2", "--task", task, "--run", str(path),
            "--width", "8", "--batch", "8", "--warm-up", "50", "--evaluate-every", "200",
            "--evaluation-episodes", "1", "--steps", "1000000", "--save-seconds", "1",
        ]  # fmt: skip
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            while not list((path / "checkpoints").glob("step-*")):
                assert process.poll() is None, process.stderr and process.stderr.read()
                time.sleep(0.05)
            time.sleep(draw.uniform(0, 5))
            number = signal.SIGTERM if trial % 2 else signal.SIGINT
            began = time.monotonic()
            process.send_signal(number)
            errors = process.communicate()[1]
            seconds = time.monotonic() - began
        slowest = max(slowest, seconds)
        whole = Run(path).latest() is not None
        held += (
            process.returncode == 128 + number
            and seconds < 5
            and whole
            and "Traceback" not in errors
        )
        shutil.rmtree(path)
    return Row("SIGTERM, SIGINT: saved, exit 143 or 130, within 5 s", trials, held, "all",
               f"slowest {slowest:.1f} s")  # fmt: skip
