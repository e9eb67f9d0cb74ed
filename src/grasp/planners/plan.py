"""What a planner is, and what it returns.

A planner is any callable `(model, affordances, root, key) -> Plan` for one root. A frozen dataclass
serves both as the planner and as its hyper-parameters.
"""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, PRNGKeyArray

from grasp.affordances import Affordances
from grasp.errors import Diverged
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


@runtime_checkable
class BoundedPlanner(Planner, Protocol):
    """A planner that does not serve every number of affordances."""

    def check(self, K: int) -> None:
        """Refuse K affordances with one sentence, or pass."""
        ...


def plan_batch(
    planner: Planner, model: Model, affordances: Affordances, roots: Any, key: PRNGKeyArray
) -> Plan:
    """One plan per root [B, ...]."""
    if isinstance(planner, BatchPlanner):
        return planner.batch(model, affordances, roots, key)
    keys = jax.random.split(key, jax.tree.leaves(roots)[0].shape[0])
    return jax.vmap(planner, in_axes=(None, None, 0, 0))(model, affordances, roots, keys)


def plan_one(
    planner: BatchPlanner, model: Model, affordances: Affordances, root: Any, key: PRNGKeyArray
) -> Plan:
    """The plan of one root, by a planner that plans for many."""
    alone = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], root)
    plans = planner.batch(model, affordances, alone, key)
    return checked(jax.tree.map(lambda leaf: leaf[0], plans))


def checked(plan: Plan) -> Plan:
    """The plan, or an error where the model led to numbers that are not finite. Inside a compiled
    function nothing is known yet; there its caller checks what comes out.
    """
    known = not isinstance(plan.q_values, Tracer)
    if known and not np.isfinite(plan.q_values).all():
        raise Diverged(
            f"the planner's Q-values are {np.asarray(plan.q_values).tolist()}: the model's step or "
            "value returned a number that is not finite; check them, or the state they were given"
        )
    return plan
