"""Options: actions that last (Section 2, "Agent-environment interaction").

An option is a point of a continuous option space. Its policy acts until it terminates, and the
agent sees one decision: the discounted sum of rewards, the duration n, and the observation after
it,

    reward = sum_{k < n} gamma^k r_k,      n <= cap,

whatever ended it: the policy's own termination, the cap, or the end of the episode. Planner,
losses, replay and agents never ask whether a decision was an option.
"""

from typing import Any, Protocol, runtime_checkable

import gymnasium
import numpy as np

from grasp.errors import UsageError


@runtime_checkable
class Options(Protocol):
    """A continuous option space and how its options behave in the primitive environment."""

    space: gymnasium.spaces.Box
    cap: int  # primitive steps after which an option ends in any case

    def act(self, observation: Any, option: np.ndarray) -> tuple[Any, bool]:
        """The primitive action for an observation, and whether the option ends with it."""
        ...

    def ended(self, observation: Any, option: np.ndarray) -> bool:
        """Whether the option has ended at an observation, after at least one primitive step."""
        ...


class OptionEnvironment(gymnasium.Wrapper):
    """An environment whose actions are options; `info["duration"]` counts primitive steps.

    An option outside its space is clipped to it. `info["path"]` holds the primitive observations on
    the way where `record` is set.
    """

    has_options = True

    def __init__(self, environment: gymnasium.Env, options: Options, discount: float):
        super().__init__(environment)
        if options.cap < 1:
            raise UsageError(f"the options' cap is {options.cap} steps; it must be at least 1")
        if not 0 <= discount <= 1:
            raise UsageError(f"discount is {discount}; it must be between 0 and 1")
        self.options = options
        self.discount = discount
        self.action_space = options.space
        self.record = False
        self._observation: Any = None

    def reset(self, **arguments: Any):
        self._observation, info = self.env.reset(**arguments)
        return self._observation, info

    def step(self, action: np.ndarray):
        option = np.clip(action, self.options.space.low, self.options.space.high)
        total, discount, duration, path = 0.0, 1.0, 0, [self._observation]
        while True:
            primitive, last = self.options.act(self._observation, option)
            self._observation, reward, terminated, truncated, info = self.env.step(primitive)
            total += discount * float(reward)
            discount *= self.discount
            duration += 1
            if self.record:
                path.append(self._observation)
            if terminated or truncated or last or duration >= self.options.cap:
                break
            if self.options.ended(self._observation, option):
                break
        info = info | {"duration": duration} | ({"path": path} if self.record else {})
        return self._observation, total, terminated, truncated, info
