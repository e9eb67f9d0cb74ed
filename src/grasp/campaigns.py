"""The commands that make and show many runs: grasp sweep, report, export, figure."""

import dataclasses
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import tyro

from grasp.agents import check_agent
from grasp.command_line import parse, prepare_jax, train_flags
from grasp.cores import visible_cores
from grasp.environments import check_task
from grasp.errors import UsageError
from grasp.sweeps import Job, Process, Progress, Start, refuse_strangers, refuse_twins, run_jobs

SET_BY_SWEEP = ("--run", "--task", "--seed", "--label")


@dataclasses.dataclass(frozen=True)
class Where:
    """Where runs are made."""

    on: Literal["processes", "ray"] = "processes"  # of this machine, or Ray tasks
    address: str = "local"  # of a Ray cluster; `auto` finds the one this machine belongs to
    workers: int | None = None  # runs at once; as many as cores unless given
    retries: int = 3  # further starts of a run that failed or was killed
    runs: Path = Path("runs")  # folder of the run directories; for Ray one that all nodes see

    def check(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise UsageError(f"--workers is {self.workers}; it must be at least 1")
        if self.retries < 0:
            raise UsageError(f"--retries is {self.retries}; it must be at least 0")
        if self.on == "processes" and self.address != "local":
            raise UsageError(f"--address is {self.address!r}; it needs --on ray")
        if self.runs.exists() and not self.runs.is_dir():
            raise UsageError(f"--runs is {self.runs}, a file; give a folder")
        if self.on == "ray":
            from grasp.cluster import check_ray

            check_ray()


def sweep(arguments: list[str]) -> int:
    @dataclasses.dataclass(frozen=True)
    class Sweep:
        """Train agents x tasks x seeds x every value of any other flag of `grasp train`.

        The same command again continues what is missing.
        """

        agents: tuple[str, ...]  # as in GA-4 TD3
        tasks: tuple[str, ...]  # as in reacher-easy walker-walk
        seeds: tuple[int, ...] = (0,)  # one run for each
        where: tyro.conf.OmitArgPrefixes[Where] = Where()
        dry_run: bool = False  # say what is done and what is missing, and stop

    own, others = split_flags(arguments, Sweep)
    flags = parse(Sweep, "grasp sweep", own)
    from grasp.sweeps import product

    for agent in flags.agents:
        check_agent(agent)
    for task in flags.tasks:
        check_task(task)
    for name in SET_BY_SWEEP:
        if name in others:
            raise UsageError(f"{name} is set by the sweep for each run; leave it out")
    if not flags.agents or not flags.tasks or not flags.seeds:
        raise UsageError("a sweep needs at least one of --agents, of --tasks and of --seeds")
    flags.where.check()
    jobs = product(flags.agents, flags.tasks, flags.seeds, others, flags.where.runs)
    return run_all(jobs, flags.where, flags.dry_run)


def split_flags(arguments: Sequence[str], kind: type) -> tuple[list[str], dict[str, list[str]]]:
    """The arguments that a command knows, and the other flags with their values."""
    known = {"-h", "--help"} | {
        "--" + field.name.replace("_", "-")
        for holder in (kind, Where)
        for field in dataclasses.fields(holder)
    }
    own: list[str] = []
    others: dict[str, list[str]] = {}
    target: list[str] = own
    for argument in arguments:
        flag, equals, value = argument.partition("=")
        if not argument.startswith("--") or flag in known or flag.replace("--no-", "--") in known:
            if argument.startswith("-") and not argument[1:2].isdigit():
                target = own
            target.append(argument)
        else:
            if flag in others:
                raise UsageError(f"{flag} is given twice; give it once with all its values")
            target = others.setdefault(flag, [])
            if equals:
                target.append(value)
    return own, others


def checked(jobs: Sequence[Job]) -> list[Job]:
    """The jobs with their steps; every command is parsed, so a mistake is refused before any run
    starts.
    """
    from grasp.schedule import Training

    found = []
    for job in jobs:
        flags = train_flags(job.command()[1:])
        described = Training(
            flags.task, flags.label, flags.agent, flags.schedule, flags.sight
        ).described()
        refuse_strangers(job, described)
        found.append(dataclasses.replace(job, steps=flags.schedule.steps))
    refuse_twins(found)
    return found


def run_all(jobs: Sequence[Job], where: Where, dry_run: bool = False) -> int:
    """Run what is missing and show it; the exit code is 1 if a run failed."""
    from grasp.progress import SweepTable
    from grasp.sweeps import finished, free

    prepare_jax()
    jobs = checked(jobs)
    if dry_run:
        done = [job for job in jobs if free(job) and finished(job) is not None]
        for job in jobs:
            print(f"{'done' if job in done else 'missing':<8} {job.run}")
        print(f"{len(done)} of {len(jobs)} runs are done")
        return 0
    start, workers = starter(where)
    with SweepTable() as shown:
        try:
            table = run_jobs(
                jobs, start, workers, where.retries, shown.show, where.runs / "sweep.csv"
            )
        except KeyboardInterrupt:
            print("\nstopped; the same command continues", file=sys.stderr)
            return 130
    return summed_up(table)


def starter(where: Where) -> tuple[Start, int]:
    """How a job is started, and how many at once."""
    if where.on == "ray":
        from grasp.cluster import RayJobs

        cluster = RayJobs(where.address, where.workers)
        return cluster.start, where.workers or cluster.cores
    return Process, where.workers or visible_cores()


def summed_up(table: Iterable[Progress]) -> int:
    rows = list(table)
    failed = [row for row in rows if row.state != "done"]
    for row in failed:
        print(f"failed: {row.job.run} ({row.problem})", file=sys.stderr)
    print(f"{len(rows) - len(failed)} of {len(rows)} runs are done")
    return 1 if failed else 0


def report(arguments: list[str]) -> int:
    @dataclasses.dataclass(frozen=True)
    class Report:
        """Write one page of a set of runs: the paper's claims with what the runs say of them,
        curves, scores, pictures and configurations.
        """

        paths: tyro.conf.Positional[tuple[Path, ...]]  # runs, results, folder of histograms
        to: Path = Path("report.html")  # an .md file gets claims and scores without pictures
        title: str = "GrASP: results of a set of runs"  # of the page

    flags = parse(Report, "grasp report", arguments)
    if not flags.paths:
        raise UsageError("nothing to report; usage: grasp report runs, or grasp report results")
    if flags.to.suffix not in (".html", ".md"):
        raise UsageError(f"--to is {flags.to}; it must end in .html or .md")
    from grasp.report import as_html, as_markdown
    from grasp.results import notes, read_records, read_switching

    records, switching = read_records(flags.paths), read_switching(flags.paths)
    if not records:
        raise UsageError("only histograms were given; give their runs as well")
    command = shlex.join(["grasp", "report", *arguments])
    page = (
        as_markdown(records, flags.title, command, switching)
        if flags.to.suffix == ".md"
        else as_html(records, flags.title, switching)
    )
    flags.to.parent.mkdir(parents=True, exist_ok=True)
    flags.to.write_text(page)
    for sentence in notes(records):
        print(f"note: {sentence}", file=sys.stderr)
    print(f"{flags.to}: {len(records)} runs")
    return 0


def export(arguments: list[str]) -> int:
    @dataclasses.dataclass(frozen=True)
    class Export:
        """Write the evaluations of runs as results/<suite>/<task>/<agent>-seed<k>.csv and .json."""

        runs: tyro.conf.Positional[tuple[Path, ...]]  # run directories
        to: Path = Path("results")  # folder of the result files
        suite: str | None = None  # in place of the tasks' own, as in results/settings
        replace: bool = False  # write over files that a run of another configuration made

    flags = parse(Export, "grasp export", arguments)
    if not flags.runs:
        raise UsageError("no run directory given; usage: grasp export RUN ...")
    from grasp.results import write_results
    from grasp.runs import Run

    runs = [Run.existing(path) for path in flags.runs]
    for sentence in [sentence for run in runs for sentence in run.cut_short()]:
        print(f"note: {sentence}", file=sys.stderr)
    for table in write_results(runs, flags.to, suite=flags.suite, replace=flags.replace):
        print(table)
    return 0


def figure(arguments: list[str]) -> int:
    @dataclasses.dataclass(frozen=True)
    class Figure:
        """Draw the learning curves of results or run directories, and write their numbers."""

        paths: tyro.conf.Positional[tuple[Path, ...]]  # as in results/dm_control, or runs
        to: Path | None = None  # picture file; FOLDER/curves.png unless given
        statistic: Literal["mean", "interquartile"] = "mean"  # or interquartile mean with interval

    flags = parse(Figure, "grasp figure", arguments)
    if not flags.paths:
        raise UsageError("no folder given; usage: grasp figure results/dm_control")
    from grasp.curves import draw_curves
    from grasp.results import by_task, notes, read_records

    records = read_records(flags.paths)
    tasks = by_task(records)
    for sentence in notes(records):
        print(f"note: {sentence}", file=sys.stderr)
    path = flags.to or (flags.paths[0] if flags.paths[0].is_dir() else Path()) / "curves.png"
    success = {record.task for record in records if record.has_success}
    for written in draw_curves(tasks, path, statistic=flags.statistic, success=success):
        print(written)
    return 0
