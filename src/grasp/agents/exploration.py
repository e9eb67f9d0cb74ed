"""How an agent departs from its plan while it gathers (choice 5): a head drawn from the policy,
Gaussian noise on its action, actions anywhere, and stretches without any of these.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from grasp.agents.agent import Decision
from grasp.planners.plan import Plan


def greedy(plan: Plan) -> Decision:
    """The affordance of highest probability, as it was proposed."""
    heads = jnp.argmax(plan.policy, axis=-1)
    return Decision(_of_head(plan.actions, heads), heads, plan)


def exploring(
    plan: Plan,
    keys: list[PRNGKeyArray],
    deviation: Float[Array, ""],
    random_share: float | int,
    in_greedy_stretch: Bool[Array, " B"],
) -> Decision:
    """A head drawn from the policy, with noise; a share of actions anywhere instead; in a greedy
    stretch what `greedy` takes.
    """
    head_key, noise_key, random_key, uniform_key = keys
    sampled = jax.random.categorical(head_key, jnp.log(plan.policy))  # [B]
    heads = jnp.where(in_greedy_stretch, jnp.argmax(plan.policy, axis=-1), sampled)
    chosen = _of_head(plan.actions, heads)  # [B, action]
    noisy = jnp.clip(chosen + deviation * jax.random.normal(noise_key, chosen.shape), -1, 1)
    at_random = jax.random.bernoulli(random_key, random_share, heads.shape)
    uniform = jax.random.uniform(uniform_key, chosen.shape, minval=-1, maxval=1)
    explored = jnp.where(at_random[:, None], uniform, noisy)
    return Decision(jnp.where(in_greedy_stretch[:, None], chosen, explored), heads, plan)


def greedy_stretches(
    decisions: Int[Array, ""], lanes: int, length: int, share: Float[Array, ""]
) -> Bool[Array, " B"]:
    """Which environments are in a greedy stretch; the same stretches in every run.

    A greedy policy that is stuck just beside its aim is freed by noise, so a replay of noisy
    decisions never shows that staying there earns nothing (choice 5).
    """
    stretch = decisions // (lanes * length)
    key = jax.random.fold_in(jax.random.key(5), stretch)
    return jax.random.bernoulli(key, share, (lanes,))


def _of_head(actions: Float[Array, "B K action"], heads: Int[Array, " B"]):
    return jnp.take_along_axis(actions, heads[:, None, None], axis=1)[:, 0]
