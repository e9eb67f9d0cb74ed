"""Each figure of the paper as data: which agents on which tasks, with which seeds, for how long.

    paper   the paper's own form: its preset, its steps, its seeds
    small   the same figure with the default preset, fewer steps and seeds: two cores, hours

Runs that two figures have in common lie in one directory and are made once. Importing this needs
no JAX.
"""

import dataclasses
import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from grasp.environments import (
    PIXEL_TASKS,
    SUITE,
    check_task,
    from_pixels,
    has_options,
    usual_repeat,
)
from grasp.errors import UsageError
from grasp.runs import default_place
from grasp.sweeps import Job

Scale = Literal["small", "paper"]
Picture = Literal["curves", "values", "strip", "histograms", "options"]
PRESETS: dict[Scale, str] = {"small": "default", "paper": "paper"}

RATES = ("1e-4", "3e-4", "5e-4", "7e-4", "1e-3", "3e-3")  # the paper tuned over these
HIERARCHICAL = ("collect", "point-mass", "ant-gather")
SOFT = ("--target-period", "1", "--target-rate", "0.01")
HARD = ("--target-period", "1000", "--target-rate", "1")
SETTINGS = {  # of the default preset, each changed alone
    "plain-layers": ("--no-normalise-layers",),
    "every-step": (  # as many updates per step
        "--action-repeat", "1", "--decisions-per-update", "2", "--noise-decisions", "50000",
        "--warm-up", "2000",
    ),
    "three-step-returns": (
        "--window", "3", "--trace", "1", "--unroll", "1", "--roots-per-window", "1",
    ),
    "even-rates": ("--learning-rate-end", "1"),
    "temperature-0.5": ("--planner.temperature", "0.5"),
    "no-consistency": ("--consistency", "0"),
    "two-values": ("--num-values", "2"),
    "even-losses": ("--consistency", "1", "--value-weight", "1"),
    "no-offset": ("--centring", "0"),
    "heads-every-update": ("--affordance-period", "1", "--affordance-learning-rate", "6e-4"),
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Variant:
    """An agent as one figure wants it; `label` names it in paths and legends."""

    agent: str
    flags: tuple[str, ...] = ()
    label: str = ""

    @property
    def name(self) -> str:
        return self.label or self.agent

    @property
    def slow(self) -> bool:
        """Whether a run takes hours on one core where others take minutes."""
        return self.agent.startswith("UCT-")


@dataclasses.dataclass(frozen=True)
class Experiment:
    """One figure."""

    title: str
    place: str  # in the paper
    variants: tuple[Variant, ...]
    tasks: tuple[str, ...]
    picture: Picture = "curves"
    paper_seeds: int = 5
    small_seeds: int = 3


def _agents(*names: str) -> tuple[Variant, ...]:
    return tuple(Variant(name) for name in names)


def _rates(agent: str, flag: str) -> tuple[Variant, ...]:
    return tuple(Variant(agent, (f"--{flag}", rate), f"{agent}-{flag}-{rate}") for rate in RATES)


EXPERIMENTS: dict[str, Experiment] = {
    "hierarchical": Experiment(
        "TD3, GA-1, GA-4 and A-8 on the option tasks", "Section 3.1, curves",
        _agents("TD3", "GA-1", "GA-4", "A-8"), HIERARCHICAL,
    ),
    "hierarchical-all": Experiment(
        "all variants on the option tasks", "Appendix, complete learning curves",
        _agents("TD3", "GA-1", "GA-2", "GA-4", "GA-8", "A-4", "A-8"), HIERARCHICAL, small_seeds=1,
    ),
    "collect-pictures": Experiment(
        "where the options of SA-3's and GA-3's heads lead on Collect",
        "Section 3.1, pictures; Appendix, additional visualization",
        _agents("SA-3", "GA-3"), ("collect",), "options", paper_seeds=1, small_seeds=1,
    ),
    "dm-control": Experiment(
        "TD3, GA-1, GA-4, A-8 and UCT-50 on nine suite tasks", "Section 3.2, curves",
        _agents("TD3", "GA-1", "GA-4", "A-8", "UCT-50"), SUITE, small_seeds=1,
    ),
    "dm-control-all": Experiment(
        "all variants on nine suite tasks", "Appendix, complete learning curves",
        _agents("TD3", "GA-1", "GA-2", "GA-4", "GA-8", "A-4", "A-8", "UCT-20", "UCT-50"), SUITE,
        small_seeds=1,
    ),
    "switching-strip": Experiment(
        "which head GA-4 picks over part of an episode", "Section 3.2, switching",
        _agents("GA-4"), ("fish-swim",), "strip", paper_seeds=1, small_seeds=1,
    ),
    "switching-histograms": Experiment(
        "return of planning minus return of each head alone, same starts and goals",
        "Section 3.2, histograms; Appendix, switching between affordance mappings",
        _agents("GA-4"), SUITE, "histograms", paper_seeds=1, small_seeds=1,
    ),
    "depth": Experiment(
        "GA-4 with planning depths 1, 2 and 3", "Appendix, planning depths",
        tuple(
            Variant("GA-4", ("--planner.depth", d, "--window", "3"), f"GA-4-depth-{d}")
            for d in "123"
        ),
        ("fish-swim",),
    ),
    "random-affordances": Experiment(
        "learned against random affordances", "Appendix, randomly initialized affordances",
        _agents("GA-4", "A-8", "TD3", "RND-GA-4", "RND-A-8"), ("fish-swim",),
    ),
    "pixels": Experiment(
        "GA-4 from images against Dreamer", "Appendix, comparison with model-based RL",
        _agents("GA-4"), PIXEL_TASKS, paper_seeds=3, small_seeds=1,
    ),
    "learning-rates": Experiment(
        "learning rates of GA-4's affordances, TD3's actor and critic",
        "Appendix, hyperparameters",
        _rates("GA-4", "affordance-learning-rate") + _rates("TD3", "actor-learning-rate")
        + _rates("TD3", "critic-learning-rate"),
        ("point_mass-easy",), "values", small_seeds=1,
    ),
    "targets": Experiment(
        "hard copies of the target parameters against soft updates", "Appendix, hyperparameters",
        (Variant("GA-4", HARD, "GA-4-hard-targets"), Variant("GA-4", SOFT, "GA-4-soft-targets")),
        ("point_mass-easy",),
    ),
    "settings": Experiment(
        "GA-4 with one setting of the default preset changed at a time", "ours",
        (
            Variant("GA-4"),
            *(Variant("GA-4", flags, f"GA-4-{name}") for name, flags in SETTINGS.items()),
        ),
        ("walker-walk", "cheetah-run"), small_seeds=2,
    ),
}  # fmt: skip

# Environment steps. Where decisions are options they last long, and a step costs little.
STEPS: dict[str, dict[str, int]] = {
    "small": {"suite": 50_000, "pixels": 100_000, "collect": 1_200_000, "point-mass": 6_000_000,
              "ant-gather": 1_600_000},
    "paper": {"suite": 1_000_000, "pixels": 1_000_000} | dict.fromkeys(HIERARCHICAL, 500_000),
}  # fmt: skip


def named(name: str) -> Experiment:
    if name in EXPERIMENTS:
        return EXPERIMENTS[name]
    near = difflib.get_close_matches(name, EXPERIMENTS, n=1, cutoff=0.3)
    hint = f"did you mean {near[0]}? " if near else ""
    raise UsageError(f"no figure {name!r}; {hint}figures: {', '.join(EXPERIMENTS)}")


def steps_of(task: str, scale: Scale) -> int:
    kind = "pixels" if from_pixels(task) else task
    return STEPS[scale].get(kind, STEPS[scale]["suite"])


def jobs_of(
    experiment: Experiment,
    scale: Scale,
    runs: Path,
    *,
    agents: Sequence[str] = (),
    seeds: Sequence[int] = (),
    tasks: Sequence[str] = (),
    steps: int | None = None,
    flags: tuple[str, ...] = (),
) -> list[Job]:
    """The runs of a figure at a scale; some of its agents, and any seeds, tasks, steps and further
    flags in place of the figure's own where given.
    """
    count = experiment.paper_seeds if scale == "paper" else experiment.small_seeds
    names = [variant.name for variant in experiment.variants]
    for stranger in sorted(set(agents) - set(names)):
        raise UsageError(f"{stranger!r} is no agent of this figure; it has {', '.join(names)}")
    for task in tasks:
        check_task(task)
    usual = [v.name for v in experiment.variants if scale == "paper" or not v.slow]
    preset = ("--preset", "paper") if scale == "paper" else ()
    return [
        Job(
            agent=variant.agent,
            task=task,
            seed=seed,
            run=default_place(task, variant.name, seed, runs),
            label=variant.name,
            flags=(
                *preset,
                *("--steps", str(steps or steps_of(task, scale))),
                *variant.flags,
                *flags,
            ),
            steps=steps or steps_of(task, scale),
        )
        for task in (tasks or experiment.tasks)
        for variant in experiment.variants
        if variant.name in (agents or usual)
        for seed in (seeds or range(count))
    ]


# Seconds of one core per 1,000 decisions of a suite task, learning included. Default preset: GA-1,
# GA-4 and A-8 as their runs in results/dm_control took (GA-2, GA-8 and A-4 by their ratio to GA-4);
# the others, and those of option tasks, measured with the default before choice 37 (UCT-20 and
# other depths by the nodes they expand; from pixels GA-4 on walker-walk). Paper's preset: TD3 and
# GA-1 measured, the others by counting multiplications at 20 a nanosecond, because one of their
# updates takes seconds on one core.
SECONDS: dict[str, dict[str, float]] = {
    "small": {"TD3": 2.3, "GA-1": 3.5, "GA-2": 4, "GA-4": 5, "GA-8": 6.5, "A-4": 4.5, "A-8": 6.5,
              "options:TD3": 22, "options:GA-1": 12, "options:GA-2": 13, "options:GA-4": 17,
              "options:GA-8": 18, "options:A-4": 13, "options:A-8": 22, "SA-3": 85, "UCT-20": 72,
              "UCT-50": 181, "GA-4-depth-2": 60, "GA-4-depth-3": 250, "pixels": 42},
    "paper": {"TD3": 22, "GA-1": 230, "GA-2": 800, "GA-4": 2_700, "GA-8": 9_700, "A-4": 2_700,
              "A-8": 9_700, "SA-3": 5_300, "UCT-20": 8_000, "UCT-50": 20_000,
              "GA-4-depth-1": 700, "GA-4-depth-3": 11_000},
}  # fmt: skip
DECISION = {"collect": 3.7, "point-mass": 87, "ant-gather": 87}  # steps of an option, about
UPDATES = 4  # decisions per update on option tasks with the default preset


def estimated_hours(job: Job, scale: Scale) -> float:
    """Of one core, for a whole run."""
    known = SECONDS[scale]
    usual = known.get(job.agent.removeprefix("RND-"), known["GA-4"])
    if has_options(job.task):  # wider networks there (choice 17)
        usual = known.get(f"options:{job.agent}", usual)
    each = usual if job.label == job.agent else known.get(job.label, usual)
    lasts = DECISION.get(job.task) or usual_repeat(job.task, PRESETS[scale], job.agent)
    decisions = job.steps / lasts
    if has_options(job.task) and scale == "small":
        each /= UPDATES
    if from_pixels(job.task):
        each = known.get("pixels", each)
    return decisions / 1000 * each / 3600
