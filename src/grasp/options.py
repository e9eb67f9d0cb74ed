"""Options: actions that last (Section 2, "Agent-environment interaction").

An option is a point of a continuous option space. Its policy acts until it terminates, and the
agent sees one decision: the discounted sum of rewards, the duration n, and the observation after
it,

    reward = sum_{k < n} gamma^k r_k,      n <= cap,

whatever ended it: the policy's own termination, the cap, or the end of the episode. Planner,
losses, replay and agents never ask whether a decision was an option.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import gymnasium
import numpy as np

from grasp.errors import CorruptCheckpoint, UsageError
from grasp.files import read_arrays, write_arrays

_SEEN = "last observation/"  # in the state of an environment whose actions are options


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
        self.watch: Callable[[], None] | None = None  # called after every primitive step
        self._observation: Any = None

    def reset(self, **arguments: Any):
        self._observation, info = self.env.reset(**arguments)
        return self._observation, info

    def get_state(self) -> dict[str, Any]:
        """The primitive environment's state and the observation that the next option starts from:
        an option is never interrupted. Nothing where the environment has no state to give, or where
        a wrapper keeps some of it to itself.
        """
        get = getattr(self.env, "get_state", None)
        if get is None:
            return {}
        seen = self._observation if isinstance(self._observation, dict) else {"": self._observation}
        return get() | {f"{_SEEN}{key}": np.array(part) for key, part in seen.items()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Put a state back; that of the primitive environment alone will do where its own
        `set_state` returns the observation, as those of our tasks do.
        """
        inner = {name: value for name, value in state.items() if not name.startswith(_SEEN)}
        observation = self.env.set_state(inner)  # type: ignore[attr-defined]  # has get_state
        seen = {k.removeprefix(_SEEN): np.array(v) for k, v in state.items() if k.startswith(_SEEN)}
        self._observation = seen.get("", seen) if seen else observation

    def step(self, action: np.ndarray):
        option = np.clip(action, self.options.space.low, self.options.space.high)
        total, earned, discount, duration, path = 0.0, 0.0, 1.0, 0, [self._observation]
        while True:
            primitive, last = self.options.act(self._observation, option)
            self._observation, reward, terminated, truncated, info = self.env.step(primitive)
            total += discount * float(reward)
            earned += float(reward)
            discount *= self.discount
            duration += 1
            if self.watch:
                self.watch()
            if self.record:
                path.append(self._observation)
            if terminated or truncated or last or duration >= self.options.cap:
                break
            if self.options.ended(self._observation, option):
                break
        info = info | {"duration": duration, "earned": earned}
        info |= {"path": path} if self.record else {}
        return self._observation, total, terminated, truncated, info


@runtime_checkable
class Reaching(Protocol):
    """An option space of the kind "be there": what a task must say to have its options pretrained.

    `body` is what the options see of an observation; all functions take leading axes.
    """

    task: str
    space: gymnasium.spaces.Box
    cap: int
    outputs: int  # numbers that the policy network puts out
    final: Any  # primitive action that ends an option once it is there, or None

    def body(self, observation: Any) -> np.ndarray: ...

    def achieved(self, body: np.ndarray) -> np.ndarray:
        """The option that a body has reached: hindsight asks for it."""
        ...

    def inputs(self, body: np.ndarray, option: np.ndarray) -> np.ndarray:
        """What the policy network reads."""
        ...

    def reached(self, body: np.ndarray, option: np.ndarray) -> np.ndarray | np.bool: ...

    def primitive(self, output: np.ndarray) -> Any:
        """The primitive action of one output of the policy network."""
        ...


@runtime_checkable
class Shaped(Protocol):
    """A `Reaching` whose pretraining has a reward of its own and can fail."""

    def failed(self, body: np.ndarray) -> np.ndarray | np.bool:
        """Whether a body is where no option leads on."""
        ...

    def reward(self, body: np.ndarray, after: np.ndarray, option: np.ndarray) -> Any: ...


@runtime_checkable
class Symmetric(Protocol):
    """A `Reaching` whose network sees the body turned towards the option.

    Outputs are kept as the body makes them; the network puts them out as it sees the body.
    """

    def from_front(
        self, body: np.ndarray, option: np.ndarray, output: np.ndarray
    ) -> np.ndarray: ...

    def to_front(self, body: np.ndarray, option: np.ndarray, output: np.ndarray) -> np.ndarray: ...


class ReachingOptions:
    """Options that go where they say, by a pretrained policy network on the host.

    A primitive step costs a few small products; numpy makes them in a tenth of the time that one
    dispatch to a compiled function takes.
    """

    def __init__(self, reaching: Reaching, layers: list[tuple[np.ndarray, np.ndarray]]):
        self.reaching = reaching
        self.space = reaching.space
        self.cap = reaching.cap
        self.layers = layers  # weights [in, out] and biases [out]
        self._symmetric = reaching if isinstance(reaching, Symmetric) else None

    def act(self, observation: Any, option: np.ndarray) -> tuple[Any, bool]:
        body = self.reaching.body(observation)
        if self.reaching.final is not None and self.reaching.reached(body, option):
            return self.reaching.final, True
        return self.reaching.primitive(self.output(body, option)), False

    def ended(self, observation: Any, option: np.ndarray) -> bool:
        if self.reaching.final is not None:  # ends with its final action
            return False
        return bool(self.reaching.reached(self.reaching.body(observation), option))

    def output(self, body: np.ndarray, option: np.ndarray) -> np.ndarray:
        signal = self.reaching.inputs(body, option).astype(np.float32)
        for weights, bias in self.layers[:-1]:
            signal = np.maximum(signal @ weights + bias, 0)
        weights, bias = self.layers[-1]
        output = np.tanh(signal @ weights + bias)
        if self._symmetric is not None:
            output = self._symmetric.from_front(body, option, output)
        return output


WEIGHTS = Path(__file__).parent / "weights"  # one folder per task, made by `grasp pretrain`


def shipped_options(reaching: Reaching, folder: Path = WEIGHTS) -> ReachingOptions:
    """The pretrained options of a task; a file that is not what was written is refused."""
    arrays, facts = read_arrays(folder / reaching.task)
    if facts.get("task") != reaching.task:
        raise CorruptCheckpoint(
            f"{folder / reaching.task} holds options of {facts.get('task')!r}, not of "
            f"{reaching.task!r}; make them with `grasp pretrain {reaching.task}`"
        )
    count = len(arrays) // 2
    layers = [(arrays[f"weights{index}"], arrays[f"bias{index}"]) for index in range(count)]
    return ReachingOptions(reaching, layers)


def write_options(options: ReachingOptions, report: dict[str, Any], folder: Path = WEIGHTS) -> Path:
    """The policy network with its report, its SHA-256 beside it."""
    arrays = {}
    for index, (weights, bias) in enumerate(options.layers):
        arrays |= {f"weights{index}": weights, f"bias{index}": bias}
    write_arrays(folder / options.reaching.task, arrays, report)
    return folder / options.reaching.task
