"""Drawing a batch from replay, ours against Stable-Baselines3's buffer; and the world alone."""

import time
from typing import Any

import numpy as np
from measure import take_turns
from updates import ACTION, OBSERVATION

import grasp
from grasp.replay import Replay


def compare(seconds: float, rows: int = 200_000, batch: int = 256) -> dict[str, Any]:
    """One decision per window, which is all that their buffer holds."""
    random = np.random.default_rng(0)
    ours = Replay(
        capacity=rows, lanes=1, observation_size=OBSERVATION, goal_size=0, action_size=ACTION
    )
    empty = np.zeros(0, np.float32)
    ours.begin(0, random.normal(size=OBSERVATION).astype(np.float32), empty)
    decision = {"reward": 0.0, "duration": 1, "terminated": False, "goal": empty}
    for _ in range(rows - 1):
        observation = random.normal(size=OBSERVATION).astype(np.float32)
        ours.add(0, action=np.zeros(ACTION, np.float32), observation=observation, **decision)
    contenders: dict[str, Any] = {
        "ours, n 1": lambda: ours.sample(batch, 1, random),
        "ours, n 3": lambda: ours.sample(batch, 3, random),
    }
    try:
        import gymnasium
        from stable_baselines3.common.buffers import ReplayBuffer
    except ImportError:
        pass
    else:
        box = gymnasium.spaces.Box(-1, 1, (OBSERVATION,), np.float32)
        actions = gymnasium.spaces.Box(-1, 1, (ACTION,), np.float32)
        theirs = ReplayBuffer(rows, box, actions, device="cpu", handle_timeout_termination=False)
        theirs.pos, theirs.full = 0, True
        contenders["SB3"] = lambda: theirs.sample(batch).observations.numpy()
    timings = take_turns(contenders, seconds)
    microseconds = {name: 1e6 * timing.median for name, timing in timings.items()}
    found: dict[str, Any] = {"microseconds": microseconds}
    if "SB3" in microseconds:
        found["SB3 over ours"] = microseconds["SB3"] / microseconds["ours, n 1"]
    return found


def world(task: str = "walker-walk", steps: int = 3_000) -> dict[str, Any]:
    """Steps per second of an environment by itself."""
    environment = grasp.make(task)
    environment.reset(seed=0)
    action = np.zeros(environment.action_space.shape, np.float32)
    begun = time.perf_counter()
    for _ in range(steps):
        *_, terminated, truncated, _ = environment.step(action)
        if terminated or truncated:
            environment.reset()
    return {"task": task, "steps_per_second": steps / (time.perf_counter() - begun)}
