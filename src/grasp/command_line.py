"""How arguments become settings: the flags of `grasp train`, for one run or for a sweep of them.

What can be refused without JAX is refused before it is imported.
"""

import dataclasses
import os
import re
from pathlib import Path
from typing import Annotated, Any

import tyro

from grasp.agents import Preset, agent_named, check_agent
from grasp.environments import PIXELS, check_task, from_pixels, has_options, usual_sight
from grasp.errors import UsageError, all_at_once

MOST_SEEDS = 100  # in one process


def train_flags(arguments: list[str]) -> Any:
    """The flags of `grasp train AGENT ...`: agent, task, schedule, run, label, preset, wandb."""
    name = _agent_first(arguments)
    _check_early(name, arguments)
    prepare_jax("--deterministic" in arguments)
    preset: Preset = "paper" if _flag(arguments, "--preset") == "paper" else "default"
    task = _flagged_task(arguments) or ""
    options, pixels, usual = has_options(task), from_pixels(task), usual_sight(task, preset, name)
    made = agent_named(name, preset, options=options, task=task, images=pixels)

    from grasp.environments.frames import Sight
    from grasp.schedule import Schedule, usual_schedule

    @dataclasses.dataclass(frozen=True)
    class Train:
        """Train an agent, or continue its run: the same command again goes on where it stopped."""

        task: str  # a suite or option task, dmc:DOMAIN-TASK or gym:ID
        pixels: bool = False  # see rendered images of the task; pixels:TASK says the same
        schedule: Annotated[Schedule, tyro.conf.arg(name="")] = usual_schedule(options)
        seeds: str | None = None  # several side by side in one process: 0..4, or 0,3,7
        run: Path | None = None  # run directory; runs/TASK-LABEL-seedN unless given
        label: str = name  # the agent's name in paths and pictures
        preset: Preset = "default"  # what learns best on two cores, or what the paper states
        wandb: bool = False  # log to Weights & Biases as well
        sight: Annotated[Sight, tyro.conf.arg(name="")] = usual
        agent: Annotated[type(made), tyro.conf.arg(name="")] = made  # type: ignore[valid-type]  # known now

    asks_help = arguments[0] in ("-h", "--help")
    flags = parse(Train, f"grasp train {name}", arguments if asks_help else arguments[1:])
    if not re.fullmatch(r"[\w.+-]+", flags.label):
        raise UsageError(
            f"--label is {flags.label!r}; it may hold letters, digits, points and hyphens"
        )
    return dataclasses.replace(flags, task=task or flags.task, pixels=pixels)


def too_short_to_learn(flags: Any) -> str | None:
    """What to say of a run that ends before its agent learns anything."""
    decisions = flags.schedule.steps // flags.sight.action_repeat
    if has_options(flags.task) or decisions > flags.agent.warm_up:
        return None
    return (
        f"nothing will be learned: --steps {flags.schedule.steps:,} are {decisions:,} decisions, "
        f"and learning begins after --warm-up {flags.agent.warm_up:,} of them"
    )


def parse(kind: Any, program: str, arguments: list[str]) -> Any:
    with all_at_once():
        return tyro.cli(kind, prog=program, args=arguments, config=(tyro.conf.AvoidSubcommands,))


def seed_list(text: str) -> list[int]:
    """The seeds of 0..4, of 0,3,7 or of both joined by commas."""
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d{1,18})(?:\.\.(\d{1,18}))?", part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not first <= last < first + MOST_SEEDS:
            raise UsageError(
                f"--seeds is {text!r}; give a range as 0..4 or a list as 0,3,7, "
                f"at most {MOST_SEEDS} of them"
            )
        found += range(first, last + 1)
    if len(found) > MOST_SEEDS or len(set(found)) < len(found):
        raise UsageError(f"--seeds is {text!r}; give each seed once, at most {MOST_SEEDS} of them")
    return found


def _agent_first(arguments: list[str]) -> str:
    if not arguments:
        raise UsageError("no agent given; try grasp train GA-4 --task walker-walk")
    if arguments[0] in ("-h", "--help"):
        return "GA-4"
    check_agent(arguments[0])
    return arguments[0]


def _check_early(name: str, arguments: list[str]) -> None:
    task = _flagged_task(arguments)
    if task is None:
        return
    check_task(task)
    from grasp.runs import Run, default_place

    label, several = _flag(arguments, "--label") or name, _flag(arguments, "--seeds")
    if several is not None and (given := {"--seed", "--run"} & _flags(arguments)):
        raise UsageError(
            f"--seeds and {' or '.join(sorted(given))} do not go together; --label gives the runs "
            "of several seeds another name"
        )
    for seed in seed_list(several) if several is not None else [_flag(arguments, "--seed") or "0"]:
        Run(_flag(arguments, "--run") or default_place(task, label, seed)).refuse_if_locked()


def _flagged_task(arguments: list[str]) -> str | None:
    """The task, with `--pixels` as part of its name."""
    task = _flag(arguments, "--task")
    asked = "--pixels" in arguments and task is not None and not from_pixels(task)
    return f"{PIXELS}{task}" if asked else task


def _flag(arguments: list[str], name: str) -> str | None:
    """The value of a flag, before the real parser sees it."""
    for index, argument in enumerate(arguments):
        if argument == name and index + 1 < len(arguments):
            return arguments[index + 1]
        if argument.startswith(f"{name}="):
            return argument.partition("=")[2]
    return None


def _flags(arguments: list[str]) -> set[str]:
    return {argument.partition("=")[0] for argument in arguments}


def prepare_jax(deterministic: bool = False) -> None:
    """A compilation cache that outlives the process: the second start compiles nothing. One thread
    where the bits must not depend on the number of cores; JAX reads that when it is imported.
    """
    if deterministic:
        os.environ["PJRT_NPROC"] = "1"
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "grasp" / "jax"
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.5")
