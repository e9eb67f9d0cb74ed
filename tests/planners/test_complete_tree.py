"""The planner against the paper's recursion in plain Python and against finite differences."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from grasp.model import AbstractState
from grasp.planners.complete_tree import CompleteTree
from grasp.planners.plan import plan_batch
from worlds import (
    HandMade,
    Position,
    hand_made_affordances,
    random_states,
    small_affordances,
    small_model,
)


def plan_by_enumeration(model, affordances, state, depth, temperature):
    """The paper's recursion with Python floats: the oracle."""
    q_values = []
    for action in np.asarray(affordances(state)):
        step = model.step(state, jnp.asarray(action))
        if depth == 1:
            following = float(model.value(step.state))
        else:
            following = plan_by_enumeration(model, affordances, step.state, depth - 1, temperature)[
                2
            ]
        q_values.append(float(step.reward) + float(step.discount) * following)
    weights = [math.exp((q - max(q_values)) / temperature) for q in q_values]
    policy = [weight / sum(weights) for weight in weights]
    return q_values, policy, sum(p * q for p, q in zip(policy, q_values, strict=True))


@pytest.mark.parametrize("temperature", [0.05, 1.0, 20.0])
@pytest.mark.parametrize(("K", "depth"), [*itertools.product([1, 2, 3], [1, 2, 3]), (5, 1), (5, 2)])
def test_plan_is_that_of_full_enumeration(key, K, depth, temperature):
    affordances = hand_made_affordances(jax.random.normal(key, (K, 2, 2)))
    root = Position(jnp.array([0.3, -0.8]))
    plan = CompleteTree(depth, temperature)(HandMade(), affordances, root, key)
    q_values, policy, value = plan_by_enumeration(HandMade(), affordances, root, depth, temperature)
    np.testing.assert_allclose(plan.q_values, q_values, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(plan.policy, policy, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(plan.value, value, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(plan.actions, affordances(root))


@pytest.mark.parametrize("depth", [3])
def test_plan_of_five_affordances_three_deep(key, depth):
    affordances = hand_made_affordances(jax.random.normal(key, (5, 2, 2)))
    root = Position(jnp.array([0.3, -0.8]))
    plan = CompleteTree(depth, 0.3)(HandMade(), affordances, root, key)
    q_values, _, value = plan_by_enumeration(HandMade(), affordances, root, depth, 0.3)
    np.testing.assert_allclose(plan.q_values, q_values, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(plan.value, value, rtol=1e-5)


@pytest.mark.parametrize("options", [False, True])
@pytest.mark.parametrize("goal", [0, 2])
def test_plan_with_real_networks_is_that_of_full_enumeration(key, goal, options):
    model, affordances = (
        small_model(key, goal=goal, options=options),
        small_affordances(key, 3, goal=goal),
    )
    roots = random_states(key, 2, goal=goal)
    plans = plan_batch(CompleteTree(2, 0.5), model, affordances, roots, key)
    for row in range(2):
        root = jax.tree.map(lambda leaf, row=row: leaf[row], roots)
        q_values, policy, value = plan_by_enumeration(model, affordances, root, 2, 0.5)
        np.testing.assert_allclose(plans.q_values[row], q_values, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(plans.policy[row], policy, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(plans.value[row], value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("temperature", [0.1, 1.0])
def test_gradient_to_the_affordances_is_that_of_finite_differences(key, depth, temperature):
    root, planner = Position(jnp.array([0.3, -0.8])), CompleteTree(depth, temperature)

    def value(weights):
        return planner(HandMade(), hand_made_affordances(weights), root, key).value

    with jax.enable_x64(True):
        weights = jnp.asarray(np.random.default_rng(1).normal(size=(3, 2, 2)))
        root = Position(jnp.array([0.3, -0.8], jnp.float64))
        gradient = jax.grad(value)(weights)
        for index in np.ndindex(weights.shape):
            change = jnp.zeros_like(weights).at[index].set(1e-6)
            difference = (value(weights + change) - value(weights - change)) / 2e-6
            np.testing.assert_allclose(gradient[index], difference, rtol=1e-5, atol=1e-8)


def test_the_gradient_flows_through_policy_and_values_at_every_level(key):
    """By the paper's formula: with pi held fixed, or Q of the children held fixed, it is another
    gradient.
    """
    planner, root = CompleteTree(2, 0.3), Position(jnp.array([0.3, -0.8]))
    weights = jax.random.normal(key, (3, 2, 2))

    def with_fixed_policy(weights):
        plan = planner(HandMade(), hand_made_affordances(weights), root, key)
        return jnp.sum(jax.lax.stop_gradient(plan.policy) * plan.q_values)

    def with_deep_actions_fixed(weights):
        def affordances(state):
            frozen = jax.lax.stop_gradient(weights)
            at_root = jnp.all(state.place == root.place)
            return hand_made_affordances(jnp.where(at_root, weights, frozen))(state)

        return planner(HandMade(), affordances, root, key).value

    full = jax.grad(lambda w: planner(HandMade(), hand_made_affordances(w), root, key).value)(
        weights
    )
    assert not np.allclose(full, jax.grad(with_fixed_policy)(weights), rtol=1e-2)
    assert not np.allclose(full, jax.grad(with_deep_actions_fixed)(weights), rtol=1e-2)


def test_one_affordance_is_a_single_trajectory(key):
    affordances = hand_made_affordances(jax.random.normal(key, (1, 2, 2)))
    state, total, discount = Position(jnp.array([0.3, -0.8])), 0.0, 1.0
    root = state
    for _ in range(4):
        step = HandMade().step(state, affordances(state)[0])
        total, discount, state = (
            total + discount * step.reward,
            discount * step.discount,
            step.state,
        )
    total += discount * HandMade().value(state)
    plan = CompleteTree(4, 0.7)(HandMade(), affordances, root, key)
    np.testing.assert_allclose(plan.value, total, rtol=1e-5)
    np.testing.assert_allclose(plan.policy, [1.0])


def test_policy_sharpens_as_temperature_falls(key):
    affordances = hand_made_affordances(jax.random.normal(key, (4, 2, 2)))
    root = Position(jnp.array([0.3, -0.8]))
    cold, warm = (CompleteTree(1, t)(HandMade(), affordances, root, key) for t in (1e-4, 1e4))
    assert cold.policy.max() > 0.999
    np.testing.assert_allclose(warm.policy, 0.25, atol=1e-3)
    np.testing.assert_allclose(cold.value, cold.q_values.max(), rtol=1e-5)


def test_scaling_the_model_and_the_temperature_together_leaves_the_policy(key):
    affordances = hand_made_affordances(jax.random.normal(key, (4, 2, 2)))
    root = Position(jnp.array([0.3, -0.8]))

    class Hundredfold(HandMade):
        def step(self, state, action):
            step = super().step(state, action)
            return step._replace(reward=100 * step.reward)

        def value(self, state):
            return 100 * super().value(state)

    plain = CompleteTree(2, 0.5)
    scaled = plain.at_scale(jnp.asarray(100.0))
    np.testing.assert_allclose(
        plain(HandMade(), affordances, root, key).policy,
        scaled(Hundredfold(), affordances, root, key).policy,
        rtol=1e-4,
    )


@pytest.mark.parametrize(("depth", "temperature"), [(0, 1.0), (-2, 1.0), (1, 0.0), (1, -1.0)])
def test_impossible_trees_are_refused(depth, temperature):
    with pytest.raises(ValueError, match="planner"):
        CompleteTree(depth, temperature)


def test_state_and_goal_stay_together(key):
    roots = AbstractState(jnp.zeros(8), jnp.ones(2))
    step = small_model(key, goal=2).step(roots, jnp.zeros(2))
    np.testing.assert_array_equal(step.state.goal, roots.goal)
