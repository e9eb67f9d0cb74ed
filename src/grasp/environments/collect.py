"""Collect (Section 3): pick up three objects in the order that the goal gives.

A square world of side 1 with an agent and the objects A, B and C at random places, 2 epsilon or
more apart. Five primitive actions: up, down, left, right move by epsilon (and stop at the walls),
collect picks up the nearest object within epsilon. Reward 1 for the last of the three in the right
order; a pick out of order ends the episode with 0. An episode is truncated after 500 primitive
steps.

    observation   agent x, y; A x, y; B x, y; C x, y; whether A, B, C are still there      [11]
    desired_goal  first, second and third object, each one-hot                             [9]
"""

import itertools
from typing import Any

import gymnasium
import numpy as np

from grasp.figures import Scene, scene_frame

SIDE = 1.0
EPSILON = 0.15  # step size, reach of collect, and half the least distance between objects
LIMIT = 500  # primitive steps
OBJECTS = "ABC"
ORDERS = tuple(itertools.permutations(range(3)))  # the six tasks
UP, DOWN, LEFT, RIGHT, COLLECT = range(5)
_MOVES = np.array([[0, 1], [0, -1], [-1, 0], [1, 0]]) * EPSILON

_LAYOUT = [[0.15, 0.8], [0.8, 0.75], [0.6, 0.15]]
PICTURED: dict[str, list[dict[str, Any]]] = {  # resets to look at: what differs along each row
    "start": [
        {"agent": place, "objects": _LAYOUT, "order": (0, 1, 2)}
        for place in ([0.5, 0.5], [0.1, 0.1], [0.9, 0.45], [0.45, 0.9])
    ],
    "objects": [
        {"agent": [0.5, 0.5], "objects": layout, "order": (0, 1, 2)}
        for layout in (
            [[0.15, 0.15], [0.8, 0.75], [0.6, 0.15]],
            [[0.85, 0.15], [0.8, 0.75], [0.15, 0.85]],
            [[0.5, 0.9], [0.1, 0.3], [0.9, 0.3]],
            [[0.2, 0.5], [0.8, 0.2], [0.5, 0.85]],
        )
    ],
    "order": [
        {"agent": [0.5, 0.5], "objects": _LAYOUT, "order": order}
        for order in ((0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 1, 0))
    ],
}


class Collect(gymnasium.Env):
    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}
    action_space = gymnasium.spaces.Discrete(5)
    observation_space = gymnasium.spaces.Dict(
        observation=gymnasium.spaces.Box(0, 1, (11,), np.float32),
        desired_goal=gymnasium.spaces.Box(0, 1, (9,), np.float32),
    )

    def __init__(self, render_mode: str | None = None):
        self.render_mode = render_mode
        self.agent = np.zeros(2)
        self.objects = np.zeros((3, 2))
        self.left = np.ones(3, bool)  # still to be collected
        self.order = ORDERS[0]
        self.steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """A new layout and order; `options` may fix `agent`, `objects` and `order`."""
        super().reset(seed=seed)
        fixed = options or {}
        self.agent = np.asarray(fixed.get("agent", self.np_random.uniform(0, SIDE, 2)), float)
        self.objects = np.asarray(fixed.get("objects", self._placed()), float)
        self.order = tuple(fixed.get("order", ORDERS[self.np_random.integers(len(ORDERS))]))
        self.left = np.ones(3, bool)
        self.steps = 0
        return self._observation(), {"success": False}

    def step(self, action: int | np.integer):
        self.steps += 1
        picked = None
        if action == COLLECT:
            picked = self._within_reach()
        else:
            self.agent = np.clip(self.agent + _MOVES[action], 0, SIDE)
        wrong = picked is not None and picked != self.order[int(3 - self.left.sum())]
        if picked is not None:
            self.left[picked] = False
        success = not wrong and not self.left.any()
        terminated = wrong or success
        truncated = not terminated and self.steps >= LIMIT
        return self._observation(), float(success), terminated, truncated, {"success": success}

    def render(self) -> np.ndarray:
        return scene_frame(self.scene())

    pictured = PICTURED

    def scene(self) -> Scene:
        return Scene(self.agent.copy(), self.objects.copy(), self.left.copy(), self.order)

    def options_to_objects(self) -> np.ndarray:
        """The three options that aim at A, B and C [3, 2]."""
        return self.objects.copy()

    def place(self, observation: dict[str, np.ndarray]) -> np.ndarray:
        """Where in the scene an observation has the agent."""
        return observation["observation"][:2]

    def get_state(self) -> dict[str, Any]:
        return {
            "agent": self.agent.copy(),
            "objects": self.objects.copy(),
            "left": self.left.copy(),
            "order": np.asarray(self.order),
            "steps": self.steps,
        }

    def set_state(self, state: dict[str, Any]) -> dict[str, np.ndarray]:
        """Put an episode back; returns its current observation."""
        self.agent = np.array(state["agent"], float)
        self.objects = np.array(state["objects"], float)
        self.left = np.array(state["left"], bool)
        self.order = tuple(int(index) for index in state["order"])
        self.steps = int(state["steps"])
        return self._observation()

    def _placed(self) -> np.ndarray:
        """Three places, each at least 2 epsilon from the others."""
        while True:
            places = self.np_random.uniform(0, SIDE, (3, 2))
            apart = np.linalg.norm(places[:, None] - places[None], axis=-1)[np.triu_indices(3, 1)]
            if apart.min() >= 2 * EPSILON:
                return places

    def _within_reach(self) -> int | None:
        """The nearest object that is there and within epsilon."""
        distances = np.linalg.norm(self.objects - self.agent[None], axis=-1)
        distances = np.where(self.left, distances, np.inf)
        nearest = int(distances.argmin())
        return nearest if distances[nearest] <= EPSILON else None

    def _observation(self) -> dict[str, np.ndarray]:
        features = np.concatenate([self.agent, self.objects.ravel(), self.left])
        return {
            "observation": features.astype(np.float32),
            "desired_goal": np.eye(3, dtype=np.float32)[list(self.order)].ravel(),
        }


class GoAndCollect:
    """The option space (x, y): go near there, then collect.

    Steps of epsilon reach any place to within half a step on each axis, at most 0.71
    epsilon away; "near" is 0.8 epsilon, so that collect always reaches what an option aims at.
    """

    task = "collect"
    space: gymnasium.spaces.Box = gymnasium.spaces.Box(0, SIDE, (2,), np.float32)
    cap = 30  # the far corner is 14 steps away
    outputs = 4  # the moves; collect is the final action
    final: Any = COLLECT
    tolerance = 0.8 * EPSILON

    def body(self, observation: Any) -> np.ndarray:
        return observation["observation"][:2]

    def achieved(self, body: np.ndarray) -> np.ndarray:
        return body

    def inputs(self, body: np.ndarray, option: np.ndarray) -> np.ndarray:
        return (option - body) / EPSILON

    def reached(self, body: np.ndarray, option: np.ndarray) -> np.ndarray | np.bool:
        return np.linalg.norm(option - body, axis=-1) <= self.tolerance

    def primitive(self, output: np.ndarray) -> int:
        return int(output.argmax())
