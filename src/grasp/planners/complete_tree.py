"""Complete K-ary lookahead to a fixed depth (Section 2, "Action selection via planning tree").

With b ranging over the K affordances of s, and n the expected duration of b,

    Q(s, b) = r(s, b) + gamma^n V(s')
    pi(b|s) = softmax(Q(s, .) / temperature)
    V(s)    = sum_b pi(b|s) Q(s, b),      and at a leaf V(s) is the value network.

Nothing is detached: the gradient of V(s0) with respect to the affordances flows through both pi and
Q at every level, as the paper derives. The tree is expanded level by level, all nodes of a level in
one call of the model.
"""

import dataclasses
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import tyro
from jaxtyping import Array, Float, PRNGKeyArray

from grasp.affordances import Affordances
from grasp.errors import UsageError
from grasp.model import Model
from grasp.planners.plan import Plan, plan_one


class Edges(NamedTuple):
    """What leaves the N nodes of one level."""

    actions: Float[Array, "N K action"]
    rewards: Float[Array, "N K"]
    discounts: Float[Array, "N K"]


@dataclasses.dataclass(frozen=True)
class CompleteTree:
    depth: int = 2  # D; the paper tuned it on Fish-Swim
    temperature: Annotated[float | Float[Array, ""], tyro.conf.arg(constructor=float)] = 1.0  # tau

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise UsageError(
                f"planner depth is {self.depth}; it must be at least 1: use --planner.depth 2"
            )
        if isinstance(self.temperature, float | int) and not self.temperature > 0:
            raise UsageError(
                f"planner temperature is {self.temperature}; it must be above 0: "
                "use --planner.temperature 0.1"
            )

    def at_scale(self, spread: Float[Array, ""]) -> "CompleteTree":
        return dataclasses.replace(self, temperature=self.temperature * spread)

    def __call__(
        self, model: Model, affordances: Affordances, root: Any, key: PRNGKeyArray
    ) -> Plan:
        return plan_one(self, model, affordances, root, key)

    def batch(self, model: Model, affordances: Affordances, roots: Any, key: PRNGKeyArray) -> Plan:
        """The plans of B roots: `jax.vmap` of one, with all nodes of a level on one axis."""
        del key  # deterministic
        return self._plan(model, affordances, roots, self.depth)

    def _plan(self, model: Model, affordances: Affordances, states: Any, depth: int) -> Plan:
        """Q, pi and V of N nodes with `depth` levels below them."""
        edges, children = expand(model, affordances, states)
        if depth == 1:
            values = jax.vmap(model.value)(children)  # [N * K]
        else:
            values = self._plan(model, affordances, children, depth - 1).value  # [N * K]
        q_values = edges.rewards + edges.discounts * values.reshape(edges.rewards.shape)  # [N, K]
        policy = jax.nn.softmax(q_values / self.temperature)  # [N, K]
        return Plan(edges.actions, q_values, policy, jnp.sum(policy * q_values, axis=-1))


def expand(model: Model, affordances: Affordances, states: Any) -> tuple[Edges, Any]:
    """All K children of N nodes: the edges, and the N*K child states, parents outermost."""
    actions = jax.vmap(affordances)(states)  # [N, K, action]
    children = jax.vmap(jax.vmap(model.step, in_axes=(None, 0)))(states, actions)  # [N, K, ...]
    edges = Edges(actions, children.reward, children.discount)
    return edges, jax.tree.map(lambda leaf: jax.lax.collapse(leaf, 0, 2), children.state)
