"""Environments seen as images: rendered, or by images of their own, each shown with those before.

    reset, step  ->  [stack, size, size, channels] uint8, the oldest frame first

An episode's first frame fills the stack. An action is repeated `action_repeat` times or until the
episode ends; rewards are summed, `info["steps"]` counts the steps, and the decision lasts 1: the
discount is per decision (choice 28).
"""

import dataclasses
from collections import deque
from collections.abc import Callable
from typing import Any, Literal

import gymnasium
import numpy as np

from grasp.errors import EnvironmentFault, UsageError, check_range
from grasp.images import REDUCTION, Images

Quality = Literal["fast", "full"]


@dataclasses.dataclass(frozen=True)
class Sight:
    """How a task is seen and acted on."""

    action_repeat: int = 1  # environment steps that one decision lasts (choice 28)
    image_size: int = 64  # height and width that images are brought to
    frame_stack: int = 3  # images that one observation holds
    quality: Quality = "fast"  # rendering without shadows, reflections and smooth edges, or with
    random_shift: int = 2  # most pixels that images are moved by while learning; 0: none
    filters: int = 32  # of the encoder's first layer

    def __post_init__(self) -> None:
        check_range(self, ("action_repeat", "frame_stack", "filters"), 1, 1_000, "1 to 1000")
        check_range(self, ("random_shift",), 0, self.image_size - 1, "0 to --image-size - 1")
        if self.image_size % REDUCTION or not 0 < self.image_size <= 512:
            raise UsageError(
                f"--image-size is {self.image_size}; it must be a multiple of {REDUCTION} up to 512"
            )


class Repeated(gymnasium.Wrapper):
    """An environment whose actions are repeated."""

    def __init__(self, environment: gymnasium.Env, action_repeat: int):
        super().__init__(environment)
        self.action_repeat = action_repeat
        self.watch: Callable[[], None] | None = None  # called after every step of the environment
        if action_repeat > 1 and getattr(environment, "has_options", False):
            raise UsageError("options last as long as they last; leave --action-repeat at 1")

    @property
    def has_options(self) -> bool:
        return bool(getattr(self.env, "has_options", False))

    def step(self, action: Any):
        if self.action_repeat == 1:
            return self.env.step(action)
        total: Any = 0.0
        for steps in range(1, self.action_repeat + 1):
            observation, reward, terminated, truncated, info = self.env.step(action)
            total += reward
            if self.watch:
                self.watch()
            if terminated or truncated or steps == self.action_repeat:
                return observation, total, terminated, truncated, {**info, "steps": steps}
        raise AssertionError("a decision takes at least one step")

    def get_state(self) -> dict[str, Any]:
        """The environment's own state; nothing where it has none to give."""
        get = getattr(self.env, "get_state", None)
        return get() if get else {}

    def set_state(self, state: dict[str, Any]) -> Any:
        return self.env.set_state(state)  # type: ignore[attr-defined]  # has get_state


class Frames(Repeated):
    """An environment whose observations are stacks of images; a `desired_goal` stays beside them.

    `photograph` renders the environment as it stands; without it the observations themselves are
    the images.
    """

    def __init__(
        self,
        environment: gymnasium.Env,
        sight: Sight,
        name: str,
        photograph: Callable[[], Any] | None = None,
    ):
        super().__init__(environment, sight.action_repeat)
        self.name, self.sight, self._photograph = name, sight, photograph
        self._frames: deque[np.ndarray] = deque(maxlen=sight.frame_stack)
        space: Any = environment.observation_space
        goal = space.spaces if isinstance(space, gymnasium.spaces.Dict) else {}
        self._seen: Any = goal.get("observation", space)
        side = sight.image_size
        channels = 3 if photograph else self._seen.shape[-1]
        self.images = Images(
            sight.frame_stack, side, side, channels, sight.filters, sight.random_shift
        )
        shown = gymnasium.spaces.Box(0, 255, self.images[:4], np.uint8)
        self._keeps_goal = "desired_goal" in goal
        self.observation_space = (
            gymnasium.spaces.Dict(observation=shown, desired_goal=goal["desired_goal"])
            if self._keeps_goal
            else shown
        )
        if photograph:  # what cannot be rendered is refused before anything is made of it
            environment.reset(seed=0)
            self._frame(None)

    def reset(self, **arguments: Any):
        observation, info = self.env.reset(**arguments)
        self._frames.extend([self._frame(observation)] * self.sight.frame_stack)
        return self._stacked(observation), info

    def step(self, action: Any):
        observation, reward, terminated, truncated, info = super().step(action)
        self._frames.append(self._frame(observation))
        return self._stacked(observation), reward, terminated, truncated, info

    def get_state(self) -> dict[str, Any]:
        state = super().get_state()
        return state | {"frames": np.stack(self._frames)} if state else {}

    def set_state(self, state: dict[str, Any]) -> None:
        inner = {name: value for name, value in state.items() if name != "frames"}
        super().set_state(inner)
        self._frames.extend(np.asarray(state["frames"], np.uint8))

    def _stacked(self, observation: Any) -> Any:
        frames = np.stack(self._frames)
        if not self._keeps_goal:
            return frames
        return {"observation": frames, "desired_goal": observation["desired_goal"]}

    def _frame(self, observation: Any) -> np.ndarray:
        """The newest image [size, size, channels], checked."""
        if self._photograph:
            return resized(checked(self._photographed(), (None, None, 3), self.name), self.sight)
        seen = observation["observation"] if isinstance(observation, dict) else observation
        return resized(checked(seen, self._seen.shape, self.name), self.sight)

    def _photographed(self) -> Any:
        assert self._photograph is not None  # asked only then
        try:
            return self._photograph()
        except UsageError:
            raise
        except Exception as problem:  # whatever a renderer raises
            first = f"{type(problem).__name__}: {problem}".splitlines()[0]
            raise UsageError(f"{self.name} cannot be rendered ({first})") from problem


def checked(image: Any, shape: tuple[int | None, ...], name: str) -> np.ndarray:
    """An image of the shape expected, None for any length, and of uint8; others are refused."""
    array = np.asarray(image)
    fits = array.ndim == len(shape) and all(
        wanted in (None, length) for wanted, length in zip(shape, array.shape, strict=True)
    )
    if array.dtype != np.uint8 or not fits:
        sides = zip(("height", "width", "channels"), shape, strict=True)
        wanted = " x ".join(side if length is None else str(length) for side, length in sides)
        given = "None" if image is None else f"{array.dtype} of shape {array.shape}"
        raise EnvironmentFault(
            f"{name} gave {given} as an image; it must be uint8 of shape {wanted}"
        )
    return array


def resized(image: np.ndarray, sight: Sight) -> np.ndarray:
    """The image at the size asked for, each pixel the mean of those it covers."""
    from PIL import Image

    side = sight.image_size
    if image.shape[:2] == (side, side):
        return image
    flat = image[..., 0] if image.shape[-1] == 1 else image
    found = Image.fromarray(flat).resize((side, side), Image.Resampling.BOX)
    return np.asarray(found).reshape(side, side, image.shape[-1])


def shows_images(space: gymnasium.Space, name: str) -> bool:
    """Whether observations are images; what looks like one but is of another kind is refused."""
    parts = space.spaces if isinstance(space, gymnasium.spaces.Dict) else {}
    seen = parts.get("observation", space)
    if not isinstance(seen, gymnasium.spaces.Box) or sum(n >= REDUCTION for n in seen.shape) < 2:
        return False
    if seen.dtype != np.uint8 and (len(seen.shape) != 3 or min(seen.shape) > 4):
        return False  # a block of numbers
    if seen.dtype != np.uint8 or len(seen.shape) != 3 or seen.shape[-1] not in (1, 3, 4):
        raise UsageError(
            f"{name} shows images as {seen.dtype} of shape {seen.shape}; they must be uint8, "
            "height x width x 1, 3 or 4 channels, "
            "one at a time: wrap it, and leave stacking to --frame-stack"
        )
    return True


def seen_by(
    environment: gymnasium.Env,
    sight: Sight,
    name: str,
    photograph: Callable[[], Any] | None = None,
) -> gymnasium.Env:
    """The environment as the agent sees and acts on it; itself where there is nothing to change."""
    if photograph or shows_images(environment.observation_space, name):
        return Frames(environment, sight, name, photograph)
    return Repeated(environment, sight.action_repeat) if sight.action_repeat > 1 else environment
