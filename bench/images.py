"""What images cost: a picture, a decision and an update, each alone in the same run."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from measure import Row, race
from updates import ACTION, windows

TASKS = ("ball_in_cup-catch", "finger-spin", "walker-walk", "cheetah-run")


def rows(seconds: float) -> list[Row]:
    sides = [("images.rendering", {"task": task}) for task in TASKS]
    sides += [("images.agent", {"name": name}) for name in ("GA-4", "TD3")]
    timings = race(sides, seconds)
    return [
        Row(f"images, {name}", 1e3 * timing.median, None, "ms") for name, timing in timings.items()
    ]


def rendering(task: str) -> dict[str, Callable[[], Any]]:
    """A picture of 64 x 64 in both qualities, in the middle of an episode."""
    import grasp
    from grasp.environments.frames import Sight

    def pictures(quality: Any) -> Callable[[], Any]:
        world: Any = grasp.make(f"pixels:{task}", sight=Sight(2, quality=quality))
        world.reset(seed=0)
        for _ in range(20):
            world.step(world.action_space.sample())
        return lambda: world.unwrapped.photograph(64)

    return {f"a picture of {task}, {how}": pictures(how) for how in ("fast", "full")}


def agent(name: str) -> dict[str, Callable[[], Any]]:
    """A decision and an update of an agent's default setting from images."""
    import grasp
    from grasp.agents.agent import Sizes
    from grasp.agents.compiled import CompiledAgent
    from grasp.environments.frames import Sight
    from grasp.images import Images

    sight = Sight()
    images = Images(sight.frame_stack, 64, 64, 3, sight.filters, sight.random_shift)
    usual: Any = grasp.agent_named(name, images=True)
    learner = dataclasses.replace(usual, updates_per_call=1)
    compiled = CompiledAgent(learner, Sizes(images.size, 0, ACTION, images=images), seed=0)
    window = windows(learner, 1)
    shape = (*window.observations.shape[:2], images.size)
    seen = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    batch = window._replace(observations=seen).split(1)
    goals = np.zeros((1, 0), np.float32)
    return {
        f"a decision of {name}": lambda: compiled.act(seen[:1, 0], goals, 0).actions,
        f"an update of {name}": lambda: compiled.update(batch, 0),
    }
