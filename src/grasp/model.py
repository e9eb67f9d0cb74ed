"""The value-equivalent model (Section 2, "Value-equivalent model representation").

Encoder, dynamics, reward, value and duration are five networks over one abstract state

    s            = encode(x)
    e            = embed(s, b)
    s', n        = dynamics(e), duration(e)
    r, c, v      = reward(e, s'), continuation(e, s'), value(s)

trained so that rewards and values come out right; no observation is ever reconstructed. What an
option does is learned once, in the embedding, and the reward sees what came of it (choice 24). The
goal rides along unchanged (choice 11): embedding and dynamics never see it, the others do. c is the
chance that the episode goes on (choice 10), and gamma^n c discounts what follows.

Everything here is written for one state; callers batch with `jax.vmap`.
"""

from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, Real

from grasp.images import ImageEncoder, Images
from grasp.networks import MLP, elu, normal


class AbstractState(NamedTuple):
    """A node of the tree: learned features, and the goal they are judged by."""

    features: Float[Array, " m"]
    goal: Float[Array, " goal"]  # empty where the task has none


class Step(NamedTuple):
    """What the model says follows an action or option."""

    reward: Float[Array, ""]  # discounted inside the option
    discount: Float[Array, ""]  # gamma^n, n the expected duration, times the chance to go on
    state: Any


@runtime_checkable
class Model(Protocol):
    """All that a planner asks of a model; the state may be any pytree."""

    def step(self, state: Any, action: Float[Array, " action"]) -> Step: ...

    def value(self, state: Any) -> Float[Array, ""]: ...


class Prediction(NamedTuple):
    """A step with what it is made of: what the losses compare with the replay."""

    reward: Float[Array, ""]
    duration: Float[Array, ""]
    continuation: Float[Array, ""]  # log-odds that the episode goes on
    state: AbstractState


class ValueEquivalentModel(eqx.Module):
    """The five networks of the paper; widths and depths are Appendix A's."""

    encoder: MLP | ImageEncoder
    embedding: MLP
    dynamics: MLP
    reward_head: MLP
    continuation_head: MLP | None
    value_heads: tuple[MLP, ...]
    duration_head: MLP | None
    offset: Float[Array, ""] | None  # of all values; moved by the agent, by no loss (choice 38)
    discount: float = eqx.field(static=True)
    layer_norm: bool = eqx.field(static=True)
    value_scale: float = eqx.field(static=True)

    def __init__(
        self,
        *,
        observation_size: int,
        goal_size: int,
        action_size: int,
        features: int,
        width: int,
        num_values: int,
        discount: float,
        layer_norm: bool,
        predicts_termination: bool,
        options: bool,
        key: PRNGKeyArray,
        normalises_layers: bool = False,
        value_scale: float = 1.0,  # what the outputs of the value networks are multiplied by
        centred: bool = False,  # whether values have an offset
        images: Images | None = None,  # where observations are images
    ):
        keys = jax.random.split(key, 7)
        network = partial(MLP, width=width, norm=normalises_layers)
        judged = (features, goal_size)
        self.encoder = (
            network([observation_size], features, hidden=2, key=keys[0])
            if images is None
            else ImageEncoder(images, features, width=width, norm=normalises_layers, key=keys[0])
        )
        self.embedding = network([features, action_size], width, hidden=1, key=keys[1])
        self.dynamics = network([width], features, hidden=1, key=keys[2])
        followed = [width, features, goal_size]
        self.reward_head = network(followed, 1, hidden=1, key=keys[3])
        self.continuation_head = (
            network(followed, 1, hidden=1, key=keys[6]) if predicts_termination else None
        )
        self.value_heads = tuple(
            network(judged, 1, hidden=2, key=value_key)
            for value_key in jax.random.split(keys[4], num_values)
        )
        self.duration_head = (
            network([width, goal_size], 1, hidden=1, key=keys[5]) if options else None
        )
        self.offset = jnp.zeros(()) if centred else None
        self.discount = discount
        self.layer_norm = layer_norm
        self.value_scale = value_scale

    def encode(
        self, observation: Real[Array, " observation"], goal: Float[Array, " goal"]
    ) -> AbstractState:
        return AbstractState(features=self._bounded(self.encoder(observation)), goal=goal)

    def step(self, state: AbstractState, action: Float[Array, " action"]) -> Step:
        predicted = self.predict(state, action)
        goes_on = jax.nn.sigmoid(predicted.continuation)
        discount = self.discount**predicted.duration * goes_on
        return Step(predicted.reward, discount, predicted.state)

    def predict(self, state: AbstractState, action: Float[Array, " action"]) -> Prediction:
        embedded = elu(self.embedding(state.features, action))
        features = self._bounded(self.dynamics(embedded))
        followed = (embedded, features, state.goal)
        goes_on = self.continuation_head
        return Prediction(
            reward=self.reward_head(*followed)[0],
            duration=self._duration(embedded, state.goal),
            continuation=goes_on(*followed)[0] if goes_on else jnp.full((), jnp.inf),
            state=AbstractState(features=features, goal=state.goal),
        )

    @property
    def predicts_termination(self) -> bool:
        return self.continuation_head is not None

    def value(self, state: AbstractState) -> Float[Array, ""]:
        """The least of the value networks: where they disagree, the state is not yet known."""
        return self.values(state).min()

    def values(self, state: AbstractState) -> Float[Array, " networks"]:
        values = self.value_scale * jnp.concatenate([head(*state) for head in self.value_heads])
        return values if self.offset is None else values + jax.lax.stop_gradient(self.offset)

    def _duration(
        self, embedded: Float[Array, " m"], goal: Float[Array, " goal"]
    ) -> Float[Array, ""]:
        """Expected length n of an option, at least 1; a primitive action lasts 1 (choice 12)."""
        if self.duration_head is None:
            return jnp.ones(())
        return 1 + jax.nn.softplus(self.duration_head(embedded, goal)[0])

    def _bounded(self, features: Float[Array, " m"]) -> Float[Array, " m"]:
        """Zero mean and unit variance over the features, so that no unroll drifts away."""
        return normal(features) if self.layer_norm else features
