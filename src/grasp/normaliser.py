"""Running mean and deviation of what the agent observes (choice 20), kept with the agent's
parameters.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float


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
