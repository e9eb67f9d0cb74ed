"""What every planner promises, whoever wrote it: add yours to PLANNERS."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from grasp.errors import Diverged
from grasp.planners.complete_tree import CompleteTree
from grasp.planners.gumbel import Gumbel
from grasp.planners.plan import Planner, plan_batch
from grasp.planners.uct import UCT
from worlds import HandMade, Position, hand_made_affordances, small_affordances, small_model

PLANNERS = {
    "CompleteTree": CompleteTree(depth=2, temperature=0.7),
    "UCT": UCT(trajectories=12, depth=3),
    "Gumbel": Gumbel(simulations=12),
    "Gumbel with a prior": Gumbel(simulations=12, prior="learned"),
}
K, B = 4, 5
planned = eqx.filter_jit(plan_batch)


@pytest.fixture(params=PLANNERS.values(), ids=PLANNERS)
def planner(request):
    return request.param


def networks(key):
    model = small_model(key, goal=2, options=True, termination=True)
    observations = jax.random.normal(key, (B, 3))
    goals = jax.random.normal(jax.random.key(1), (B, 2))
    return (
        model,
        small_affordances(key, K, goal=2, prior=True),
        jax.vmap(model.encode)(observations, goals),
    )


def row_of(tree, row):
    return jax.tree.map(lambda leaf: leaf[row], tree)


def test_a_plan_has_the_shapes_of_the_contract(planner, key):
    assert isinstance(planner, Planner)
    model, affordances, roots = networks(key)
    plan = planner(model, affordances, row_of(roots, 0), key)
    shapes = [leaf.shape for leaf in plan]
    assert shapes == [(K, 2), (K,), (K,), ()]
    np.testing.assert_allclose(plan.actions, affordances(row_of(roots, 0)), rtol=1e-5)


def test_the_policy_sums_to_one_and_the_value_is_its_mean_q(planner, key):
    model, affordances, roots = networks(key)
    plans = planned(planner, model, affordances, roots, key)
    np.testing.assert_allclose(plans.policy.sum(-1), 1, rtol=1e-5)
    assert (plans.policy >= 0).all()
    np.testing.assert_allclose(plans.value, (plans.policy * plans.q_values).sum(-1), rtol=1e-4)


def test_the_gradient_reaches_every_head_that_was_tried(planner, key):
    weights, root = jax.random.normal(key, (K, 2, 2)), Position(jnp.array([0.3, -0.8]))

    def value(weights):
        plan = planner(HandMade(), hand_made_affordances(weights), root, key)
        return plan.value, plan

    gradient, plan = jax.jit(jax.grad(value, has_aux=True))(weights)
    reached = np.abs(gradient).max((1, 2)) > 1e-7  # [K]
    np.testing.assert_array_equal(reached, plan.policy > 0)


def test_the_gradient_of_a_batch_is_finite(planner, key):
    model, affordances, roots = networks(key)
    gradient = eqx.filter_jit(
        eqx.filter_grad(
            lambda affordances: plan_batch(planner, model, affordances, roots, key).value.sum()
        )
    )(affordances)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))


def test_a_batch_is_the_plans_of_its_rows(planner, key):
    """The same keys row by row, so that what is random is the same."""
    model, affordances, roots = networks(key)
    keys = jax.random.split(key, B)
    one = eqx.filter_jit(planner)
    together = eqx.filter_jit(jax.vmap(planner, in_axes=(None, None, 0, 0)))(
        model, affordances, roots, keys
    )
    for row in range(B):
        alone = one(model, affordances, row_of(roots, row), keys[row])
        for left, right in zip(row_of(together, row), alone, strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-5)


def test_rows_do_not_see_each_other(planner, key):
    model, affordances, roots = networks(key)
    changed = jax.tree.map(lambda leaf: leaf.at[0].add(1.0), roots)
    before = planned(planner, model, affordances, roots, key)
    after = planned(planner, model, affordances, changed, key)
    assert not np.allclose(before.value[0], after.value[0])
    for left, right in zip(before, after, strict=True):
        np.testing.assert_allclose(left[1:], right[1:], rtol=1e-5, atol=1e-6)


def test_the_same_key_makes_the_same_plan(planner, key):
    model, affordances, roots = networks(key)
    plans = [planned(planner, model, affordances, roots, key) for _ in range(2)]
    for left, right in zip(*plans, strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("broken", ["step", "value"])
def test_a_model_that_returns_nan_is_named(planner, key, broken):
    class Broken(HandMade):
        def step(self, state, action):
            step = super().step(state, action)
            return step._replace(reward=step.reward * jnp.nan) if broken == "step" else step

        def value(self, state):
            return super().value(state) * (jnp.nan if broken == "value" else 1)

    weights, root = jax.random.normal(key, (K, 2, 2)), Position(jnp.array([0.3, -0.8]))
    with pytest.raises(Diverged, match="the model's step or value returned a number that is not"):
        planner(Broken(), hand_made_affordances(weights), root, key)
