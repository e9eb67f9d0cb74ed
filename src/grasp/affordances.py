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
from functools import partial
from typing import Any, Literal, Protocol, runtime_checkable

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


@runtime_checkable
class LearnedAffordances(Protocol):
    """What an agent asks of the module whose parameters it learns."""

    def __call__(self, state: AbstractState) -> Float[Array, "K action"]: ...

    def raw(self, state: AbstractState) -> Float[Array, "K action"]:
        """The heads before tanh, or whatever saturates beyond 2 in size (choice 6)."""
        ...


@runtime_checkable
class PriorAffordances(Protocol):
    """Affordances that also say beforehand how likely each is to be chosen."""

    def __call__(self, state: Any) -> Float[Array, "K action"]: ...

    def prior(self, state: Any) -> Float[Array, " K"]:
        """Log-odds of the K affordances."""
        ...


class AffordanceModule(eqx.Module):
    """K affordance heads on one trunk, and where asked for, a prior over them."""

    mappings: MLP | None  # all heads' outputs side by side; None: unconditioned
    offsets: Float[Array, "K action"]
    prior_head: MLP | None
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
        hidden: int = 2,
        prior: bool = False,
        norm: bool = False,  # of the hidden layers
        key: PRNGKeyArray,
    ):
        """Heads start apart and unsaturated: spread offsets, small outputs (choice 6)."""
        mappings_key, offsets_key = jax.random.split(key)
        prior_key = jax.random.fold_in(key, 1)
        shape = (num_affordances, action_size)
        self.conditioning = conditioning
        self.offsets = initial_spread * jax.random.uniform(offsets_key, shape, minval=-1, maxval=1)
        inputs = {"goal": [features, goal_size], "state": [features], "none": None}[conditioning]
        network = partial(MLP, width=width, norm=norm)
        self.mappings = inputs and network(
            inputs, num_affordances * action_size, hidden=hidden, key=mappings_key
        )
        self.prior_head = (
            network([features, goal_size], num_affordances, hidden=2, key=prior_key)
            if prior
            else None
        )

    def __call__(self, state: AbstractState) -> Float[Array, "K action"]:
        return jnp.tanh(self.raw(state))

    def raw(self, state: AbstractState) -> Float[Array, "K action"]:
        """The heads before tanh; large values are saturated and learn nothing."""
        if self.mappings is None:
            return self.offsets
        read = state if self.conditioning == "goal" else (state.features,)
        return self.mappings(*read).reshape(self.offsets.shape) + self.offsets

    def prior(self, state: AbstractState) -> Float[Array, " K"]:
        """Log-odds that the planner will choose each head; equal where none are learned. It may
        read the goal whatever the heads read: it chooses among them.
        """
        if self.prior_head is None:
            return jnp.zeros(self.offsets.shape[0])
        return self.prior_head(*state)


class Smoothed(eqx.Module):
    """Affordances that miss by a little, each state in its own way, so that learning judges what
    lies around an action and not the action alone (choice 25).
    """

    affordances: LearnedAffordances
    deviation: float | int = eqx.field(static=True)
    key: PRNGKeyArray

    def __call__(self, state: AbstractState) -> Float[Array, "K action"]:
        actions = self.affordances(state)
        place = jax.lax.bitcast_convert_type(state.features[0], jnp.uint32)
        noise = jax.random.normal(jax.random.fold_in(self.key, place), actions.shape)
        return jnp.clip(actions + self.deviation * noise, -1, 1)

    def prior(self, state: AbstractState) -> Float[Array, " K"]:
        assert isinstance(self.affordances, PriorAffordances)  # or nobody would ask
        return self.affordances.prior(state)


def smoothed(
    affordances: LearnedAffordances, deviation: float | int, key: PRNGKeyArray
) -> LearnedAffordances | Smoothed:
    return Smoothed(affordances, deviation, key) if deviation else affordances
