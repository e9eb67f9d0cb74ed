"""The affordance module: K mappings from a state to an action or option (Section 2, "Affordance
module").

Three kinds differ only in what they read of the state (choice 11):

    goal-conditioned   GA-K   features and goal
    state-conditioned  SA-K   features
    unconditioned      A-K    nothing: K learned actions, the same everywhere

All end in tanh, so an affordance always lies in [-1, 1]^action; the environment's own bounds are
met by rescaling.
"""

from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from grasp.model import AbstractState
from grasp.networks import MLP

Affordances = Callable[
    [Any], Float[Array, "K action"]
]  # what a planner asks for: any state -> K actions
Conditioning = Literal["goal", "state", "none"]


class AffordanceModule(eqx.Module):
    """K affordance heads on one trunk."""

    mappings: MLP | None  # all heads' outputs side by side; None: unconditioned
    offsets: Float[Array, "K action"]
    conditioning: Conditioning = eqx.field(static=True)

    def __init__(
        self,
        *,
        conditioning: Conditioning,
        features: int,
        goal_size: int,
        action_size: int,
        num_affordances: int,
        width: int,
        initial_spread: float,
        key: PRNGKeyArray,
    ):
        """Heads start apart and unsaturated: spread offsets, small outputs (choice 6)."""
        mappings_key, offsets_key = jax.random.split(key)
        shape = (num_affordances, action_size)
        self.conditioning = conditioning
        self.offsets = initial_spread * jax.random.uniform(offsets_key, shape, minval=-1, maxval=1)
        inputs = {"goal": [features, goal_size], "state": [features], "none": None}[conditioning]
        self.mappings = inputs and MLP(
            inputs, num_affordances * action_size, width=width, hidden=2, key=mappings_key
        )

    def __call__(self, state: AbstractState) -> Float[Array, "K action"]:
        return jnp.tanh(self.raw(state))

    def raw(self, state: AbstractState) -> Float[Array, "K action"]:
        """The heads before tanh; large values are saturated and learn nothing."""
        if self.mappings is None:
            return self.offsets
        read = state if self.conditioning == "goal" else (state.features,)
        return self.mappings(*read).reshape(self.offsets.shape) + self.offsets
