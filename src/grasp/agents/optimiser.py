"""Adam behind a clip of the gradient's norm, at a rate that may fall as learning goes on."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int


@dataclasses.dataclass(frozen=True)
class Optimiser:
    rate: float
    clip: float  # of the gradient's global norm
    falls_to: float = 1.0  # share of the rate that is left in the end
    hold: int = 0  # updates before it begins to fall
    fall: int = 1  # updates over which it falls, linearly

    def init(self, parameters: Any) -> optax.OptState:
        return self._adam.init(eqx.filter(parameters, eqx.is_array))

    def descend(
        self, parameters: Any, gradient: Any, state: optax.OptState, updates: Int[Array, ""]
    ) -> tuple[Any, optax.OptState, Float[Array, ""]]:
        """Parameters after one step, the optimiser's state, and the gradient's norm before
        clipping.
        """
        changes, state = self._adam.update(gradient, state, eqx.filter(parameters, eqx.is_array))
        if self.falls_to != 1:
            left = self.share(updates)
            changes = jax.tree.map(lambda change: left * change, changes)
        return eqx.apply_updates(parameters, changes), state, optax.tree.norm(gradient)

    def share(self, updates: Int[Array, ""]) -> Float[Array, ""]:
        """1 up to update `hold`, `falls_to` from update `hold + fall` on."""
        done = jnp.clip((updates - self.hold) / max(self.fall, 1), 0, 1)
        return 1 + (self.falls_to - 1) * done

    @property
    def _adam(self) -> optax.GradientTransformation:
        return optax.chain(optax.clip_by_global_norm(self.clip), optax.adam(self.rate, eps=1e-8))
