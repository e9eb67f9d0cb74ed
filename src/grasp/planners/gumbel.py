"""Gumbel search over learned affordances (beyond the paper: "Policy improvement by planning with
Gumbel", Danihelka et al., 2022).

A simulation walks from the root to an affordance not tried before and adds one node there, with the
value network's word for it. At the root, sequential halving gives the simulations to ever fewer
affordances; below, an affordance is taken where its visits lag most behind the improved policy

    pi(b|s) = softmax(log prior(b|s) + sigma(Q(s, b))),

with Q completed by a mixed value where an affordance was not tried. The search is `mctx`'s and
carries no gradient. What it backed up, Q(s0, b), is the mean over the simulations that began with b
of

    G = r_1 + gamma^n_1 (r_2 + ... gamma^n_d v(s_d)),

so where a gradient is asked for, and only there, each simulation's path is walked again.
"""

import dataclasses
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import mctx
from jaxtyping import Array, Float, Int, PRNGKeyArray

from grasp.affordances import Affordances, PriorAffordances
from grasp.errors import UsageError
from grasp.model import Model
from grasp.planners.plan import Plan, plan_one


class Search(NamedTuple):
    """What mctx found from a root; node 0 is the root, node i was made by simulation i."""

    parents: Int[Array, " nodes"]
    heads: Int[Array, " nodes"]  # that led from the parent to the node
    visits: Int[Array, " K"]  # at the root, as the rest
    policy: Float[Array, " K"]
    prior: Float[Array, " K"]
    q_values: Float[Array, " K"]  # 0 where not tried
    value: Float[Array, ""]  # the value network's


class Path(NamedTuple):
    """From the root to a node."""

    state: Any
    earned: Float[Array, ""]  # discounted rewards on the way
    discount: Float[Array, ""]  # of what follows
    first: Int[Array, ""]  # head at the root


@dataclasses.dataclass(frozen=True)
class Gumbel:
    simulations: int = 16
    prior: Literal["uniform", "learned"] = "uniform"  # over the heads
    noise: float = 1.0  # scale of the Gumbel noise at the root; 0 searches without chance

    def __post_init__(self) -> None:
        if self.simulations < 1:
            raise UsageError(
                f"planner simulations is {self.simulations}; it must be at least 1: "
                "use --planner.simulations 16"
            )
        if not 0 <= self.noise < float("inf"):
            raise UsageError(
                f"planner noise is {self.noise}; it must be at least 0: use --planner.noise 1"
            )

    def __call__(
        self, model: Model, affordances: Affordances, root: Any, key: PRNGKeyArray
    ) -> Plan:
        return plan_one(self, model, affordances, root, key)

    def batch(self, model: Model, affordances: Affordances, roots: Any, key: PRNGKeyArray) -> Plan:
        found = self.search(model, affordances, roots, key)
        q_values = _q_values(jax.vmap(partial(_walked, model, affordances)), roots, found)  # [B, K]
        actions = jax.vmap(affordances)(roots)  # [B, K, action]
        values = jnp.sum(found.policy * q_values, axis=-1)
        return Plan(actions, q_values, found.policy, values)

    def search(
        self, model: Model, affordances: Affordances, roots: Any, key: PRNGKeyArray
    ) -> Search:
        """The searches of B roots; nothing in them has a gradient."""

        def judged(states: Any) -> tuple[Float[Array, "B K"], Float[Array, " B"]]:
            logits, values = jax.vmap(self._logits(affordances)), jax.vmap(model.value)
            return jax.lax.stop_gradient((logits(states), values(states)))

        def follow(_: Any, key: Any, heads: Any, states: Any):
            del key  # the model is deterministic
            steps = jax.vmap(lambda state, head: model.step(state, affordances(state)[head]))(
                states, heads
            )
            steps = jax.lax.stop_gradient(steps)
            logits, values = judged(steps.state)
            output = {"prior_logits": logits, "value": values}
            output |= {"reward": steps.reward, "discount": steps.discount}
            return mctx.RecurrentFnOutput(**output), steps.state

        roots = jax.lax.stop_gradient(roots)
        logits, values = judged(roots)
        start = {"prior_logits": logits, "value": values, "embedding": roots}
        found = mctx.gumbel_muzero_policy(
            params=(),
            rng_key=key,
            root=mctx.RootFnOutput(**start),
            recurrent_fn=follow,
            num_simulations=self.simulations,
            max_num_considered_actions=logits.shape[-1],
            gumbel_scale=self.noise,
        )
        tree: Any = found.search_tree
        return Search(
            parents=tree.parents,
            heads=tree.action_from_parent,
            visits=tree.children_visits[:, 0],
            policy=jnp.asarray(found.action_weights),
            prior=jax.nn.softmax(logits),
            q_values=_at_root(tree),
            value=values,
        )

    def _logits(self, affordances: Affordances):
        """state -> log-odds of the heads."""
        if self.prior == "uniform":
            return lambda state: jnp.zeros(jax.eval_shape(affordances, state).shape[:1])
        if not isinstance(affordances, PriorAffordances):
            raise UsageError(
                "the planner's prior is learned, and these affordances have none; "
                "give them a method prior(state) or take prior='uniform'"
            )
        return affordances.prior


def _q_values(walked: Any, roots: Any, found: Search) -> Float[Array, "B K"]:
    """Q at the roots as the search found it, with the gradient of `walked(roots, found)`, which
    gives the same numbers for more work.
    """
    walked, learned = jax.closure_convert(walked, roots, found)  # what it closes over: parameters

    @jax.custom_vjp
    def q_values(roots: Any, found: Search, learned: Any) -> Float[Array, "B K"]:
        del roots, learned
        return jax.vmap(_completed)(found, found.q_values)

    def forward(roots: Any, found: Search, learned: Any):
        return q_values(roots, found, learned), (roots, found, learned)

    def backward(inputs: Any, gradient: Float[Array, "B K"]):
        roots, found, learned = inputs
        _, back = jax.vjp(lambda roots, learned: walked(roots, found, *learned), roots, learned)
        of_roots, of_learned = back(gradient)
        return of_roots, None, of_learned

    q_values.defvjp(forward, backward)
    return q_values(roots, found, learned)


def _walked(model: Model, affordances: Affordances, root: Any, found: Search) -> Float[Array, " K"]:
    """Q(s0, .) with gradient; a node always comes after its parent."""
    nodes, K = found.parents.size, found.visits.size
    start = Path(root, jnp.zeros(()), jnp.ones(()), jnp.zeros((), jnp.int32))
    paths = jax.tree.map(lambda leaf: jnp.zeros((nodes, *leaf.shape), leaf.dtype), start)
    paths = jax.tree.map(lambda leaf, first: leaf.at[0].set(first), paths, start)

    def walk(paths: Path, node: Int[Array, ""]):
        parent, head = found.parents[node], found.heads[node]
        at = jax.tree.map(lambda leaf: leaf[parent], paths)
        step = model.step(at.state, affordances(at.state)[head])
        path = Path(
            state=step.state,
            earned=at.earned + at.discount * step.reward,
            discount=at.discount * step.discount,
            first=jnp.where(parent == 0, head, at.first),
        )
        returned = path.earned + path.discount * model.value(path.state)
        paths = jax.tree.map(lambda leaf, new: leaf.at[node].set(new), paths, path)
        return paths, (path.first, returned)

    _, (firsts, returns) = jax.lax.scan(walk, paths, jnp.arange(1, nodes))
    began = jax.nn.one_hot(firsts, K, dtype=returns.dtype)  # [simulations, K]
    return _completed(found, (began * returns[:, None]).sum(0) / jnp.maximum(found.visits, 1))


def _at_root(tree: Any) -> Float[Array, "B K"]:
    """r + gamma^n V of the root's children, as mctx has them."""
    rewards, discounts = tree.children_rewards[:, 0], tree.children_discounts[:, 0]
    return rewards + discounts * tree.children_values[:, 0]


def _completed(found: Search, q_values: Float[Array, " K"]) -> Float[Array, " K"]:
    return jnp.where(found.visits > 0, q_values, _mixed_value(found, q_values))


def _mixed_value(found: Search, q_values: Float[Array, " K"]) -> Float[Array, ""]:
    """What stands for an affordance that was not tried: the root's value, and the tried ones' by
    their prior (Danihelka et al., Appendix D).
    """
    tried = jnp.where(found.visits > 0, found.prior, 0)
    mean = jnp.sum(tried * q_values) / jnp.maximum(tried.sum(), 1e-20)
    simulations = found.visits.sum()
    return (found.value + simulations * mean) / (simulations + 1)
