"""Gumbel search: mctx called by hand, bandits with known answers, gradients along the paths."""

import equinox as eqx
import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from grasp.errors import UsageError
from grasp.losses import affordance_loss
from grasp.model import Step
from grasp.planners.gumbel import Gumbel
from worlds import (
    HandMade,
    Position,
    all_zero,
    hand_made_affordances,
    random_states,
    small_affordances,
    small_model,
)

ROOT = Position(jnp.array([0.3, -0.8]))


class Bandit:
    """One step; head b earns what the table says of it, and nothing follows."""

    def step(self, state, action):
        return Step(reward=state[action[0].astype(int)], discount=jnp.zeros(()), state=state)

    def value(self, state):
        return jnp.zeros(())


def numbered(K):
    """Affordances that are their own numbers."""
    return lambda state: jnp.arange(K, dtype=jnp.float32)[:, None]


def by_hand(model, affordances, root, simulations, key):
    """mctx's policy for one root, written out."""

    def follow(params, rng_key, action, embedding):
        place = embedding[0]
        step = model.step(Position(place), affordances(Position(place))[action[0]])
        output = mctx.RecurrentFnOutput(
            reward=step.reward[None],
            discount=step.discount[None],
            prior_logits=jnp.zeros((1, K)),
            value=model.value(step.state)[None],
        )
        return output, step.state.place[None]

    K = affordances(root).shape[0]
    start = mctx.RootFnOutput(
        prior_logits=jnp.zeros((1, K)), value=model.value(root)[None], embedding=root.place[None]
    )
    return mctx.gumbel_muzero_policy((), key, start, follow, simulations)


@pytest.mark.parametrize(("K", "simulations"), [(2, 4), (3, 16), (4, 16), (4, 50), (5, 3)])
def test_visits_policy_and_values_are_mctx_s_own(K, simulations):
    @jax.jit
    def both(key):
        affordances = hand_made_affordances(jax.random.normal(key, (K, 2, 2)))
        planner = Gumbel(simulations)
        plan = planner(HandMade(), affordances, ROOT, key)
        found = planner.search(HandMade(), affordances, Position(ROOT.place[None]), key)
        return plan, found, by_hand(HandMade(), affordances, ROOT, simulations, key)

    for seed in range(3):
        plan, found, theirs = both(jax.random.key(seed))
        summary = theirs.search_tree.summary()
        np.testing.assert_array_equal(found.visits, summary.visit_counts)
        np.testing.assert_allclose(plan.policy, theirs.action_weights[0], rtol=1e-5)
        tried = np.asarray(summary.visit_counts[0]) > 0
        np.testing.assert_allclose(plan.q_values[tried], summary.qvalues[0][tried], rtol=1e-4)


@pytest.mark.parametrize("budget", [4, 8, 16, 32, 64])
def test_the_best_arm_of_a_bandit_is_found(budget):
    arms = jax.random.normal(jax.random.key(1), (20, 4))
    plans = Gumbel(budget).batch(Bandit(), numbered(4), arms, jax.random.key(2))
    np.testing.assert_array_equal(plans.policy.argmax(-1), arms.argmax(-1))
    np.testing.assert_allclose(plans.q_values, arms, rtol=1e-5)


def test_sequential_halving_tries_the_better_half_more():
    visits = Gumbel(16, noise=0.0).search(
        Bandit(), numbered(4), jnp.array([[0.0, 1.0, 2.0, 3.0]]), jax.random.key(0)
    )
    assert visits.visits.tolist() == [[2, 2, 6, 6]]


def test_an_affordance_not_tried_counts_as_the_mixed_value():
    """Two simulations of four heads: (v + 2 * mean of the tried) / 3, v = 0."""
    arms = jnp.array([1.0, 2.0, 3.0, 4.0])
    found = Gumbel(2).search(Bandit(), numbered(4), arms[None], jax.random.key(0))
    plan = Gumbel(2)(Bandit(), numbered(4), arms, jax.random.key(0))
    tried = np.asarray(found.visits[0]) > 0
    assert tried.sum() == 2
    np.testing.assert_allclose(plan.q_values[tried], arms[tried])
    np.testing.assert_allclose(plan.q_values[~tried], 2 * arms[tried].mean() / 3, rtol=1e-5)


def test_gradient_is_that_of_finite_differences_along_the_chosen_paths(key):
    with jax.enable_x64(True):
        weights = jnp.asarray(np.random.default_rng(1).normal(size=(3, 2, 2)))
        root = Position(jnp.array([0.3, -0.8], jnp.float64))
        planner, model = Gumbel(10), HandMade()
        found = planner.search(
            model, hand_made_affordances(weights), Position(root.place[None]), key
        )
        parents, heads = np.asarray(found.parents[0]), np.asarray(found.heads[0])
        policy = np.asarray(found.policy[0])

        def value_of_paths(weights):
            affordances, returns = hand_made_affordances(weights), [[], [], []]
            for node in range(1, 11):
                path = []
                while node:
                    path.insert(0, int(heads[node]))
                    node = int(parents[node])
                state, total, discount = root, 0.0, 1.0
                for head in path:
                    step = model.step(state, affordances(state)[head])
                    total += discount * float(step.reward)
                    discount *= float(step.discount)
                    state = step.state
                returns[path[0]].append(total + discount * float(model.value(state)))
            return sum(
                share * np.mean(values) for share, values in zip(policy, returns, strict=True)
            )

        def value(weights):
            return planner(model, hand_made_affordances(weights), root, key).value

        ours, gradient = jax.jit(jax.value_and_grad(value))(weights)
        assert float(ours) == pytest.approx(value_of_paths(weights), rel=1e-6)
        for index in np.ndindex(weights.shape):
            change = jnp.zeros_like(weights).at[index].set(1e-6)
            difference = value_of_paths(weights + change) - value_of_paths(weights - change)
            np.testing.assert_allclose(gradient[index], difference / 2e-6, rtol=1e-5, atol=1e-8)


def test_a_learned_prior_leads_the_search():
    """Equal arms: the visits go where the prior says."""

    class Prior:
        def __call__(self, state):
            return numbered(4)(state)

        def prior(self, state):
            return jnp.array([0.0, 5.0, 0.0, 0.0])

    plan = Gumbel(16, prior="learned")(Bandit(), Prior(), jnp.ones(4), jax.random.key(0))
    assert plan.policy[1] > 0.9


def test_a_learned_prior_follows_the_search(key):
    """Its gradient is that of the cross-entropy with the policy, and the heads do not feel it."""
    model = small_model(key)
    affordances = small_affordances(key, 3, prior=True)
    roots = random_states(key, 4)
    planner = Gumbel(6, prior="learned")

    def loss(affordances):
        return affordance_loss(affordances, model, planner, roots, key, saturation_penalty=0.0)

    gradient, plans = eqx.filter_jit(eqx.filter_grad(loss, has_aux=True))(affordances)

    def surprise(prior_head):
        logits = jax.vmap(lambda state: prior_head(*state))(roots)
        return -jnp.mean(jnp.sum(plans.policy * jax.nn.log_softmax(logits), axis=-1))

    expected = eqx.filter_grad(surprise)(affordances.prior_head)
    assert not all_zero(expected)
    for ours, theirs in zip(
        jax.tree.leaves(gradient.prior_head), jax.tree.leaves(expected), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-7)
    uniform = eqx.tree_at(lambda a: a.prior_head, affordances, None)
    assert uniform.prior(jax.tree.map(lambda leaf: leaf[0], roots)).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"simulations": 0}, "simulations is 0"),
        ({"noise": -1.0}, "noise is -1"),
        ({"prior": "learned"}, r"give them a method prior\(state\)"),
    ],
)
def test_bad_settings_are_refused(key, settings, sentence):
    with pytest.raises(UsageError, match=sentence):
        Gumbel(**settings)(Bandit(), numbered(3), jnp.ones(3), key)
