"""Where an environment's numbers enter: every one of them is checked here, at the step it appears.

A `Boundary` shows any Gymnasium environment with a Box action space as flat float32 arrays: an
observation, a goal (empty unless the observation is a dictionary with `desired_goal`), and actions
in [-1, 1] stretched to the environment's own bounds.

How an episode under way is put back, in three tiers: by `get_state` and `set_state` where the
environment has them; else by its seed and actions, if the last observation then is the same; else
not at all, and the caller begins a new one.
"""

import contextlib
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from grasp.agents.agent import Sizes
from grasp.errors import EnvironmentFault, EnvironmentRaised, GraspError, UsageError

LONGEST = 100_000  # decisions of an episode that are kept to put it back by its actions


class Outcome(NamedTuple):
    """What followed one decision."""

    observation: np.ndarray  # [observation]
    goal: np.ndarray  # [goal]
    reward: float  # discounted inside an option
    earned: float  # the same, undiscounted: what returns are made of
    duration: int  # n of the discount gamma^n: 1, or the steps of an option
    terminated: bool
    truncated: bool
    success: bool | None  # None where the task does not say
    steps: int  # of the environment; the duration, or those of a repeated action
    counts: dict[str, float]  # what the environment counts beside the reward, so far

    @property
    def ended(self) -> bool:
        return self.terminated or self.truncated


class Boundary:
    def __init__(self, environment: gymnasium.Env, name: str):
        self.environment = environment
        self.name = name
        self._low, self._high = _bounds(environment, name)
        self._keys = _keys(environment.observation_space, name)
        self._spaces = [_space(environment.observation_space, key, name) for key in self._keys]
        sizes = [int(np.prod(space.shape)) for space in self._spaces]
        self._counted: tuple[str, ...] = getattr(environment.unwrapped, "counted", ())
        self._seed = 0  # of the episode under way
        self._actions: list[np.ndarray] | None = []  # of the episode, None where it is too long
        self.busy: tuple[str, float] | None = None  # what the environment does, and since when
        self.sizes = Sizes(
            observation=sizes[0],
            goal=sizes[1] if len(sizes) > 1 else 0,
            action=self._low.size,
            options=bool(getattr(environment, "has_options", False)),
            images=getattr(environment, "images", None),
            endless=bool(getattr(environment.unwrapped, "endless", False)),
        )

    def reset(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        with self._calling("reset"):
            answer = self.environment.reset(seed=seed)
        self._seed, self._actions = seed, []
        observation, _ = self._parts(answer, 2, "reset")
        return self._arrays(observation, "reset")

    def step(self, action: np.ndarray) -> Outcome:
        """Take an action of [-1, 1]; whatever lies outside is clipped."""
        taken = self.stretched(action)
        with self._calling("step"):
            answer = self.environment.step(taken)
        self._remember(action)
        observation, reward, terminated, truncated, info = self._parts(answer, 5, "step")
        reward = self._reward(reward)
        observation, goal = self._arrays(observation, "step")
        if not isinstance(info, dict):
            raise EnvironmentFault(f"{self.name} returned info {info!r}; it must be a dictionary")
        success = info.get("success", info.get("is_success"))
        duration = self._count(info.get("duration", 1), "duration")
        return Outcome(
            observation=observation,
            goal=goal,
            reward=reward,
            earned=self._reward(info.get("earned", reward)),
            duration=duration,
            terminated=self._flag(terminated, "terminated"),
            truncated=self._flag(truncated, "truncated"),
            success=None if success is None else bool(success),
            steps=self._count(info.get("steps", duration), "steps"),
            counts={name: float(info[name]) for name in self._counted if name in info},
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

    def state(self) -> dict[str, np.ndarray]:
        """Where the episode stands: `state/...` by the environment's own account, `seed` and
        `actions` where it gives none.
        """
        get = getattr(self.environment, "get_state", None)
        with self._calling("get_state"):
            given = get() if get else {}
        if not isinstance(given, dict):
            raise EnvironmentFault(f"{self.name} gave a state that is no dictionary of arrays")
        state = {f"state/{name}": np.asarray(value) for name, value in given.items()}
        for name, value in state.items():
            if value.dtype.kind not in "biuf":
                raise EnvironmentFault(
                    f"{self.name} gave {name.removeprefix('state/')} of type {value.dtype} in its "
                    "state; a checkpoint holds numbers only: return arrays of them"
                )
        if state or self._actions is None:
            return state
        actions = np.asarray(self._actions, np.float32).reshape(-1, self.sizes.action)
        return {"seed": np.asarray(self._seed), "actions": actions}

    def restore(
        self, state: dict[str, np.ndarray], observation: np.ndarray, goal: np.ndarray
    ) -> bool:
        """Put an episode back; False where that is not possible exactly. `observation` and `goal`
        are the last that the run saw.
        """
        given = {name.removeprefix("state/"): value for name, value in state.items()}
        try:
            if any(name.startswith("state/") for name in state):
                with self._calling("set_state"):
                    self.environment.set_state(given)  # type: ignore[attr-defined]  # has get_state
                return True
            return "actions" in state and self._lived_again(given, observation, goal)
        except EnvironmentFault:
            return False

    def _lived_again(
        self, state: dict[str, np.ndarray], observation: np.ndarray, goal: np.ndarray
    ) -> bool:
        seen = self.reset(int(state["seed"]))
        for action in state["actions"]:
            outcome = self.step(action)
            seen = (outcome.observation, outcome.goal)
            if outcome.ended:
                return False
        return all(
            one.tobytes() == other.tobytes()
            for one, other in zip(seen, (observation, goal), strict=True)
        )

    def _remember(self, action: np.ndarray) -> None:
        if self._actions is not None:
            self._actions.append(np.array(action, np.float32))
            if len(self._actions) > LONGEST:
                self._actions = None

    def close(self) -> None:
        self.environment.close()

    def _arrays(self, observation: Any, where: str) -> tuple[np.ndarray, np.ndarray]:
        flat = []
        for key, space in zip(self._keys, self._spaces, strict=True):
            label = key or "observation"
            if key is not None and (not isinstance(observation, dict) or key not in observation):
                raise EnvironmentFault(f"{self.name} returned no `{key}` from {where}")
            part = observation if key is None else observation[key]
            flat.append(self._numbers(part, space, label, where))
        return flat[0], flat[1] if len(flat) > 1 else np.zeros(0, np.float32)

    def _numbers(
        self, part: Any, space: gymnasium.spaces.Box, label: str, where: str
    ) -> np.ndarray:
        """One part of an observation as flat float32, or bytes of images, of the shape and kind of
        its space.
        """
        try:
            array = np.asarray(part)
        except ValueError:  # rows of unequal length
            array = np.asarray(None)
        if array.dtype.kind not in ("biuf" if space.dtype.kind == "f" else "biu"):  # type: ignore[union-attr]  # a Box has one
            raise EnvironmentFault(
                f"{self.name} returned {'None' if part is None else array.dtype} as its {label} "
                f"from {where}; its space holds {space.dtype}"
            )
        if array.shape != space.shape:
            raise EnvironmentFault(
                f"{self.name} returned a {label} of shape {array.shape} from {where}; "
                f"its space has {space.shape}"
            )
        with np.errstate(over="ignore"):  # what float32 cannot hold is infinite, and refused
            kind = self.sizes.observation_type if label != "desired_goal" else np.float32
            numbers = array.astype(kind).ravel()
        if not np.isfinite(numbers).all():
            entry = int(np.flatnonzero(~np.isfinite(numbers))[0])
            raise EnvironmentFault(
                f"{self.name} returned {array.ravel()[entry]} in entry {entry} of its {label} "
                f"from {where}; observations must be finite: check the environment"
            )
        return numbers

    def _parts(self, answer: Any, count: int, where: str) -> Any:
        if not isinstance(answer, tuple) or len(answer) != count:
            raise EnvironmentFault(
                f"{self.name} returned {type(answer).__name__} from {where}; "
                f"Gymnasium asks for a tuple of {count}"
            )
        return answer

    def _reward(self, reward: Any) -> float:
        array = np.asarray(reward)
        if array.size != 1 or array.dtype.kind not in "biuf":
            raise EnvironmentFault(
                f"{self.name} returned reward {reward!r}; a reward is one real number"
            )
        with np.errstate(over="ignore"):
            finite = np.isfinite(array.astype(np.float32)).all()
        if not finite:
            raise EnvironmentFault(
                f"{self.name} returned reward {array.item()}; rewards must be finite: "
                "check its step"
            )
        return float(array.item())

    def _count(self, count: Any, label: str) -> int:
        if not isinstance(count, int | np.integer) or count < 1:
            raise EnvironmentFault(
                f"{self.name} returned {label} {count!r}; it must be a whole number above 0"
            )
        return int(count)

    def _flag(self, flag: Any, label: str) -> bool:
        if np.ndim(flag) or np.asarray(flag).dtype.kind not in "bi":
            raise EnvironmentFault(f"{self.name} returned {label} {flag!r}; it must be a bool")
        return bool(flag)

    @contextlib.contextmanager
    def _calling(self, what: str) -> Iterator[None]:
        """An error inside the environment is its own, and is said as such."""
        self.busy = (what, time.monotonic())
        try:
            yield
        except GraspError:
            raise
        except Exception as problem:
            raise EnvironmentRaised(
                f"{self.name} raised {type(problem).__name__} in {what}: {problem}"
            ) from problem
        finally:
            self.busy = None


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


def _space(space: gymnasium.Space, key: str | None, name: str) -> gymnasium.spaces.Box:
    part = space if key is None else space[key]  # type: ignore[index]  # a Dict, by _keys
    if not isinstance(part, gymnasium.spaces.Box):
        raise UsageError(
            f"{name} has `{key}` in {part}; it must be a Box: flatten it with a wrapper"
        )
    return part
