"""Where an environment's numbers enter: every one of them is checked here, at the step it appears.

A `Boundary` shows any Gymnasium environment with a Box action space as flat float32 arrays: an
observation, a goal (empty unless the observation is a dictionary with `desired_goal`), and actions
in [-1, 1] stretched to the environment's own bounds.
"""

from typing import Any, NamedTuple

import gymnasium
import numpy as np

from grasp.agents.agent import Sizes
from grasp.errors import EnvironmentFault, UsageError


class Outcome(NamedTuple):
    """What followed one decision."""

    observation: np.ndarray  # [observation]
    goal: np.ndarray  # [goal]
    reward: float  # discounted inside an option
    duration: int  # environment steps the decision took
    terminated: bool
    truncated: bool
    success: bool | None  # None where the task does not say

    @property
    def ended(self) -> bool:
        return self.terminated or self.truncated


class Boundary:
    def __init__(self, environment: gymnasium.Env, name: str):
        self.environment = environment
        self.name = name
        self._low, self._high = _bounds(environment, name)
        self._keys = _keys(environment.observation_space, name)
        sizes = [_size(environment.observation_space, key, name) for key in self._keys]
        self.sizes = Sizes(
            observation=sizes[0],
            goal=sizes[1] if len(sizes) > 1 else 0,
            action=self._low.size,
            options=bool(getattr(environment, "has_options", False)),
        )

    def reset(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        observation, _ = self.environment.reset(seed=seed)
        return self._arrays(observation, "reset")

    def step(self, action: np.ndarray) -> Outcome:
        """Take an action of [-1, 1]; whatever lies outside is clipped."""
        taken = self.stretched(action)
        observation, reward, terminated, truncated, info = self.environment.step(taken)
        reward = float(reward)
        if not np.isfinite(reward):
            raise EnvironmentFault(
                f"{self.name} returned reward {reward}; rewards must be finite: check its step"
            )
        observation, goal = self._arrays(observation, "step")
        success = info.get("success", info.get("is_success"))
        return Outcome(
            observation=observation,
            goal=goal,
            reward=reward,
            duration=int(info.get("duration", 1)),
            terminated=bool(terminated),
            truncated=bool(truncated),
            success=None if success is None else bool(success),
        )

    def stretched(self, action: np.ndarray) -> np.ndarray:
        """An action of [-1, 1] in the environment's own bounds, shape and type."""
        share = (np.clip(action, -1, 1) + 1) / 2
        inside = np.clip(self._low + share * (self._high - self._low), self._low, self._high)
        space = self.environment.action_space
        return inside.reshape(space.shape).astype(space.dtype)

    def squeezed(self, action: np.ndarray) -> np.ndarray:
        """The inverse of `stretched`: into [-1, 1], flat."""
        share = (np.ravel(action) - self._low) / (self._high - self._low)
        return (2 * share - 1).astype(np.float32)

    def arrays(self, observation: Any) -> tuple[np.ndarray, np.ndarray]:
        """The observation and goal of a raw observation of this environment."""
        return self._arrays(observation, "act")

    def state(self) -> dict[str, Any]:
        """Where the episode stands, or nothing for an environment without `get_state`."""
        get = getattr(self.environment, "get_state", None)
        return get() if get else {}

    def restore(self, state: dict[str, Any]) -> None:
        self.environment.set_state(state)  # type: ignore[attr-defined]  # has get_state

    def close(self) -> None:
        self.environment.close()

    def _arrays(self, observation: Any, where: str) -> tuple[np.ndarray, np.ndarray]:
        parts = [observation] if self._keys == [None] else [observation[key] for key in self._keys]
        sizes = [self.sizes.observation, self.sizes.goal]
        flat = [np.asarray(part, np.float32).ravel() for part in parts]
        for key, part, size in zip(self._keys, flat, sizes, strict=False):
            label = key or "observation"
            if part.size != size:
                raise EnvironmentFault(
                    f"{self.name} returned a {label} of {part.size} numbers from {where}; "
                    f"its space has {size}"
                )
            if not np.isfinite(part).all():
                entry = int(np.flatnonzero(~np.isfinite(part))[0])
                raise EnvironmentFault(
                    f"{self.name} returned {part[entry]} in entry {entry} of its {label} "
                    f"from {where}; observations must be finite: check the environment"
                )
        return flat[0], flat[1] if len(flat) > 1 else np.zeros(0, np.float32)


def _bounds(environment: gymnasium.Env, name: str) -> tuple[np.ndarray, np.ndarray]:
    space = environment.action_space
    if not isinstance(space, gymnasium.spaces.Box):
        raise UsageError(
            f"{name} has the action space {space}; grasp plans over continuous actions "
            "and needs a Box: choose an environment with continuous actions or wrap this one"
        )
    low, high = (np.asarray(bound, np.float64).ravel() for bound in (space.low, space.high))
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise UsageError(
            f"{name} has unbounded actions ({space}); affordances need finite bounds: "
            "wrap it with gymnasium.wrappers.RescaleAction or ClipAction"
        )
    if not (low < high).all():
        raise UsageError(f"{name} has action bounds with low not below high: {space}")
    return low, high


def _keys(space: gymnasium.Space, name: str) -> list[str | None]:
    if isinstance(space, gymnasium.spaces.Box):
        return [None]
    if isinstance(space, gymnasium.spaces.Dict) and "observation" in space.spaces:
        return [key for key in ("observation", "desired_goal") if key in space.spaces]
    raise UsageError(
        f"{name} has the observation space {space}; grasp reads a Box, or a Dict with "
        "`observation` and `desired_goal`: wrap it with gymnasium.wrappers.FlattenObservation"
    )


def _size(space: gymnasium.Space, key: str | None, name: str) -> int:
    part = space if key is None else space[key]  # type: ignore[index]  # a Dict, by _keys
    if not isinstance(part, gymnasium.spaces.Box):
        raise UsageError(
            f"{name} has `{key}` in {part}; it must be a Box: flatten it with a wrapper"
        )
    return int(np.prod(part.shape))
