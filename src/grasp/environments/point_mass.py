"""Point-Mass (Section 3): pass three fixed places in the order that the goal gives.

The suite's point mass on its walled square of 0.6 m. A place counts when the mass comes within
3 cm of it and it is the next in order; the third ends the episode with reward 1. An episode is
truncated after 500 steps of 20 ms. The mass starts at rest at a random place.

    observation   x, y, u, v; whether the first, second, third place of the order is passed    [7]
    desired_goal  first, second and third place, each one-hot                                  [9]

Damping holds the mass at 0.1 m/s under full force, so a crossing takes about five seconds.
"""

from typing import Any

import gymnasium
import numpy as np

from grasp.environments.collect import ORDERS
from grasp.environments.dm_control import SuiteEnvironment
from grasp.figures import places_frame

PLACES = np.array([[-0.15, -0.1], [0.15, -0.1], [0.0, 0.15]])  # A, B, C in metres
RADIUS = 0.03
LIMIT = 500  # steps
HALF = 0.28  # the mass starts within this of the middle, on both axes


class PointMass(gymnasium.Env):
    """The primitive environment; its actions are the two forces."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 50}
    action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    observation_space = gymnasium.spaces.Dict(
        observation=gymnasium.spaces.Box(-1, 1, (7,), np.float32),
        desired_goal=gymnasium.spaces.Box(0, 1, (9,), np.float32),
    )

    def __init__(self, render_mode: str | None = None):
        self.render_mode = render_mode
        self._mass = SuiteEnvironment("point_mass", "easy")
        self.order = ORDERS[0]
        self.passed = 0  # places of the order so far
        self.steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """A new start and order; `options` may fix `state` (x, y, u, v) and `order`."""
        super().reset(seed=seed)
        fixed = options or {}
        self._mass.reset(seed=0)
        start = np.append(self.np_random.uniform(-HALF, HALF, 2), [0, 0])
        self.order = tuple(fixed.get("order", ORDERS[self.np_random.integers(len(ORDERS))]))
        self._put(np.asarray(fixed.get("state", start), float))
        self.passed = self.steps = 0
        return self._observation(), {"success": False}

    def step(self, action: np.ndarray):
        self._mass.step(np.clip(action, -1, 1))
        self.steps += 1
        aim = PLACES[self.order[self.passed]]
        if np.linalg.norm(self.state[:2] - aim) <= RADIUS:
            self.passed += 1
        success = self.passed == 3
        truncated = not success and self.steps >= LIMIT
        return self._observation(), float(success), success, truncated, {"success": success}

    @property
    def state(self) -> np.ndarray:
        """x, y, u, v"""
        data = self._mass.physics.data
        return np.concatenate([data.qpos, data.qvel])

    def get_state(self) -> dict[str, Any]:
        physics = self._mass.get_state()["physics"]
        return {
            "physics": physics,
            "order": np.asarray(self.order),
            "passed": self.passed,
            "steps": self.steps,
        }

    def set_state(self, state: dict[str, Any]) -> dict[str, np.ndarray]:
        """Put an episode back; returns its current observation."""
        self._mass.set_state({"seed": 0, "physics": state["physics"], "steps": 0})
        self.order = tuple(int(index) for index in state["order"])
        self.passed, self.steps = int(state["passed"]), int(state["steps"])
        return self._observation()

    def render(self) -> np.ndarray:
        return places_frame(self.state[:2], PLACES, self.order, self.passed)

    def close(self) -> None:
        self._mass.close()

    def _put(self, state: np.ndarray) -> None:
        with self._mass.physics.reset_context():
            self._mass.physics.data.qpos[:] = state[:2]
            self._mass.physics.data.qvel[:] = state[2:]

    def _observation(self) -> dict[str, np.ndarray]:
        features = np.concatenate([self.state, np.arange(3) < self.passed])
        return {
            "observation": features.astype(np.float32),
            "desired_goal": np.eye(3, dtype=np.float32)[list(self.order)].ravel(),
        }


class BeThereWithVelocity:
    """The option space (x, y, u, v): be at a place with a velocity."""

    task = "point-mass"
    space: gymnasium.spaces.Box = gymnasium.spaces.Box(
        np.array([-0.25, -0.25, -0.05, -0.05], np.float32),
        np.array([0.25, 0.25, 0.05, 0.05], np.float32),
    )
    cap = 300  # from corner to corner is 250 steps at full force
    outputs = 2
    final: Any = None
    tolerance = np.array([0.02, 0.02])  # distance in metres, difference of velocity in m/s

    def body(self, observation: Any) -> np.ndarray:
        return observation["observation"][:4]

    def achieved(self, body: np.ndarray) -> np.ndarray:
        return body

    def inputs(self, body: np.ndarray, option: np.ndarray) -> np.ndarray:
        """What is missing, far and near, and the velocity: all of order one."""
        missing = option - body
        near = np.tanh(missing[..., :2] / 0.05)
        scaled = [missing[..., :2] / 0.25, near, missing[..., 2:] / 0.05, body[..., 2:] / 0.05]
        return np.concatenate([*scaled, body[..., :2] / 0.25], axis=-1)

    def reached(self, body: np.ndarray, option: np.ndarray) -> np.ndarray | np.bool:
        missing = (option - body).reshape(*body.shape[:-1], 2, 2)
        return (np.linalg.norm(missing, axis=-1) <= self.tolerance).all(axis=-1)

    def primitive(self, output: np.ndarray) -> np.ndarray:
        return output
