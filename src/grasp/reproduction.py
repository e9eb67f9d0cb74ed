"""`grasp reproduce FIGURE`: what is done, what is missing, make it, draw it."""

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path

import tyro

from grasp.campaigns import Where, run_all, split_flags
from grasp.command_line import parse
from grasp.curves import draw_curves, draw_values
from grasp.errors import UsageError
from grasp.experiments import (
    EXPERIMENTS,
    Experiment,
    Scale,
    estimated_hours,
    jobs_of,
    named,
)
from grasp.sweeps import Job, finished, free

CONFIGURATIONS = {"small": 100, "paper": 1_000}  # of the histograms


def reproduce(arguments: list[str]) -> int:
    @dataclasses.dataclass(frozen=True)
    class Reproduce:
        """Make the missing runs of a figure of the paper and draw it; the same command continues.

        Further flags of `grasp train` are passed on to every run.
        """

        name: tyro.conf.Positional[str] = ""  # of a figure; --list shows them
        scale: Scale = "small"  # the form for two cores, or the paper's own
        list: bool = False  # print all figures with what they cost
        dry_run: bool = False  # say what is done and what is missing, and stop
        agents: tuple[str, ...] = ()  # only these lines of the figure, UCT ones included
        tasks: tuple[str, ...] = ()  # in place of the figure's; any task of `grasp train`
        seeds: tuple[int, ...] = ()  # these seeds in place of the figure's
        steps: int | None = None  # in place of the figure's
        configurations: int | None = None  # of the histograms; 100 or, as in the paper, 1,000
        figures: Path = Path("figures")  # folder of the pictures
        where: tyro.conf.OmitArgPrefixes[Where] = Where()

    own, others = split_flags(arguments, Reproduce)
    flags = parse(Reproduce, "grasp reproduce", own)
    if flags.list or not flags.name:
        print(listed())
        return 0 if flags.list else 2
    experiment = named(flags.name)
    for flag in ("steps", "configurations"):
        given = getattr(flags, flag)
        if given is not None and given < 1:
            raise UsageError(f"--{flag} is {given}; it must be at least 1")
    flags.where.check()
    where = flags.where
    if where.runs == Path("runs"):  # each scale has its own, and all figures of a scale share it
        where = dataclasses.replace(where, runs=where.runs / flags.scale)
    further = tuple(part for flag, values in others.items() for part in (flag, *values))
    jobs = jobs_of(
        experiment, flags.scale, where.runs, agents=flags.agents, seeds=flags.seeds,
        tasks=flags.tasks, steps=flags.steps, flags=further,
    )  # fmt: skip
    for sentence in differences(experiment, flags.scale, flags.agents, flags.tasks):
        print(sentence, file=sys.stderr)
    print(stated(flags.name, flags.scale, jobs))
    code = run_all(jobs, where, flags.dry_run)
    if code or flags.dry_run:
        return code
    count = flags.configurations or CONFIGURATIONS[flags.scale]
    for path in draw(experiment, jobs, flags.figures / f"{flags.name}-{flags.scale}.png", count):
        print(path)
    return 0


def differences(
    experiment: Experiment, scale: Scale, agents: Sequence[str], tasks: Sequence[str]
) -> list[str]:
    """One sentence for each thing that the paper's figure has and this one has not, or the other
    way round.
    """
    sentences = []
    strange = [task for task in tasks if task not in experiment.tasks]
    if strange:
        sentences.append(
            f"not in the paper's figure, which is on {', '.join(experiment.tasks)}: "
            f"{', '.join(strange)}"
        )
    slow = [v.name for v in experiment.variants if v.slow]
    if slow and scale == "small" and not agents:
        sentences.append(
            f"left out at this scale, because a run takes hours: {', '.join(slow)}; "
            f"--agents {' '.join(slow)} makes them"
        )
    return sentences


def stated(name: str, scale: Scale, jobs: Sequence[Job]) -> str:
    """What is done, what is missing, and about what that costs."""
    missing = [job for job in jobs if not (free(job) and finished(job))]
    hours = sum(estimated_hours(job, scale) for job in missing)
    return (
        f"{name}, {scale}: {len(jobs) - len(missing)} of {len(jobs)} runs are done; "
        f"the {len(missing)} missing take about {hours:.3g} core hours"
    )


def listed() -> str:
    """The table of figures."""
    lines = [f"{'figure':<21} {'runs, core hours':<37} content"]
    lines.append(f"{'':<21} {'small':<18} {'paper':<18}")
    for name, experiment in EXPERIMENTS.items():
        cells = []
        for scale in ("small", "paper"):
            jobs = jobs_of(experiment, scale, Path("runs") / scale)
            hours = sum(estimated_hours(job, scale) for job in jobs)
            cells.append(f"{len(jobs)}, {_hours(hours)}")
        lines.append(f"{name:<21} {cells[0]:<18} {cells[1]:<18} {experiment.title}")
    lines.append("")
    lines.append(
        "Core hours are rough estimates; figures share runs. `grasp reproduce FIGURE --dry-run`"
    )
    lines.append("says which runs are done. UCT is left out of the small form unless asked for.")
    return "\n".join(lines)


def _hours(hours: float) -> str:
    return f"{hours:.1f} h" if hours < 10 else f"{hours:,.0f} h"


def draw(
    experiment: Experiment, jobs: Sequence[Job], path: Path, configurations: int
) -> list[Path]:
    """The picture of a figure from its finished runs."""
    if experiment.picture in ("curves", "values"):
        return _draw_lines(experiment, jobs, path)
    from grasp.session import load
    from grasp.switching import draw_histograms, draw_strip, heads_of, switching

    if experiment.picture == "options":
        written = []
        for job in jobs:
            picture = path.with_name(f"{path.stem}-{job.label}-seed{job.seed}.png")
            picture.parent.mkdir(parents=True, exist_ok=True)
            load(job.run).draw(picture)
            written.append(picture)
        return written
    if experiment.picture == "strip":
        agents = {f"{job.label} on {job.task}, seed {job.seed}": load(job.run) for job in jobs}
        rows = {
            f"{name}, episode {index}": episode.heads
            for name, agent in agents.items()
            for index, episode in enumerate(agent.evaluate(2))
        }
        return draw_strip(rows, max(map(heads_of, agents.values())), path)
    found, written = {}, []
    for job in jobs:
        print(f"playing {configurations} starts on {job.task} K + 1 times", file=sys.stderr)
        found[job.task] = switching(load(job.run), configurations)
        written = draw_histograms(found, path)  # what is there so far, should it be stopped
    return written


def _draw_lines(experiment: Experiment, jobs: Sequence[Job], path: Path) -> list[Path]:
    from grasp.results import by_task, notes, read_records

    records = read_records([job.run for job in jobs])
    for sentence in notes(records):
        print(f"note: {sentence}", file=sys.stderr)
    found = by_task(records)
    order = [job.task for job in jobs]
    tasks = {task: found[task] for task in sorted(found, key=order.index)}
    if experiment.picture == "values":
        return draw_values(tasks, path, title=experiment.title)
    success = {record.task for record in records if record.has_success}
    names = [variant.name for variant in experiment.variants]
    mean = draw_curves(tasks, path, success=success, order=names, title=experiment.title)
    robust = path.with_name(f"{path.stem}-interquartile.png")
    return mean + draw_curves(
        tasks, robust, statistic="interquartile", success=success, order=names,
        title=experiment.title,
    )  # fmt: skip
