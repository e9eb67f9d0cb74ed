"""Tasks by name: the paper's nine suite tasks, any other suite task, any Gymnasium task, and any of
these from pixels.

Importing this names the tasks; physics is imported only when one is made.
"""

import difflib
import os
import sys
from typing import TYPE_CHECKING, Any

from grasp.errors import UsageError

if TYPE_CHECKING:
    from grasp.environments.frames import Sight

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
PIXELS = "pixels:"  # before the name of a task: seen as images
PIXEL_TASKS = tuple(  # the paper's
    f"{PIXELS}{name}" for name in ("finger-spin", "ball_in_cup-catch", "walker-walk", "cheetah-run")
)
TASKS: dict[str, str] = (
    {name: f"dmc:{name}" for name in SUITE}
    | {name: f"options:{name}" for name in OPTION_TASKS}
    | {name: name.replace(PIXELS, f"{PIXELS}dmc:") for name in PIXEL_TASKS}
)


def check_task(name: str) -> None:
    """Refuse a task that cannot exist, without importing any simulator."""
    if from_pixels(name):
        check_task(name.removeprefix(PIXELS))
        if has_options(name.removeprefix(PIXELS)):
            raise UsageError(
                f"{name!r} cannot be seen from pixels, because its goal is no part of its picture; "
                "suite and Gymnasium tasks can"
            )
        return
    known = TASKS.get(name, name)
    prefix, _, rest = known.partition(":")
    if known in TASKS.values() or (prefix == "dmc" and "-" in rest) or (prefix == "gym" and rest):
        return
    near = difflib.get_close_matches(name, TASKS, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]}? " if near else ""
    raise UsageError(
        f"unknown task {name!r}; {hint}tasks: {', '.join(TASKS)}, dmc:DOMAIN-TASK or gym:ID, "
        "and pixels: before either"
    )


def make(name: str, discount: float = 0.99, sight: "Sight | None" = None, **options: Any):
    """The Gymnasium environment of a task, as the agent sees and acts on it; `discount` is that of
    rewards inside an option.
    """
    from grasp.environments.frames import seen_by

    check_task(name)
    sight = sight or usual_sight(name)
    shown = name.removeprefix(PIXELS)
    prefix, _, rest = TASKS.get(shown, shown).partition(":")
    if prefix == "options":
        return seen_by(_make_options(rest, discount, **options), sight, name)
    make_plain = _make_suite if prefix == "dmc" else _make_gymnasium
    if not from_pixels(name):
        return seen_by(make_plain(rest, **options), sight, name)
    if prefix == "gym":
        from grasp.environments.rendering import choose_renderer

        choose_renderer()
        plain = make_plain(rest, **options | {"render_mode": "rgb_array"})
        return seen_by(plain, sight, name, plain.render)
    plain = make_plain(rest, **options, tells_goal=False, quality=sight.quality)
    return seen_by(plain, sight, name, lambda: plain.photograph(sight.image_size))


def from_pixels(name: str) -> bool:
    return name.startswith(PIXELS)


def usual_repeat(name: str, preset: str = "default", agent: str = "") -> int:
    """Suite tasks are decided every second step (choice 28); by the paper, and by TD3 (choice 17),
    only from pixels.
    """
    every_step = preset == "paper" or agent == "TD3"
    repeats = from_pixels(name) or (suite_of(name) == "dm_control" and not every_step)
    return 2 if repeats else 1


def usual_sight(name: str, preset: str = "default", agent: str = "") -> "Sight":
    from grasp.environments.frames import Sight

    return Sight(action_repeat=usual_repeat(name, preset, agent))


def has_options(name: str) -> bool:
    return TASKS.get(name, name).startswith("options:")


def suite_of(name: str) -> str:
    """The folder of `results/` that a task belongs to."""
    folders = {
        "dmc": "dm_control", "gym": "gymnasium", "options": "hierarchical", "pixels": "pixels",
    }  # fmt: skip
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
