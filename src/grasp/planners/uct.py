"""UCT over learned affordances (Section 2, "Lookahead tree expansion").

H trajectories run from the root to depth D. At the root an affordance that was not tried yet goes
first, in random order; at a node seen before the affordance is

    argmax_b  Q(s, b) + (1/K) sqrt(N(s)) / (1 + n(s, b)) (c1 + log((N(s) + c2 + 1) / c2))

with MuZero's constants, a uniform prior, and Q normalised to [0, 1] by the least and the largest so
far; at a node not seen before it is a random one. The backup weighs Q by visits,

    Q(s, b) = r(s, b) + gamma^n V(s'),    V(s) = sum_b n(s, b) / N(s) Q(s, b).

The model is deterministic and every trajectory has full depth, so Q(s, b) is the mean return of
the trajectories that took b at s, and V(s0) the mean return of all H. Visits carry no gradient; the
returns do, along the chosen paths (choice 14).
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from grasp.affordances import Affordances
from grasp.errors import UsageError
from grasp.model import Model
from grasp.planners.complete_tree import Edges, expand
from grasp.planners.plan import Plan, checked


class Statistics(NamedTuple):
    """What the trajectories so far have found; no gradient passes."""

    children: Int[Array, "nodes K"]  # 0 where not tried: the root is nobody's child
    visits: Int[Array, "nodes K"]
    totals: Float[Array, "nodes K"]  # of the returns after each edge
    least: Float[Array, ""]  # Q so far
    largest: Float[Array, ""]


class Level(NamedTuple):
    """All K^d nodes of one depth, made once for all trajectories."""

    edges: Edges  # [K^d, K, ...]
    children: Any  # states [K^(d+1), ...]


@dataclasses.dataclass(frozen=True)
class UCT:
    trajectories: int = 50  # H
    depth: int = 3  # D (choice 13)
    c1: float = 1.25  # MuZero's constants
    c2: float = 19652.0

    def __post_init__(self) -> None:
        for name in ("trajectories", "depth"):
            if getattr(self, name) < 1:
                raise UsageError(
                    f"planner {name} is {getattr(self, name)}; it must be at least 1: "
                    f"use --planner.{name} {UCT.__dataclass_fields__[name].default}"
                )

    def check(self, K: int) -> None:
        """Refuse a budget that leaves an affordance untried at the root."""
        if self.trajectories < K:
            raise UsageError(
                f"UCT has {self.trajectories} trajectories for {K} affordances, so some would "
                f"never be tried; give at least {K}: --planner.trajectories {K}"
            )

    def __call__(
        self, model: Model, affordances: Affordances, root: Any, key: PRNGKeyArray
    ) -> Plan:
        H, D = self.trajectories, self.depth
        K = jax.eval_shape(affordances, root).shape[0]
        self.check(K)
        levels = self._levels(model, affordances, root, K)
        leaves = jax.vmap(model.value)(levels[-1].children) if len(levels) == D else None  # [K^D]
        priorities = jax.random.uniform(key, (H, D, K))  # of heads, where the choice is random

        def follow(statistics: Statistics, trajectory: Any):
            number, priority = trajectory
            fresh = 1 + number * D  # ids of the nodes that this trajectory may add
            nodes, heads, rewards, discounts = [jnp.zeros((), jnp.int32)], [], [], []
            place, state = jnp.zeros((), jnp.int32), root  # place: which of the K^d nodes
            for depth in range(D):
                node = nodes[-1]
                head = self._select(statistics, node, priority[depth], depth == 0)
                if depth < len(levels):
                    level = levels[depth]
                    rewards.append(level.edges.rewards[place, head])
                    discounts.append(level.edges.discounts[place, head])
                    place = place * K + head
                    if depth + 1 == len(levels):
                        state = jax.tree.map(lambda leaf, at=place: leaf[at], level.children)
                else:
                    step = model.step(state, affordances(state)[head])
                    rewards.append(step.reward)
                    discounts.append(step.discount)
                    state = step.state
                known = statistics.children[node, head]
                nodes.append(jnp.where(known > 0, known, fresh + depth))
                heads.append(head)
            returned = model.value(state) if leaves is None else leaves[place]
            returns = []
            for reward, discount in zip(reversed(rewards), reversed(discounts), strict=True):
                returned = reward + discount * returned
                returns.append(returned)
            path = (jnp.stack(nodes[:-1]), jnp.stack(heads), jnp.stack(nodes[1:]))  # each [D]
            statistics = _backed_up(statistics, *path, jnp.stack(returns[::-1]))
            return statistics, (heads[0], returned)

        empty = Statistics(
            children=jnp.zeros((1 + H * D, K), jnp.int32),
            visits=jnp.zeros((1 + H * D, K), jnp.int32),
            totals=jnp.zeros((1 + H * D, K)),
            least=jnp.full((), jnp.inf),
            largest=jnp.full((), -jnp.inf),
        )
        statistics, (firsts, returns) = jax.lax.scan(
            follow, empty, (jnp.arange(H, dtype=jnp.int32), priorities)
        )
        visits = statistics.visits[0].astype(returns.dtype)  # [K], all at least 1
        totals = jnp.sum(
            jax.nn.one_hot(firsts, K, dtype=returns.dtype) * returns[:, None], axis=0
        )  # [K]
        q_values, policy = totals / visits, visits / H
        return checked(Plan(affordances(root), q_values, policy, jnp.sum(policy * q_values)))

    def _levels(self, model: Model, affordances: Affordances, root: Any, K: int) -> list[Level]:
        """The first levels, whole: a node made beside others costs half of one made alone."""
        levels, states = [], jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], root)
        while len(levels) < self.depth and K ** (len(levels) + 1) <= 2 * self.trajectories:
            edges, states = expand(model, affordances, states)
            levels.append(Level(edges, states))
        return levels

    def _select(
        self,
        statistics: Statistics,
        node: Int[Array, ""],
        priority: Float[Array, " K"],
        at_root: bool,
    ) -> Int[Array, ""]:
        """The head to follow from a node; ties go to the first."""
        visits = statistics.visits[node]  # [K]
        seen = visits.sum()  # N(s)
        q_values = statistics.totals[node] / jnp.maximum(visits, 1)
        spread = statistics.largest - statistics.least
        normalised = jnp.where(
            spread > 0, (q_values - statistics.least) / jnp.where(spread > 0, spread, 1), q_values
        )
        normalised = jnp.where(visits > 0, normalised, 0)
        growth = self.c1 + jnp.log((seen + self.c2 + 1) / self.c2)
        bonus = jnp.sqrt(seen) / (1 + visits) * growth / visits.size
        best = jnp.argmax(normalised + bonus)
        at_random = jnp.argmax(jnp.where(visits == 0, priority, -1))  # of those not tried
        random = (visits == 0).any() if at_root else seen == 0
        return jnp.where(random, at_random, best).astype(jnp.int32)


def _backed_up(
    statistics: Statistics,
    nodes: Int[Array, " D"],
    heads: Int[Array, " D"],
    children: Int[Array, " D"],
    returns: Float[Array, " D"],
) -> Statistics:
    """The statistics with one more trajectory."""
    returns = jax.lax.stop_gradient(returns)
    visits = statistics.visits.at[nodes, heads].add(1)
    totals = statistics.totals.at[nodes, heads].add(returns)
    q_values = totals[nodes, heads] / visits[nodes, heads]  # [D]
    return Statistics(
        children=statistics.children.at[nodes, heads].set(children),
        visits=visits,
        totals=totals,
        least=jnp.minimum(statistics.least, q_values.min()),
        largest=jnp.maximum(statistics.largest, q_values.max()),
    )
