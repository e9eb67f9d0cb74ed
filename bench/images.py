"""What images cost: a picture, a decision and an update, each alone in the same run; and the peak
memory of a process that learns from a full replay of them.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from growth import alone
from measure import Row, race
from updates import ACTION, windows

TASKS = ("ball_in_cup-catch", "finger-spin", "walker-walk", "cheetah-run")


def rows(seconds: float) -> list[Row]:
    sides = [("images.rendering", {"task": task}) for task in TASKS]
    sides += [("images.agent", {"name": name}) for name in ("GA-4", "TD3")]
    timings = race(sides, seconds)
    found = [
        Row(f"images, {name}", 1e3 * timing.median, None, "ms") for name, timing in timings.items()
    ]
    timing, memory = alone("images.full_replay", {"name": "GA-4"}, seconds)
    what = "images, windows of a full replay and an update of GA-4"
    return [*found, Row(what, 1e3 * timing.median, None, "ms", memory_mb=memory)]


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
    learner, images, compiled = made(name)
    window = windows(learner, 1)
    shape = (*window.observations.shape[:2], images.size)
    seen = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    batch = window._replace(observations=seen).split(1)
    goals = np.zeros((1, 0), np.float32)
    return {
        f"a decision of {name}": lambda: compiled.act(seen[:1, 0], goals, 0).actions,
        f"an update of {name}": lambda: compiled.update(batch, 0),
    }


def full_replay(name: str) -> dict[str, Callable[[], Any]]:
    """An update from a replay that holds all the decisions it can."""
    from grasp.replay import Replay

    learner, images, compiled = made(name)
    replay = Replay(
        capacity=learner.replay_capacity,
        lanes=1,
        observation_size=images.size,
        goal_size=0,
        action_size=ACTION,
        stack=images.stack,
        observation_type=np.uint8,
    )
    random, goal = np.random.default_rng(0), np.zeros(0, np.float32)
    frames = random.integers(0, 256, (100, images.size), np.uint8)
    replay.begin(0, frames[0], goal)
    for number in range(learner.replay_capacity):
        replay.add(
            0,
            action=np.zeros(ACTION, np.float32),
            reward=0.0,
            duration=1,
            terminated=False,
            observation=frames[number % len(frames)],
            goal=goal,
        )

    def learned() -> Any:
        return compiled.update(replay.sample(learner.batch, learner.window, random).split(1), 0)

    return {"an update": learned}


def made(name: str) -> tuple[Any, Any, Any]:
    """The agent with its default setting from images, the images, and the agent compiled."""
    import grasp
    from grasp.agents.agent import Sizes
    from grasp.agents.compiled import CompiledAgent
    from grasp.environments.frames import Sight
    from grasp.images import Images

    sight = Sight()
    images = Images(sight.frame_stack, 64, 64, 3, sight.filters, sight.random_shift)
    usual: Any = grasp.agent_named(name, images=True)
    learner = dataclasses.replace(usual, updates_per_call=1)
    sizes = Sizes(images.size, 0, ACTION, images=images)
    return learner, images, CompiledAgent(learner, sizes, seed=0)
