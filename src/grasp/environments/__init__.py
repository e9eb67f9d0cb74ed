"""Tasks by name: the paper's nine suite tasks, any other suite task, any Gymnasium task.

Importing this names the tasks; physics is imported only when one is made.
"""

import difflib
import os
import sys
from typing import Any

from grasp.errors import UsageError

SUITE = (
    "reacher-easy",
    "cartpole-swingup",
    "point_mass-easy",
    "ball_in_cup-catch",
    "fish-swim",
    "fish-upright",
    "cheetah-run",
    "finger-spin",
    "walker-walk",
)
OPTION_TASKS = ("collect", "point-mass", "ant-gather")
TASKS: dict[str, str] = {name: f"dmc:{name}" for name in SUITE} | {
    name: f"options:{name}" for name in OPTION_TASKS
}


def check_task(name: str) -> None:
    """Refuse a task that cannot exist, without importing any simulator."""
    known = TASKS.get(name, name)
    prefix, _, rest = known.partition(":")
    if known in TASKS.values() or (prefix == "dmc" and "-" in rest) or (prefix == "gym" and rest):
        return
    near = difflib.get_close_matches(name, TASKS, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]}? " if near else ""
    raise UsageError(
        f"unknown task {name!r}; {hint}tasks: {', '.join(TASKS)}, dmc:DOMAIN-TASK or gym:ID"
    )


def make(name: str, discount: float = 0.99, **options: Any):
    """The Gymnasium environment of a task; `discount` is that of rewards inside an option."""
    check_task(name)
    prefix, _, rest = TASKS.get(name, name).partition(":")
    if prefix == "options":
        return _make_options(rest, discount, **options)
    return _make_suite(rest, **options) if prefix == "dmc" else _make_gymnasium(rest, **options)


def has_options(name: str) -> bool:
    return TASKS.get(name, name).startswith("options:")


def suite_of(name: str) -> str:
    """The folder of `results/` that a task belongs to."""
    folders = {"dmc": "dm_control", "gym": "gymnasium", "options": "hierarchical"}
    return folders.get(TASKS.get(name, name).partition(":")[0], "own")


def primitive(name: str, **options: Any):
    """The primitive environment of an option task, and its option space to be pretrained."""
    if name == "collect":
        from grasp.environments.collect import Collect, GoAndCollect

        return Collect(**options), GoAndCollect()
    if name == "ant-gather":
        from grasp.environments.ant_gather import AntGather, WalkThere

        return AntGather(**options), WalkThere()
    from grasp.environments.point_mass import BeThereWithVelocity, PointMass

    return PointMass(**options), BeThereWithVelocity()


def _make_options(name: str, discount: float, **options: Any):
    from grasp.options import OptionEnvironment, shipped_options

    environment, reaching = primitive(name, **options)
    return OptionEnvironment(environment, shipped_options(reaching), discount)


def _make_suite(name: str, **options: Any):
    from grasp.environments.dm_control import SuiteEnvironment, suite

    domain, _, task = name.rpartition("-")
    known = [f"{d}-{t}" for d, t in suite.ALL_TASKS]
    if (domain, task) not in suite.ALL_TASKS:
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
        hint = f"; did you mean dmc:{near[0]}?" if near else ""
        raise UsageError(f"the DM Control Suite has no task {name!r}{hint}")
    return SuiteEnvironment(domain, task, **options)


def _make_gymnasium(name: str, **options: Any):
    import gymnasium

    if ":" in name and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # a file beside which the command is typed
    try:
        return gymnasium.make(name, **options)
    except ModuleNotFoundError as problem:
        raise UsageError(
            f"Gymnasium cannot make {name!r} ({problem}); a task is gym:ID or gym:MODULE:ID, "
            "with a module that is installed or in this folder"
        ) from None
    except gymnasium.error.Error as problem:
        near = difflib.get_close_matches(name, gymnasium.registry, n=1, cutoff=0.4)
        hint = f"; did you mean gym:{near[0]}?" if near else ""
        raise UsageError(f"Gymnasium cannot make {name!r}{hint} ({problem})") from None
