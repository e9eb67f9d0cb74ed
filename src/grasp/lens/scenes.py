"""Worlds that can be taken in hand: a scene as JSON, and the state of an environment that has it.

Collect and Point-Mass are drawn in the unit square. The objects of Collect can be moved; the places
of Point-Mass are fixed, since its agents never observe them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from grasp.environments.boundary import Boundary
from grasp.environments.collect import Collect
from grasp.environments.point_mass import HALF, PLACES, SIDE, PointMass
from grasp.errors import UsageError
from grasp.figures import Scene

Pair = tuple[float, float]


class Layout(NamedTuple):
    """A scene as a request gives it: plain numbers, checked."""

    agent: Pair
    objects: tuple[Pair, ...]
    left: tuple[bool, ...]
    order: tuple[int, ...]


def layout(given: Any) -> Layout:
    """The layout of a request, or one sentence about what is wrong with it."""
    if not isinstance(given, dict):
        raise UsageError("a scene is an object with agent, objects, left and order")
    left = given.get("left")
    if not (isinstance(left, list) and len(left) == 3 and all(type(x) is bool for x in left)):
        raise UsageError(f"left is {left!r}; it says of each of three objects if it is there")
    if not any(left):
        raise UsageError("left has no object any more; at least one must be there")
    objects = given.get("objects")
    if not (isinstance(objects, list) and len(objects) == 3):
        raise UsageError(f"objects is {objects!r}; it must be three places [x, y]")
    return Layout(
        agent=_place(given.get("agent"), "agent"),
        objects=tuple(_place(place, "objects") for place in objects),
        left=tuple(left),
        order=order(given.get("order")),
    )


def order(given: Any) -> tuple[int, ...]:
    """The order of a request: the numbers 0, 1 and 2, each once."""
    if not (isinstance(given, list) and all(type(x) is int for x in given)) or (
        sorted(given) != [0, 1, 2]
    ):
        raise UsageError(f"order is {given!r}; it must hold 0, 1 and 2, each once, as [2, 0, 1]")
    return tuple(given)


def described(scene: Scene, movable: bool) -> dict[str, Any]:
    return {
        "agent": [float(x) for x in scene.agent],
        "objects": [[float(x) for x in place] for place in scene.objects],
        "left": [bool(there) for there in scene.left],
        "order": [int(index) for index in scene.order],
        "movable": movable,
    }


def is_scenic(world: Boundary) -> bool:
    return isinstance(world.environment.unwrapped, tuple(_STATES))


def objects_move(world: Boundary) -> bool:
    return isinstance(world.environment.unwrapped, Collect)


def arrange(world: Boundary, wanted: Layout) -> tuple[np.ndarray, np.ndarray]:
    """Put a world into a layout, as the start of an episode; returns its observation and goal."""
    task: Any = world.environment.unwrapped
    for kind, state in _STATES.items():
        if isinstance(task, kind):
            found = state(task, wanted)
            environment: Any = world.environment
            environment.set_state(found)
            return world.arrays(task.set_state(found))
    raise UsageError(
        f"the world of {world.name} cannot be arranged by hand; those of collect and point-mass can"
    )


def aim(world: Boundary, option: np.ndarray) -> list[float] | None:
    """Where in the scene an option aims; None in a world without one."""
    if not is_scenic(world):
        return None
    of_metres = isinstance(world.environment.unwrapped, PointMass)
    place = np.asarray(option[:2], float)
    return [float(x) for x in (place / SIDE + 0.5 if of_metres else place)]


def _place(given: Any, name: str) -> Pair:
    numbers = isinstance(given, list) and len(given) == 2
    if not (numbers and all(type(x) in (int, float) and 0 <= x <= 1 for x in given)):
        raise UsageError(f"{name} has the place {given!r}; a place is [x, y], both from 0 to 1")
    return float(given[0]), float(given[1])


def _collect_state(task: Any, wanted: Layout) -> dict[str, Any]:
    return {**wanted._asdict(), "steps": 0}


def _point_mass_state(task: Any, wanted: Layout) -> dict[str, Any]:
    if not np.allclose(wanted.objects, PLACES / SIDE + 0.5, atol=1e-6):
        raise UsageError("the places of point-mass are fixed; only the mass can be moved")
    place = np.clip((np.asarray(wanted.agent) - 0.5) * SIDE, -HALF, HALF)
    task.reset(options={"state": [*place, 0.0, 0.0], "order": wanted.order})
    return task.get_state() | {"passed": wanted.left.count(False)}


_STATES: dict[type, Callable[[Any, Layout], dict[str, Any]]] = {
    Collect: _collect_state,
    PointMass: _point_mass_state,
}
