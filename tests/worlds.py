"""Toy models with known answers, and probe environments."""

from typing import Any, NamedTuple

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from grasp.affordances import AffordanceModule
from grasp.model import AbstractState, Step, ValueEquivalentModel


class Position(NamedTuple):
    """A state of a hand-made model: any pytree will do."""

    place: Any


class HandMade:
    """Smooth closed-form dynamics, with a duration that depends on state and action."""

    def step(self, state: Position, action: Any) -> Step:
        place = 0.9 * state.place + jnp.tanh(action) * jnp.array([0.5, -0.3])
        reward = jnp.sin(state.place[0] + action[1]) - 0.2 * jnp.sum(action**2)
        duration = 1 + 0.5 * (1 + jnp.cos(state.place[1] + action[0]))
        return Step(reward=reward, discount=0.99**duration, state=Position(place))

    def value(self, state: Position) -> Any:
        return jnp.cos(state.place[0]) + 0.5 * state.place[1]


class HandMadeAffordances(NamedTuple):
    """K actions, smooth in the state, and how likely each is."""

    weights: Any  # [K, 2, 2], what learns

    def __call__(self, state: Position) -> Any:
        return jnp.tanh(self.weights @ state.place)

    def prior(self, state: Position) -> Any:
        return jnp.arange(self.weights.shape[0]) * state.place[0]


def hand_made_affordances(weights: Any) -> HandMadeAffordances:
    return HandMadeAffordances(weights)


def small_model(
    key: Any, *, goal: int = 0, options: bool = False, termination: bool = False
) -> ValueEquivalentModel:
    """A real network, small."""
    return ValueEquivalentModel(
        observation_size=3,
        goal_size=goal,
        action_size=2,
        features=8,
        width=16,
        num_values=2,
        discount=0.99,
        layer_norm=True,
        predicts_termination=termination,
        options=options,
        key=key,
    )


def small_affordances(
    key: Any,
    K: int,
    *,
    goal: int = 0,
    conditioning: Any = "goal",
    hidden: int = 2,
    prior: bool = False,
) -> Any:
    return AffordanceModule(
        conditioning=conditioning,
        features=8,
        goal_size=goal,
        action_size=2,
        num_affordances=K,
        width=16,
        initial_spread=1.0,
        hidden=hidden,
        prior=prior,
        key=key,
    )


def random_states(key: Any, count: int, *, goal: int = 0) -> AbstractState:
    features, goals = jax.random.split(key)
    return AbstractState(
        jax.random.normal(features, (count, 8)), jax.random.normal(goals, (count, goal))
    )


def all_zero(tree: Any) -> bool:
    return all(bool(jnp.all(leaf == 0)) for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_array)))


class Probe(gymnasium.Env):
    """A world of one to a few steps whose value is known.

    kind "constant": reward 1 in a one-step episode. kind "action": one step, reward 1 - (a -
    0.5)^2: best action 0.5, value 1. kind "goal": one step, reward 1 - (a - g)^2 with a goal g of
    -0.6 or 0.6: best action g. kind "delayed": two steps, reward 1 at the end: value 0.99 at the
    first state, 1 at the second. kind "endless": truncated after 4 steps, reward 1 a step: value 1
    / (1 - 0.9) under a discount of 0.9. kind "final": the second step ends it for good with reward
    0 after reward 1: value 1, then 0.
    """

    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, kind: str):
        self.kind = kind
        box = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
        self.observation_space = (
            gymnasium.spaces.Dict(observation=box, desired_goal=box) if kind == "goal" else box
        )

    def reset(self, *, seed: int | None = None, options: Any = None):
        super().reset(seed=seed)
        self.steps = 0
        self.goal = np.float32(self.np_random.choice([-0.6, 0.6]))
        return self._observation(), {}

    def step(self, action: np.ndarray):
        self.steps += 1
        reward, terminated, truncated = {
            "constant": (1.0, True, False),
            "action": (1 - float(action[0] - 0.5) ** 2, True, False),
            "goal": (1 - float(action[0] - self.goal) ** 2, True, False),
            "delayed": (float(self.steps == 2), self.steps == 2, False),
            "endless": (1.0, False, self.steps == 4),
            "final": (float(self.steps == 1), self.steps == 2, False),
        }[self.kind]
        return self._observation(), reward, terminated, truncated, {}

    def _observation(self):
        if self.kind == "endless":
            return np.zeros(1, np.float32)
        place = np.array([self.steps / 2 - 0.5], np.float32)
        if self.kind != "goal":
            return place
        return {"observation": place, "desired_goal": np.array([self.goal])}


class Counting(gymnasium.Env):
    """Observation t, reward t: data that encodes its own index. Episodes of `length`, the end as
    asked.
    """

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float32)
    action_space = gymnasium.spaces.Box(np.array([-2, 0]), np.array([6, 1]), dtype=np.float64)

    def __init__(self, length: int = 5, faults: dict[int, Any] | None = None):
        self.length, self.faults, self.total = length, faults or {}, 0

    def reset(self, *, seed: int | None = None, options: Any = None):
        super().reset(seed=seed)
        self.steps = 0
        return np.array([0.0], np.float32), {}

    def step(self, action: np.ndarray):
        self.steps += 1
        self.total += 1
        self.last_action = action
        observation, reward = np.array([self.steps], np.float32), float(self.steps)
        observation, reward = self.faults.get(self.total, (observation, reward))
        return observation, reward, False, self.steps == self.length, {}


class Pictures(gymnasium.Env):
    """Images that encode their index: every pixel is 20 * episode + t, or as `faults` say by step.

    The reward is t; episodes of `length` are truncated.
    """

    metadata = {"render_modes": ["rgb_array"]}
    observation_space: Any = gymnasium.spaces.Box(0, 255, (16, 16, 1), np.uint8)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, length: int = 5, faults: dict[int, Any] | None = None):
        self.length, self.faults = length, faults or {}
        self.episode, self.steps = -1, 0

    def reset(self, *, seed: int | None = None, options: Any = None):
        super().reset(seed=seed)
        self.episode = self.episode + 1 if seed is None else seed % 10
        self.steps = 0
        return self._image(), {}

    def step(self, action: np.ndarray):
        self.steps += 1
        return self._image(), float(self.steps), False, self.steps == self.length, {}

    def _image(self) -> Any:
        image = np.full(self.observation_space.shape, 20 * self.episode + self.steps, np.uint8)
        return self.faults.get(self.steps, image)
