"""Many runs: agents x tasks x seeds x any flag, each exactly once.

A job is a `grasp train` command and the run directory it fills. Jobs run as processes of this
machine or as Ray tasks (`cluster.py`), with one thread each. All that is known of a job is in its
run directory: a job whose last checkpoint is at its last step is done, any other is started, and
what was begun goes on from its checkpoint. So a sweep that is killed continues with the same
command. Beside the runs lies `sweep.csv`, one row per run.
"""

import csv
import ctypes
import dataclasses
import hashlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from grasp.configurations import differences
from grasp.errors import UsageError
from grasp.files import Facts
from grasp.runs import Checkpoint, Run, default_place

# One thread each: as many runs as cores, none of which waits for another's threads.
ONE_THREAD = {"PJRT_NPROC": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
PATIENCE = 0.5  # seconds between looks
HEADER: tuple[str, ...] = (
    "run", "agent", "task", "seed", "flags", "state", "starts", "environment_steps", "decisions",
    "return", "success", "seconds", "digest",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Job:
    """One run: what `grasp train` is told, and where it writes."""

    agent: str
    task: str
    seed: int
    run: Path
    label: str  # the name in paths and pictures
    flags: tuple[str, ...] = ()  # further ones of `grasp train`
    steps: int = 0  # at which it is done

    def command(self) -> list[str]:
        """The arguments of the command `grasp`."""
        return [
            "train", self.agent, "--task", self.task, "--seed", str(self.seed),
            "--run", str(self.run), "--label", self.label, *self.flags,
        ]  # fmt: skip


class Standing(NamedTuple):
    """How far a run is."""

    environment_steps: int = 0
    decisions: int = 0
    returned: float | int | None = None  # of the last evaluation
    success: float | int | None = None
    seconds: float | int = 0.0
    digest: str = ""  # of the agent's arrays; only where the run is done


@dataclasses.dataclass
class Progress:
    """A job under way; `state` is waiting, running, done or failed."""

    job: Job
    state: str = "waiting"
    starts: int = 0
    problem: str = ""
    standing: Standing = Standing()


@runtime_checkable
class Handle(Protocol):
    """A start of a job: its exit code once it ended, and what it said."""

    def code(self) -> int | None: ...
    def said(self) -> str: ...
    def stop(self) -> None: ...


Start = Callable[[Job], Handle]


def product(
    agents: Sequence[str],
    tasks: Sequence[str],
    seeds: Sequence[int],
    flags: Mapping[str, Sequence[str]],
    runs: Path,
) -> list[Job]:
    """Every combination; a flag that is given several values names its value in the label."""
    jobs = []
    for agent, task, seed in itertools.product(agents, tasks, seeds):
        for values in itertools.product(*(given or ("",) for given in flags.values())):
            label, told = agent, []
            for (flag, given), value in zip(flags.items(), values, strict=True):
                told += [flag, value] if value else [flag]
                if len(given) > 1:
                    label += f"-{flag.removeprefix('--')}-{value}"
            run = default_place(task, label, seed, runs)
            jobs.append(Job(agent, task, seed, run, label, tuple(told)))
    refuse_twins(jobs)
    return jobs


def refuse_twins(jobs: Iterable[Job]) -> None:
    """Two runs with one name would write to one directory."""
    seen: set[Path] = set()
    for job in jobs:
        if job.run in seen:
            raise UsageError(
                f"two runs of this sweep are named {job.run.name}; "
                "name each agent, task, seed and value once"
            )
        seen.add(job.run)


def refuse_strangers(job: Job, described: Facts) -> None:
    """A directory that holds the run of another configuration is left as it is."""
    run = Run(job.run)
    if not run.config_file.exists():
        return
    other = differences(run.config(), json.loads(json.dumps(described)))
    if other:
        raise UsageError(
            f"{run.path} holds a run with the same name and another configuration "
            f"({'; '.join(other)}); give another --runs, or repeat the first command"
        )


def digest(checkpoint: Checkpoint) -> str:
    """SHA-256 of the agent's arrays, by name: two runs that learned the same have the same."""
    content, arrays = hashlib.sha256(), checkpoint.parts["agent"]
    for name in sorted(arrays):
        content.update(name.encode() + arrays[name].tobytes())
    return content.hexdigest()


def standing(job: Job) -> Standing:
    """From the run's metrics: cheap, and possible while it runs."""
    run = Run(job.run)
    rows = run.metrics()
    if not rows:
        return Standing()
    last = max(rows, key=lambda row: row["decisions"])
    evaluations = [row for row in rows if "eval/return" in row]
    return Standing(
        environment_steps=last["environment_steps"],
        decisions=last["decisions"],
        returned=evaluations[-1]["eval/return"] if evaluations else None,
        success=evaluations[-1].get("eval/success") if evaluations else None,
        seconds=last["time/seconds"],
    )


def finished(job: Job) -> Standing | None:
    """The standing of a run whose last checkpoint is at its last step, with its digest."""
    run = Run(job.run)
    if not run.config_file.exists():
        return None
    checkpoint = run.latest()
    if checkpoint is None or checkpoint.facts["counters"]["environment_steps"] < job.steps:
        return None
    return standing(job)._replace(digest=digest(checkpoint))


def free(job: Job) -> bool:
    """Whether no process is in the run directory."""
    if not job.run.exists():
        return True
    try:
        with Run(job.run).locked():
            return True
    except UsageError:
        return False


class Process:
    """A job as a process of this machine, which stops and saves when its parent dies."""

    def __init__(self, job: Job):
        self.log = job.run.with_name(f"{job.run.name}.log")
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, *job.command()],
                stdout=output, stderr=output, stdin=subprocess.DEVNULL,
                env=os.environ | ONE_THREAD, start_new_session=True,
            )  # fmt: skip

    def code(self) -> int | None:
        return self.process.poll()

    def said(self) -> str:
        return last_words(self.log)

    def stop(self) -> None:
        """Ask it to save and stop, and wait until it has."""
        self.process.terminate()
        self.process.wait()


def last_words(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1].removeprefix("grasp: ") if lines else "it said nothing"


_PROGRAM = """
import runpy
from grasp.sweeps import die_with_parent
die_with_parent()
runpy.run_module("grasp", run_name="__main__", alter_sys=True)
"""


def die_with_parent() -> None:
    """In a child: SIGTERM when its parent dies (prctl PR_SET_PDEATHSIG), where Linux has it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def run_jobs(
    jobs: Sequence[Job],
    start: Start,
    workers: int,
    retries: int,
    show: Callable[[list[Progress]], None] = lambda table: None,
    table_file: Path | None = None,
) -> list[Progress]:
    """Run what is missing, at most `workers` at once; a start that was killed, or that failed
    fewer than `retries` times, is followed by another that resumes it.
    """
    table = [Progress(job) for job in jobs]
    handles: dict[int, Handle] = {}
    for row in table:
        done = finished(row.job) if free(row.job) else None
        if done is not None:
            row.state, row.standing = "done", done
    failures = [0] * len(table)
    try:
        while any(row.state in ("waiting", "running") for row in table):
            for index, row in enumerate(table):
                if row.state == "running":
                    row.standing = standing(row.job)
                    code = handles[index].code()
                    if code is not None:
                        _settle(row, code, handles.pop(index).said(), failures, index, retries)
                elif row.state == "waiting" and len(handles) < workers and free(row.job):
                    row.standing = finished(row.job) or row.standing  # by another sweep
                    if row.standing.digest:
                        row.state = "done"
                        continue
                    handles[index] = start(row.job)
                    row.state, row.starts = "running", row.starts + 1
            write_table(table, table_file)
            show(table)
            if handles or any(row.state == "waiting" for row in table):
                time.sleep(PATIENCE)
    finally:
        for handle in handles.values():
            handle.stop()
    write_table(table, table_file)
    show(table)
    return table


REFUSED = (2, 3, 4, 5)  # exit codes that another start would give again


def _settle(
    row: Progress, code: int, said: str, failures: list[int], index: int, retries: int
) -> None:
    """What the end of a start means for its job."""
    done = finished(row.job) if code == 0 else None
    if done is not None:
        row.state, row.standing, row.problem = "done", done, ""
        return
    if not free(row.job):  # another sweep was first: wait for it
        row.state = "waiting"
        return
    failures[index] += 1
    row.problem = f"exit code {code}: {said}"
    row.state = "failed" if code in REFUSED or failures[index] > retries else "waiting"


def write_table(table: Sequence[Progress], path: Path | None) -> None:
    """One row per run, those of other sweeps in the folder kept; whole at any moment."""
    if path is None:
        return
    rows = {row["run"]: row for row in read_table(path)}
    rows |= {row.job.run.name: _cells(row) for row in table}
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".tmp-{path.name}-{os.getpid()}")
    with beside.open("w", newline="") as file:
        writer = csv.DictWriter(file, HEADER)
        writer.writeheader()
        writer.writerows(rows.values())
    beside.replace(path)


def read_table(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _cells(row: Progress) -> dict[str, str]:
    job, now = row.job, row.standing
    values = (
        job.run.name, job.label, job.task, job.seed, " ".join(job.flags), row.state, row.starts,
        now.environment_steps, now.decisions, _rounded(now.returned), _rounded(now.success),
        round(now.seconds, 1), now.digest,
    )  # fmt: skip
    return dict(zip(HEADER, map(str, values), strict=True))


def _rounded(value: float | int | None) -> str:
    return "" if value is None else str(round(value, 4))
