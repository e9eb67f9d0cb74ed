"""The commands that look for damage: grasp check, grasp check-env."""

import dataclasses
import itertools
import json
from pathlib import Path
from typing import NamedTuple

import tyro

from grasp.command_line import parse
from grasp.errors import CorruptCheckpoint, EnvironmentFault, UsageError
from grasp.runs import Run


class RunFinding(NamedTuple):
    problems: list[str]
    checkpoints: dict[str, str]  # digest of every checkpoint that is whole
    environments: str  # how the newest would put its environments back


RESUME = {
    "state": "a resumed run is exact: the environment gives and takes its state",
    "actions": "a resumed run is exact: the episode is lived again from its seed and actions",
    "episode": "a resumed run is not exact: it begins a new episode",
}


def check_run(run: Run) -> RunFinding:
    """Read every file of a run directory and compare it with what was written."""
    from grasp.checkpoints import digest

    problems, digests, newest, logged = [], {}, None, None
    for folder in run.folders():
        try:
            checkpoint = run.read(folder)
            logged = checkpoint.facts.get("metrics", logged)
            if "loop" in checkpoint.parts:
                digests[folder.name], newest = digest(checkpoint, run), checkpoint
        except CorruptCheckpoint as problem:
            problems.append(str(problem))
        except (KeyError, ValueError, IndexError, TypeError) as problem:
            problems.append(f"{folder} holds no whole checkpoint: {problem!r}")
    if (newest or logged) and not run.metrics_are(logged):
        problems.append(f"{run.metrics_file} is not what was written")
    rows = run.metrics()
    steps = [row["environment_steps"] for row in rows if "environment_steps" in row]
    if len(steps) != len(rows) or any(a >= b for a, b in itertools.pairwise(steps)):
        problems.append(f"{run.metrics_file} has steps that do not increase")
    return RunFinding(problems, digests, _environments(newest.parts["loop"] if newest else {}))


def _environments(loop: dict) -> str:
    kinds = {name.split("/")[2] for name in loop if name.startswith("world/")}
    return "state" if "state" in kinds else "actions" if "actions" in kinds else "episode"


def check(arguments: list[str]) -> int:
    @dataclasses.dataclass(frozen=True)
    class Check:
        """Verify a run directory: every file against its SHA-256, the log, the digest of each
        checkpoint.
        """

        run: tyro.conf.Positional[Path]  # run directory, or a released agent
        json: bool = False  # print one JSON object instead of text

    flags = parse(Check, "grasp check", arguments)
    run = Run.existing(flags.run)
    run.config()
    found = check_run(run)
    if flags.json:
        print(json.dumps(found._asdict()))
    else:
        for name, value in found.checkpoints.items():
            print(f"{name}: whole, digest {value}")
        if found.checkpoints:
            print(RESUME[found.environments])
    if found.problems:
        raise CorruptCheckpoint(f"{len(found.problems)} damaged: {'; '.join(found.problems)}")
    if not found.checkpoints and not flags.json:
        there = (
            "an agent that can act but not be trained on" if run.folders() else "no checkpoint yet"
        )
        print(f"{run.path} has {there}; nothing is damaged")
    return 0


def check_env(arguments: list[str]) -> int:
    @dataclasses.dataclass(frozen=True)
    class CheckEnv:
        """Run an environment with random actions, say what is wrong with it and whether a run on
        it can be continued exactly.
        """

        task: tyro.conf.Positional[str]  # a task, dmc:DOMAIN-TASK, gym:ID or a Gymnasium ID
        steps: int = 1_000  # decisions at each seed
        seeds: tuple[int, ...] = (0, 1)  # of the resets
        json: bool = False  # print one JSON object instead of text

    flags = parse(CheckEnv, "grasp check-env", arguments)
    if flags.steps < 10 or not flags.seeds or min(flags.seeds) < 0:
        raise UsageError(
            f"--steps is {flags.steps} and --seeds {flags.seeds}; "
            "give at least 10 steps, and seeds of 0 or more"
        )
    name = _task(flags.task)
    from grasp.environments import make
    from grasp.environments.boundary import Boundary
    from grasp.environments.check import check_environment

    found = check_environment(lambda: Boundary(make(name), name), flags.steps, flags.seeds)
    if flags.json:
        print(json.dumps(found._asdict() | {"resume": RESUME[found.tier]}))
    else:
        print(f"{name}: {found.decisions:,} decisions in {found.episodes:,} episodes")
        print(RESUME[found.tier])
    if found.problems:
        raise EnvironmentFault("; ".join(found.problems))
    if not flags.json:
        print("nothing wrong was found")
    return 0


def _task(name: str) -> str:
    """The task of a name, which may be a plain Gymnasium ID."""
    from grasp.environments import check_task

    try:
        check_task(name)
    except UsageError:
        import gymnasium

        if name not in gymnasium.registry:
            raise
        return f"gym:{name}"
    return name
