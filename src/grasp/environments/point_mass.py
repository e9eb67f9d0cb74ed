"""Point-Mass (Section 3): pass three fixed places in the order that the goal gives.

The suite's point mass on its walled square of 0.6 m. A place counts when the mass comes within
5 cm of it and it is the next in order; the third ends the episode with reward 1. An episode is
truncated after 500 steps of 20 ms. The mass starts at rest at a random place.

    observation   x, y, u, v; whether the first, second, third place of the order is passed    [7]
    desired_goal  first, second and third place, each one-hot                                  [9]

Damping holds the mass at 0.1 m/s under full force, so a crossing takes about five seconds.
"""

from typing import Any

import gymnasium
import numpy as np

from grasp.environments.collect import ORDERS
from grasp.environments.dm_control import SuiteEnvironment, mj
from grasp.figures import Scene, scene_frame

PLACES = np.array([[-0.1, -0.06], [0.1, -0.06], [0.0, 0.11]])  # A, B, C in metres
SIDE = 0.6  # metres from wall to wall
RADIUS = 0.05
LIMIT = 500  # steps
HALF = 0.28  # the mass starts within this of the middle, on both axes

PICTURED: dict[str, list[dict[str, Any]]] = {  # resets to look at: what differs along each row
    "start": [
        {"state": [*place, 0, 0], "order": (0, 1, 2)}
        for place in ([0.0, 0.0], [-0.25, 0.2], [0.25, 0.2], [0.0, -0.25])
    ],
    "order": [
        {"state": [0.0, 0.0, 0, 0], "order": order}
        for order in ((0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 1, 0))
    ],
}


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
        self._model, self._data = self._mass.physics.model.ptr, self._mass.physics.data.ptr
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
        # One step of the suite is one step of the physics; its reward and features are not needed,
        # and without them it takes 3 microseconds instead of 230.
        self._data.ctrl[:] = np.clip(action, -1, 1)
        mj.mj_step(self._model, self._data)
        self.steps += 1
        if _distance(self._data.qpos, PLACES[self.order[self.passed]]) <= RADIUS:
            self.passed += 1
        success = self.passed == 3
        truncated = not success and self.steps >= LIMIT
        return self._observation(), float(success), success, truncated, {"success": success}

    @property
    def state(self) -> np.ndarray:
        """x, y, u, v"""
        return np.concatenate([self._data.qpos, self._data.qvel])

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
        return scene_frame(self.scene())

    pictured = PICTURED

    def options_to_objects(self) -> np.ndarray:
        """The three options that come to rest at A, B and C [3, 4]."""
        return np.hstack([PLACES, np.zeros((3, 2))])

    def place(self, observation: dict[str, np.ndarray]) -> np.ndarray:
        """Where in the scene an observation has the mass."""
        return observation["observation"][:2] / SIDE + 0.5

    def scene(self) -> Scene:
        """The walled square of 0.6 m as the unit square."""
        left = np.array([index not in self.order[: self.passed] for index in range(3)])
        return Scene(self.state[:2] / SIDE + 0.5, PLACES / SIDE + 0.5, left, self.order)

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


def _distance(one: np.ndarray, other: np.ndarray) -> np.ndarray | np.floating:
    """Of points in the plane; np.linalg.norm takes four times as long on two numbers."""
    return np.hypot(one[..., 0] - other[..., 0], one[..., 1] - other[..., 1])


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
    near = 0.02  # metres
    alike = 0.02  # metres per second

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
        far = _distance(body[..., :2], option[..., :2]) > self.near
        return ~far & (_distance(body[..., 2:], option[..., 2:]) <= self.alike)

    def primitive(self, output: np.ndarray) -> np.ndarray:
        return output
