"""Drawing a batch from replay, ours against Stable-Baselines3's buffer; and the world alone."""

from collections.abc import Callable
from typing import Any

import numpy as np
from measure import Row, compared, race
from updates import ACTION, OBSERVATION

ROWS, BATCH = 200_000, 256


def rows(seconds: float) -> list[Row]:
    """One decision per window is all that their buffer holds."""
    timings = race([("replays.ours", {}), ("replays.pytorch", {}), ("replays.world", {})], seconds)
    found = [
        Row(f"replay, {BATCH} windows of 3", 1e6 * timings["n 3"].median, None, "us"),
        Row("world alone, walker-walk", 1 / timings["world"].median, None, "steps/s",
            higher_is_better=True),
    ]  # fmt: skip
    if "SB3" in timings:
        found.append(compared("replay, Stable-Baselines3", timings["n 1"], timings["SB3"], "us"))
    return found


def ours() -> dict[str, Callable[[], Any]]:
    from grasp.replay import Replay

    random = np.random.default_rng(0)
    replay = Replay(
        capacity=ROWS, lanes=1, observation_size=OBSERVATION, goal_size=0, action_size=ACTION
    )
    empty = np.zeros(0, np.float32)
    replay.begin(0, random.normal(size=OBSERVATION).astype(np.float32), empty)
    decision = {"reward": 0.0, "duration": 1, "terminated": False, "goal": empty}
    for _ in range(ROWS - 1):
        observation = random.normal(size=OBSERVATION).astype(np.float32)
        replay.add(0, action=np.zeros(ACTION, np.float32), observation=observation, **decision)
    return {f"n {n}": lambda n=n: replay.sample(BATCH, n, random) for n in (1, 3)}


def pytorch() -> dict[str, Callable[[], Any]]:
    import gymnasium
    from stable_baselines3.common.buffers import ReplayBuffer

    box = gymnasium.spaces.Box(-1, 1, (OBSERVATION,), np.float32)
    actions = gymnasium.spaces.Box(-1, 1, (ACTION,), np.float32)
    theirs = ReplayBuffer(ROWS, box, actions, device="cpu", handle_timeout_termination=False)
    theirs.pos, theirs.full = 0, True
    return {"SB3": lambda: theirs.sample(BATCH).observations.numpy()}


def world(task: str = "walker-walk") -> dict[str, Callable[[], Any]]:
    """An environment by itself."""
    import grasp
    from grasp.environments.frames import Sight

    environment = grasp.make(task, sight=Sight(action_repeat=1))
    environment.reset(seed=0)
    action = np.zeros(environment.action_space.shape, np.float32)

    def step() -> None:
        *_, terminated, truncated, _ = environment.step(action)
        if terminated or truncated:
            environment.reset()

    return {"world": step}
