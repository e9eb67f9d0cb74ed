"""Runs taken turn by turn, one or several side by side.

Runs that differ in their seed alone can go side by side, each with its own counters, replay,
environments and directory: what is compiled serves all, and the cores learn for several at once.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from grasp.cores import visible_cores
from grasp.errors import GraspError
from grasp.training import Loop


def train(loops: Sequence[Loop]) -> None:
    """Each from its last checkpoint, or the start, to its last step, or a signal. What ends one of
    several (its `problem`) does not end the others.
    """
    go([loop for loop in loops if _holds(loop, Loop.start)], Loop.goes_on)


def train_alone(loop: Loop) -> None:
    """One run to its end; what ends it before that is raised."""
    train([loop])
    if loop.problem is not None:
        raise loop.problem


def go(loops: Sequence[Loop], goes_on: Callable[[Loop], bool]) -> None:
    """Turn after turn of each as long as it `goes_on`: it thinks, then acts.

    One thinks and acts here. Of several, as many think at a time as there are cores; whichever is
    ready acts, here, where a signal reaches an environment that hangs.
    """

    def act(loop: Loop, thought: Callable[[], np.ndarray]) -> bool:
        actions = thought()
        if not goes_on(loop):
            return False
        loop.decide(actions)
        return True

    if len(loops) == 1:
        while _holds(loops[0], act, loops[0].think):
            pass
        return
    with ThreadPoolExecutor(max_workers=visible_cores()) as pool:
        thinking = {pool.submit(loop.think): loop for loop in loops}
        while thinking:
            for thought in wait(thinking, return_when=FIRST_COMPLETED).done:
                loop = thinking.pop(thought)
                if _holds(loop, act, thought.result):
                    thinking[pool.submit(loop.think)] = loop


def _holds(loop: Loop, do: Callable[..., bool | None], *told: Any) -> bool:
    """Whether `do` neither says that the loop is at its end nor fails."""
    try:
        return do(loop, *told) is not False
    except GraspError as problem:
        loop.problem = problem
        return False
