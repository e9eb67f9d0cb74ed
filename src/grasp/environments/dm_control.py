"""DM Control Suite tasks behind Gymnasium's interface.

Low-level state features, the suite's own action repeat and time limit. Where the task places a
target anew each episode, its position is the goal (choice 16) and the observation is Gymnasium's
goal dictionary; the features, which in the suite already tell where the target lies from the body,
are left whole.
"""

import logging
from typing import Any

import gymnasium
import numpy as np

from grasp.environments.frames import Quality
from grasp.environments.rendering import INSTALL, OFF, check_renderer, choose_renderer

if choose_renderer() in OFF:  # which MuJoCo and dm_control read when they are imported
    logging.getLogger(__name__).info(INSTALL)

import mujoco
from dm_control import suite
from dm_control.mujoco import Camera
from dm_control.rl.control import Task

# Where a suite task keeps the target it randomises.
GOAL_GEOMS = {"reacher": "target", "fish-swim": "target"}

# What MuJoCo finds old-fashioned in the suite's own files is nothing that a user can change.
logging.getLogger("absl").addFilter(lambda record: "is deprecated" not in record.getMessage())

mj: Any = mujoco  # its compiled functions have no stubs

Observation = np.ndarray | dict[str, np.ndarray]


class SuiteEnvironment(gymnasium.Env):
    """One suite task; an episode is a function of the seed it is reset with."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 50}

    def __init__(
        self,
        domain: str,
        task: str,
        render_mode: str | None = None,
        size: int = 240,
        tells_goal: bool = True,  # else a target is only what can be seen of it
        quality: Quality = "full",
    ):
        self._environment = suite.load(domain, task)
        goals = GOAL_GEOMS if tells_goal else {}
        self._goal_geom = goals.get(domain) or goals.get(f"{domain}-{task}")
        self.render_mode = render_mode
        self._size = size
        self._flags = {} if quality == "full" else {"shadow": False, "reflection": False}
        self._cameras: dict[int, Camera] = {}
        if quality == "fast":  # both are read when the first picture is taken
            self.physics.model.vis.quality.offsamples = 0
            self.physics.model.vis.quality.shadowsize = 0
        bounds = self._environment.action_spec()
        self.action_space = gymnasium.spaces.Box(
            bounds.minimum.astype(np.float32), bounds.maximum.astype(np.float32), dtype=np.float32
        )
        self._seed = 0
        features = sum(int(np.prod(s.shape)) for s in self._environment.observation_spec().values())
        observation = gymnasium.spaces.Box(-np.inf, np.inf, (features,), np.float32)
        goal = gymnasium.spaces.Box(-np.inf, np.inf, (3,), np.float32)
        self.observation_space = (
            gymnasium.spaces.Dict(observation=observation, desired_goal=goal)
            if self._goal_geom
            else observation
        )

    @property
    def endless(self) -> bool:
        """Whether the task never ends an episode before its time; few suite tasks do."""
        return type(self._environment.task).get_termination is Task.get_termination

    @property
    def physics(self) -> Any:
        return self._environment.physics

    def reset(self, *, seed: int | None = None, options: dict | None = None):
        super().reset(seed=seed)
        self._seed = int(self.np_random.integers(2**31)) if seed is None else seed
        # Every random choice of a suite task comes from this one generator.
        self._environment.task._random = np.random.RandomState(self._seed)
        timestep = self._environment.reset()
        return self._observation(timestep), {}

    def step(self, action: np.ndarray):
        timestep = self._environment.step(action)
        if timestep.first():
            raise gymnasium.error.ResetNeeded("the episode is over, or never began: call reset()")
        terminated = timestep.last() and timestep.discount == 0
        truncated = timestep.last() and not terminated
        return self._observation(timestep), float(timestep.reward), terminated, truncated, {}

    def render(self) -> np.ndarray:
        return self.photograph(self._size)

    def photograph(self, size: int) -> np.ndarray:
        """The world as it stands [size, size, 3]; a camera that is kept saves two thirds of the
        time.
        """
        check_renderer()
        if size not in self._cameras:
            self._cameras[size] = Camera(self.physics, size, size, camera_id=0)
        return self._cameras[size].render(render_flag_overrides=self._flags).copy()

    def close(self) -> None:
        self._cameras.clear()
        self._environment.close()

    def get_state(self) -> dict[str, Any]:
        """All that the rest of the episode depends on: the seed that laid it out, the physics, the
        clock.
        """
        kind = mj.mjtState.mjSTATE_INTEGRATION
        model, data = self.physics.model.ptr, self.physics.data.ptr
        physics = np.zeros(mj.mj_stateSize(model, kind))
        mj.mj_getState(model, data, physics, kind)
        return {"seed": self._seed, "physics": physics, "steps": self._environment._step_count}

    def set_state(self, state: dict[str, Any]) -> None:
        self.reset(seed=int(state["seed"]))  # lays out the targets, which live in the model
        model, data = self.physics.model.ptr, self.physics.data.ptr
        kind = mj.mjtState.mjSTATE_INTEGRATION
        mj.mj_setState(model, data, np.asarray(state["physics"]), kind)
        mj.mj_forward(model, data)
        mj.mj_setState(
            model, data, np.asarray(state["physics"]), kind
        )  # forward moved the warm start
        self._environment._step_count = int(state["steps"])

    def _observation(self, timestep: Any) -> Observation:
        features = np.concatenate([np.ravel(v) for v in timestep.observation.values()])
        features = features.astype(np.float32)
        if self._goal_geom is None:
            return features
        goal = self.physics.named.data.geom_xpos[self._goal_geom].astype(np.float32)
        return {"observation": features, "desired_goal": goal}
