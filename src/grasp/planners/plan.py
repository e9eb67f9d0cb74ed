"""What a planner is, and what it returns.

A planner is any callable `(model, affordances, root, key) -> Plan` for one root. A frozen dataclass
serves both as the planner and as its hyper-parameters.
"""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
from jaxtyping import Array, Float, PRNGKeyArray

from grasp.affordances import Affordances
from grasp.model import Model


class Plan(NamedTuple):
    """What a planner concludes at the root."""

    actions: Float[Array, "K action"]  # the candidates, one per affordance
    q_values: Float[Array, " K"]
    policy: Float[Array, " K"]  # sums to one; the agent samples its action from it
    value: Float[Array, ""]  # V(s0) = sum_i policy_i * q_i, what the affordances maximise


@runtime_checkable
class Planner(Protocol):
    """The plug-in contract: a plan for one root."""

    def __call__(
        self, model: Model, affordances: Affordances, root: Any, key: PRNGKeyArray
    ) -> Plan: ...


@runtime_checkable
class BatchPlanner(Planner, Protocol):
    """A planner with a faster way to plan for many roots at once than `jax.vmap`."""

    def batch(
        self, model: Model, affordances: Affordances, roots: Any, key: PRNGKeyArray
    ) -> Plan: ...


@runtime_checkable
class TemperedPlanner(Planner, Protocol):
    """A planner whose policy depends on the scale of Q."""

    def at_scale(self, spread: Float[Array, ""]) -> "TemperedPlanner":
        """The same planner for Q-values that typically differ by `spread` (choice 4)."""
        ...


def plan_batch(
    planner: Planner, model: Model, affordances: Affordances, roots: Any, key: PRNGKeyArray
) -> Plan:
    """One plan per root [B, ...]."""
    if isinstance(planner, BatchPlanner):
        return planner.batch(model, affordances, roots, key)
    keys = jax.random.split(key, jax.tree.leaves(roots)[0].shape[0])
    return jax.vmap(planner, in_axes=(None, None, 0, 0))(model, affordances, roots, keys)
