"""Running mean and deviation of what the agent observes (choice 20), kept with the agent's
parameters.
"""

from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from grasp.images import are_images


class Normaliser(NamedTuple):
    """Welford's sums over all rows seen so far."""

    seen: Float[Array, ""]
    mean: Float[Array, " size"]
    squares: Float[Array, " size"]  # sum of squared distances from the mean

    @classmethod
    def empty(cls, size: int) -> "Normaliser":
        return cls(jnp.zeros(()), jnp.zeros(size), jnp.zeros(size))

    def including(self, rows: Float[Array, "B size"]) -> "Normaliser":
        """The statistics with B more rows (Chan's parallel form)."""
        seen = self.seen + rows.shape[0]
        mean, share = rows.mean(0), rows.shape[0] / seen
        moved = mean - self.mean
        squares = jnp.sum((rows - mean[None]) ** 2, axis=0) + moved**2 * self.seen * share
        return Normaliser(seen, self.mean + moved * share, self.squares + squares)

    def __call__(self, values: Float[Array, "*batch size"]) -> Float[Array, "*batch size"]:
        """Unit deviation, clipped at ten of them; a constant entry becomes 0, and nothing changes
        before data.
        """
        deviation = jnp.sqrt(self.squares / jnp.maximum(self.seen, 1))
        scale = jnp.where(deviation > 1e-4, deviation, 1.0)
        mean, scale = (jnp.broadcast_to(part, values.shape) for part in (self.mean, scale))
        scaled = (values - mean) / scale
        return jnp.where(self.seen > 0, jnp.clip(scaled, -10, 10), values)


@runtime_checkable
class Observing(Protocol):
    """An agent's state that remembers the scale of what it observed."""

    @property
    def observation_normaliser(self) -> Normaliser: ...
    @property
    def goal_normaliser(self) -> Normaliser: ...


State = TypeVar("State", bound=Observing)


def observed(state: State, observations: Any, goals: Any) -> State:
    """The state after B more observations and goals; images have a scale of their own."""
    seen = state.observation_normaliser
    if not are_images(observations):
        seen = seen.including(observations)
    return eqx.tree_at(
        lambda s: (s.observation_normaliser, s.goal_normaliser),
        state,
        (seen, state.goal_normaliser.including(goals)),
    )


def normalised(state: Observing, observations: Any, goals: Any) -> tuple[Any, Any]:
    if are_images(observations):
        return observations, state.goal_normaliser(goals)
    return state.observation_normaliser(observations), state.goal_normaliser(goals)
