"""The two losses of Algorithm 1 and the targets they share.

    v_j      = (1 - lambda) u_j + lambda (r_j + gamma^{n_j} v_{j+1}),   v_{i+n} = u_{i+n},
               u_j = max_b Q_target(encode_target(x_j), b);   the paper's lambda is 1
    L_model  = sum_j (r_j - reward(s_j, a_j))^2 + w (v_j - value(s_j))^2
               [+ (log n_j - log duration(s_j, a_j))^2 for options]
               [+ cross-entropy of continuation(s_j, a_j) with whether the episode went on]
               [+ the terms of choices 7 and 34, which tie s_j to the encoding of x_j]
    L_afford = - sum_j V(s_j),   V the planner's root value

where the paper's w is 1 (choices 1, 2, 10, 30 and 39 say how this differs from its letter).

A loss is differentiated with respect to its first argument and nothing else: the model loss never
sees the affordances, and the affordance loss takes the model as a constant.
"""

from functools import partial

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from grasp.affordances import AffordanceModule, LearnedAffordances, smoothed
from grasp.model import AbstractState, Model, Prediction, ValueEquivalentModel
from grasp.planners.plan import Plan, Planner, plan_batch
from grasp.replay import Window

CONTRAST_TEMPERATURE = 0.1  # of cosines, which lie between -1 and 1

Metrics = dict[str, Float[Array, "..."]]


def value_targets(
    rewards: Float[Array, " n"],
    discounts: Float[Array, " n"],
    planned: Float[Array, " n"],
    trace: float | int,
) -> Float[Array, " states"]:
    """v_j = (1 - trace) u_j + trace (r_j + d_j v_{j+1}) backwards from v_n = u_n, where `planned`
    holds u_1 .. u_n. The first state was not planned from: v_0 = r_0 + d_0 v_1.
    """

    def back(later, decision):
        reward, discount, value = decision
        target = (1 - trace) * value + trace * (reward + discount * later)
        return target, target

    last = planned[-1]
    recorded = (rewards[1:], discounts[1:], planned[:-1])
    _, targets = jax.lax.scan(back, last, recorded, reverse=True)  # v_1 .. v_{n-1}
    targets = jnp.append(targets, last)
    return jnp.append(rewards[:1] + discounts[:1] * targets[:1], targets)


def window_targets(
    model: ValueEquivalentModel,
    affordances: LearnedAffordances,
    planner: Planner,
    window: Window,
    key: PRNGKeyArray,
    *,
    bootstrap: str,
    trace: float | int,
    smoothing: float | int = 0,
) -> Float[Array, "B states"]:
    """Value targets of every state of every window, with the parameters given (the target ones)."""
    B, n = window.rewards.shape
    first = n if trace == 1 else 1  # of the states that are planned from: n-step returns need one
    states = jax.vmap(jax.vmap(model.encode))(
        window.observations[:, first:], window.goals[:, first:]
    )
    states = jax.tree.map(lambda leaf: jax.lax.collapse(leaf, 0, 2), states)
    if bootstrap == "planner":
        plan_key, noise_key = jax.random.split(key)
        considered = smoothed(affordances, smoothing, noise_key)
        values = plan_batch(planner, model, considered, states, plan_key).q_values.max(-1)
    else:
        values = jax.vmap(model.value)(states)
    values = jnp.broadcast_to(values.reshape(B, -1), (B, n))
    values = jnp.where(window.terminated[:, None] & _final(window), 0, values)
    discounts = model.discount**window.durations
    return jax.vmap(partial(value_targets, trace=trace))(window.rewards, discounts, values)


def unroll(model: ValueEquivalentModel, window: Window) -> tuple[AbstractState, Prediction]:
    """States s_i .. s_{i+n} from x_i along the recorded actions [B, n+1, ...], and all that is
    predicted on the way [B, n, ...].
    """
    state = jax.vmap(model.encode)(window.observations[:, 0], window.goals[:, 0])

    def along(state, action):
        predicted = jax.vmap(model.predict)(state, action)
        return predicted.state, predicted

    actions = jnp.swapaxes(window.actions, 0, 1)  # [n, B, action]
    _, steps = jax.lax.scan(along, state, actions, unroll=True)
    steps = jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), steps)  # [B, n, ...]
    states = jax.tree.map(
        lambda first, rest: jnp.concatenate([first[:, None], rest], axis=1), state, steps.state
    )
    return states, steps


def model_loss(
    model: ValueEquivalentModel,
    target_model: ValueEquivalentModel,
    window: Window,
    targets: Float[Array, "B states"],
    *,
    consistency: float,
    contrast: float = 0.0,
    value_weight: float = 1.0,
    judge_first: bool = True,
) -> tuple[Float[Array, ""], tuple[AbstractState, Metrics]]:
    """L_model, averaged over the window; also the unrolled states, the affordances' roots.

    With `judge_first` the value of the first state is learned too, from its recorded decision
    (choice 30).

    `consistency` weighs a term beyond the paper (choice 7): the unrolled state should be where the
    target encoder puts the observation that really came. `contrast` weighs another (choice 34):
    it should be told from the observations that came in the other windows.
    """
    states, steps = unroll(model, window)
    first = 0 if judge_first else 1  # of the states whose value is learned
    judged = jax.tree.map(lambda leaf: leaf[:, first:], states)
    values = jax.vmap(jax.vmap(model.values))(judged)  # [B, states, networks]
    taken = window.durations > 0  # [B, n] decisions, not padding
    # A model that predicts the end need not be taught what follows it.
    counts = window.valid & taken if model.predicts_termination else window.valid
    weights = counts.astype(jnp.float32)  # [B, n]
    begun = jnp.ones_like(weights[:, :1])
    weights_of_states = jnp.concatenate([begun, weights], axis=1)[:, first:]
    reward_loss = _mean_over((steps.reward - window.rewards) ** 2, weights)
    value_errors = jnp.mean((values - targets[:, first:, None]) ** 2, axis=-1)  # [B, states]
    value_loss = _mean_over(value_errors, weights_of_states)
    lengths = jnp.log(steps.duration) - jnp.log(jnp.maximum(window.durations, 1))
    duration_loss = _mean_over(lengths**2, weights * taken)
    seen = jax.vmap(jax.vmap(target_model.encode))(window.observations[:, 1:], window.goals[:, 1:])
    distance = jnp.mean((states.features[:, 1:] - seen.features) ** 2, axis=-1)  # [B, n]
    consistency_loss = _mean_over(distance, weights)
    loss = reward_loss + value_weight * value_loss + duration_loss
    loss += consistency * consistency_loss
    contrast_loss = jnp.zeros(())
    if contrast > 0:
        contrast_loss = _mean_over(confusion(states.features[:, 1:], seen.features), weights)
        loss += contrast * contrast_loss
    termination_loss = jnp.zeros(())
    if model.predicts_termination:
        surprise = optax.sigmoid_binary_cross_entropy(
            steps.continuation, 1.0 - last_of_all(window).astype(jnp.float32)
        )
        termination_loss = _mean_over(surprise, weights)
        loss += termination_loss
    metrics = {
        "train/reward_loss": reward_loss,
        "train/value_loss": value_loss,
        "train/duration_loss": duration_loss,
        "train/termination_loss": termination_loss,
        "train/consistency_loss": consistency_loss,
        "train/contrast_loss": contrast_loss,
        "train/value_mean": jnp.mean(values),
        "train/target_mean": jnp.mean(targets[:, first:]),
    }
    if target_model.offset is not None:
        lacks = targets[:, 1:] - jax.vmap(jax.vmap(target_model.value))(seen)  # [B, n]
        metrics["train/value_lacks"] = _mean_over(lacks, weights)
    return loss, (states, metrics)


def confusion(predicted: Float[Array, "B n m"], seen: Float[Array, "B n m"]) -> Float[Array, "B n"]:
    """Cross-entropy of picking, by their cosines, the observation that followed out of those that
    followed at the same place of all B windows.
    """
    directions = [
        x / (jnp.linalg.norm(x, axis=-1, keepdims=True) + 1e-6) for x in (predicted, seen)
    ]
    cosines = jnp.einsum("bnm,cnm->nbc", *directions)  # [n, B, B]
    chances = jax.nn.log_softmax(cosines / CONTRAST_TEMPERATURE, axis=-1)
    return -jnp.diagonal(chances, axis1=1, axis2=2).T


def last_of_all(window: Window) -> Bool[Array, "B n"]:
    """The decisions after which the episode ended for good."""
    return window.terminated[:, None] & (window.durations > 0) & _final(window)


def _final(window: Window) -> Bool[Array, "B n"]:
    """The decisions after which the window has no more."""
    ended = window.durations[:, 1:] == 0  # [B, n-1] padding follows
    return jnp.concatenate([ended, jnp.ones_like(ended, shape=(len(ended), 1))], axis=1)


def affordance_loss(
    affordances: LearnedAffordances,
    model: Model,
    planner: Planner,
    roots: AbstractState,
    key: PRNGKeyArray,
    *,
    saturation_penalty: float,
    smoothing: float | int = 0,
) -> tuple[Float[Array, ""], Plan]:
    """Minus the planner's value at each root [R, ...]; the gradient goes through the whole tree.

    The penalty (choice 6) holds the heads where tanh still has a slope. A learned prior over the
    heads follows the policy that the search made of it.
    """
    plan_key, noise_key = jax.random.split(key)
    considered = smoothed(affordances, smoothing, noise_key)
    plans = plan_batch(planner, model, considered, roots, plan_key)
    raw = jax.vmap(affordances.raw)(roots)  # [R, K, action]
    excess = jnp.maximum(jnp.abs(raw) - 2, 0)  # tanh(2) = 0.96
    loss = -jnp.mean(plans.value) + saturation_penalty * jnp.mean(excess**2)
    if isinstance(affordances, AffordanceModule) and affordances.prior_head is not None:
        logits = jax.vmap(affordances.prior)(jax.lax.stop_gradient(roots))  # [R, K]
        policy = jax.lax.stop_gradient(plans.policy)
        loss += jnp.mean(optax.safe_softmax_cross_entropy(logits, policy))
    return loss, plans


def _mean_over(errors: Float[Array, "B n"], weights: Float[Array, "B n"]) -> Float[Array, ""]:
    return jnp.sum(errors * weights) / jnp.maximum(jnp.sum(weights), 1)


def head_metrics(plans: Plan) -> Metrics:
    """Whether the heads are alive: apart, unsaturated, told apart by Q, and in use."""
    K = plans.q_values.shape[-1]
    distances = plans.actions[:, :, None] - plans.actions[:, None]  # [R, K, K, action]
    apart = jnp.sqrt(jnp.mean(distances**2, axis=-1)).sum((-1, -2)) / max(K * (K - 1), 1)
    entropy = -jnp.sum(plans.policy * jnp.log(plans.policy + 1e-20), axis=-1)
    chosen = jnp.mean(jax.nn.one_hot(jnp.argmax(plans.q_values, -1), K), axis=0)  # [K]
    return {
        "affordances/head_spread": jnp.mean(apart),  # root mean square distance of two, 0 to 2
        "affordances/saturated": jnp.mean(jnp.abs(plans.actions) > 0.95),
        "affordances/chosen": chosen,
        "planner/q_spread": jnp.mean(plans.q_values.max(-1) - plans.q_values.min(-1)),
        "planner/entropy": jnp.mean(entropy),
        "planner/value": jnp.mean(plans.value),
    }
