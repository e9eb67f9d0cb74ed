"""Targets by hand, the recursion over episode ends, and which parameters each loss may move."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from grasp.losses import (
    affordance_loss,
    head_metrics,
    last_of_all,
    model_loss,
    unroll,
    value_targets,
    window_targets,
)
from grasp.planners.complete_tree import CompleteTree
from grasp.planners.plan import Plan
from grasp.replay import Window
from worlds import all_zero, random_states, small_affordances, small_model


def window_of(B=4, n=3, goal=0, **changes):
    random = np.random.default_rng(0)

    def normal(*shape):
        return jnp.asarray(random.normal(size=shape), jnp.float32)

    window = Window(
        observations=normal(B, n + 1, 3),
        goals=normal(B, n + 1, goal),
        actions=jnp.tanh(normal(B, n, 2)),
        rewards=normal(B, n),
        durations=jnp.ones((B, n)),
        valid=jnp.ones((B, n), bool),
        terminated=jnp.zeros(B, bool),
    )
    return window._replace(**changes)


def test_n_step_targets_by_hand():
    targets = value_targets(
        jnp.array([1.0, 2.0, 3.0]), jnp.full(3, 0.5), jnp.array([-70.0, -70.0, 8.0]), trace=1
    )
    np.testing.assert_allclose(targets, [1 + 0.5 * 5.5, 2 + 0.5 * 7, 3 + 0.5 * 8, 8])


def test_planned_targets_by_hand():
    targets = value_targets(
        jnp.array([1.0, 2.0, 3.0]), jnp.full(3, 0.5), jnp.array([4.0, 6.0, 8.0]), trace=0
    )
    np.testing.assert_allclose(targets, [1 + 0.5 * 4, 4, 6, 8])


def test_targets_between_by_hand():
    targets = value_targets(
        jnp.array([1.0, 2.0]), jnp.array([0.5, 0.9]), jnp.array([4.0, 10.0]), trace=0.25
    )
    second = 0.75 * 4 + 0.25 * (2 + 0.9 * 10)
    np.testing.assert_allclose(targets, [1 + 0.5 * second, second, 10])


@pytest.mark.parametrize("trace", [1, 0.5, 0])
def test_neutral_padding_passes_the_bootstrap_through(trace):
    targets = value_targets(
        jnp.array([1.0, 0.0, 0.0]), jnp.array([0.9, 1.0, 1.0]), jnp.full(3, 10.0), trace
    )
    np.testing.assert_allclose(targets, [10, 10, 10, 10])


@pytest.fixture
def parts(key):
    return small_model(key), small_affordances(key, 3), CompleteTree(2, 0.5)


@pytest.mark.parametrize("trace", [1, 0.3, 0])
@pytest.mark.parametrize("bootstrap", ["planner", "value"])
def test_window_targets_bootstrap_at_the_real_observations(parts, key, bootstrap, trace):
    model, affordances, planner = parts
    window = window_of()
    targets = window_targets(
        model, affordances, planner, window, key, bootstrap=bootstrap, trace=trace
    )

    def value(row, j):
        state = model.encode(window.observations[row, j], window.goals[row, j])
        if bootstrap == "planner":
            return float(planner(model, affordances, state, key).q_values.max())
        return float(model.value(state))

    for row in range(4):
        expected = value(row, 3)
        for j in reversed(range(4)):
            if j < 3:
                recorded = float(window.rewards[row, j]) + 0.99 * expected
                expected = (1 - trace) * value(row, j) + trace * recorded if j else recorded
            np.testing.assert_allclose(targets[row, j], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("trace", [1, 0])
def test_a_terminated_window_has_no_bootstrap(parts, key, trace):
    model, affordances, planner = parts
    window = window_of(
        rewards=jnp.array([[1.0, 5.0, 0.0]] * 4),
        durations=jnp.array([[1.0, 1.0, 0.0]] * 4),
        terminated=jnp.ones(4, bool),
    )
    targets = window_targets(
        model, affordances, planner, window, key, bootstrap="planner", trace=trace
    )
    np.testing.assert_allclose(targets[:, 2:], [[0, 0]] * 4, rtol=1e-6)
    if trace:
        np.testing.assert_allclose(targets[:, :2], [[1 + 0.99 * 5, 5]] * 4, rtol=1e-6)
    else:  # before the end it is the plan that judges
        states = jax.vmap(model.encode)(window.observations[:, 1], window.goals[:, 1])
        plans = jax.vmap(lambda state: planner(model, affordances, state, key))(states)
        np.testing.assert_allclose(targets[:, 1], plans.q_values.max(-1), rtol=1e-5)


def test_a_first_state_that_is_not_judged_teaches_no_value(parts, key):
    """With one decision per window the first state's target may then be anything."""
    model, _, _ = parts
    window = window_of(n=1)

    def gradient(first, judge_first):
        targets = jnp.array([[first, 2.0]] * 4)
        return (
            eqx.filter_grad(
                lambda m: model_loss(
                    m, model, window, targets, consistency=0.0, judge_first=judge_first
                )[0]
            )(model)
            .value_heads[0]
            .layers[-1]
            .bias
        )

    assert gradient(1.0, False) == gradient(1e3, False) != 0
    assert gradient(1.0, True) != gradient(1e3, True)


def test_durations_discount_the_targets(parts, key):
    model, affordances, planner = parts
    window = window_of(durations=jnp.array([[2.0, 7.0, 1.0]] * 4), terminated=jnp.ones(4, bool))
    targets = window_targets(model, affordances, planner, window, key, bootstrap="planner", trace=1)
    rewards = np.asarray(window.rewards)
    by_hand = rewards[:, 0] + 0.99**2 * (rewards[:, 1] + 0.99**7 * rewards[:, 2])
    np.testing.assert_allclose(targets[:, 0], by_hand, rtol=1e-5)


def test_unroll_is_the_model_applied_step_by_step(key):
    model, window = small_model(key, goal=2, options=True), window_of(goal=2)
    states, steps = unroll(model, window)
    rewards, durations = steps.reward, steps.duration
    state = model.encode(window.observations[1, 0], window.goals[1, 0])
    for j in range(3):
        np.testing.assert_allclose(states.features[1, j], state.features, rtol=1e-4, atol=1e-5)
        step = model.step(state, window.actions[1, j])
        np.testing.assert_allclose(rewards[1, j], step.reward, rtol=1e-4, atol=1e-5)
        length = model.predict(state, window.actions[1, j]).duration
        np.testing.assert_allclose(durations[1, j], length, rtol=1e-4)
        state = step.state


def test_model_loss_by_hand(key):
    model, window = small_model(key, options=True), window_of(durations=jnp.full((4, 3), 2.0))
    valid = jnp.array([[True, True, True], [True, False, False]] * 2)
    window = window._replace(valid=valid)
    targets = jnp.asarray(np.random.default_rng(1).normal(size=(4, 4)), jnp.float32)
    loss, _ = model_loss(model, model, window, targets, consistency=0.0)
    states, steps = unroll(model, window)
    rewards, durations = steps.reward, steps.duration
    errors = {"reward": [], "value": [], "duration": []}
    for row in range(4):
        for j in range(4):
            state = jax.tree.map(lambda leaf, row=row, j=j: leaf[row, j], states)
            if j == 0 or valid[row, j - 1]:
                errors["value"] += [float(v - targets[row, j]) ** 2 for v in model.values(state)]
            if j < 3 and valid[row, j]:
                errors["reward"].append(float(rewards[row, j] - window.rewards[row, j]) ** 2)
                errors["duration"].append(np.log(float(durations[row, j]) / 2) ** 2)
    by_hand = sum(np.mean(values) for values in errors.values())
    np.testing.assert_allclose(loss, by_hand, rtol=1e-4)
    lighter, _ = model_loss(model, model, window, targets, consistency=0.0, value_weight=0.25)
    np.testing.assert_allclose(loss - lighter, 0.75 * np.mean(errors["value"]), rtol=1e-4)


def test_what_values_lack_is_the_bellman_error_of_those_that_the_targets_are_made_of(key):
    model, valid = small_model(key), jnp.array([[True] * 3, [True, False, False]] * 2)
    window, targets = window_of(valid=valid), jnp.arange(16.0).reshape(4, 4)
    target = eqx.tree_at(
        lambda m: m.offset,
        small_model(jax.random.key(9)),
        jnp.array(3.0),
        is_leaf=lambda leaf: leaf is None,
    )
    _, (_, metrics) = model_loss(model, target, window, targets, consistency=1.0)
    lacks = [
        targets[b, j] - target.value(target.encode(window.observations[b, j], jnp.zeros(0)))
        for b, j in itertools.product(range(4), (1, 2, 3))
        if valid[b, j - 1]
    ]
    np.testing.assert_allclose(metrics["train/value_lacks"], np.mean(lacks), rtol=1e-4)


def test_what_is_invalid_does_not_count(key):
    model = small_model(key)
    valid = jnp.array([[True, False, False]] * 4)
    window, targets = window_of(valid=valid), jnp.zeros((4, 4))
    other = window._replace(rewards=window.rewards.at[:, 1:].set(1e6))
    far = targets.at[:, 2:].set(1e6)
    loss, _ = model_loss(model, model, window, targets, consistency=1.0)
    same, _ = model_loss(model, model, other, far, consistency=1.0)
    np.testing.assert_array_equal(loss, same)


ENDS = {  # two episodes that ended for good in the window, one cut short, one that goes on
    "durations": jnp.array([[3.0, 0.0, 0.0], [1.0, 1.0, 2.0], [1.0, 0.0, 0.0], [1.0, 1.0, 1.0]]),
    "terminated": jnp.array([True, True, False, False]),
    "valid": jnp.array([[True] * 3, [True] * 3, [True, False, False], [True] * 3]),
}


def test_the_decision_that_ended_the_episode_is_found():
    np.testing.assert_array_equal(
        last_of_all(window_of(**ENDS)), np.array([[1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]], bool)
    )


def test_termination_loss_by_hand(key):
    model, window = small_model(key, termination=True), window_of(**ENDS)
    _, (_, metrics) = model_loss(model, model, window, jnp.zeros((4, 4)), consistency=0.0)
    _, steps = unroll(model, window)
    ended = np.asarray(last_of_all(window))
    surprise = [
        -np.log(jax.nn.sigmoid(-odds if ended[b, j] else odds))
        for b in range(4)
        for j in range(3)
        if window.durations[b, j] > 0
        for odds in [float(steps.continuation[b, j])]
    ]
    assert len(surprise) == 8
    np.testing.assert_allclose(metrics["train/termination_loss"], np.mean(surprise), rtol=1e-4)


def test_the_chance_to_go_on_discounts_what_follows(key):
    model = small_model(key, termination=True, options=True)
    state, action = model.encode(jnp.ones(3), jnp.zeros(0)), jnp.array([0.3, -0.2])
    predicted = model.predict(state, action)
    by_hand = 0.99**predicted.duration / (1 + jnp.exp(-predicted.continuation))
    np.testing.assert_allclose(model.step(state, action).discount, by_hand, rtol=1e-5)


def test_a_model_that_predicts_the_end_is_not_taught_what_follows_it(key):
    window, targets = window_of(**ENDS), jnp.zeros((4, 4))
    other = window._replace(observations=window.observations.at[0, 2:].set(5.0))
    losses = {
        termination: [
            model_loss(model, model, seen, targets, consistency=1.0)[0] for seen in (window, other)
        ]
        for termination in (True, False)
        for model in [small_model(key, termination=termination)]
    }
    assert losses[True][0] == losses[True][1]
    assert losses[False][0] != losses[False][1]


def test_consistency_is_the_distance_from_what_the_target_encoder_sees(key):
    model, target, window = small_model(key), small_model(jax.random.key(9)), window_of()
    loss, (states, metrics) = model_loss(model, target, window, jnp.zeros((4, 4)), consistency=1.0)
    plain, _ = model_loss(model, target, window, jnp.zeros((4, 4)), consistency=0.0)
    distances = [
        np.mean(
            (
                states.features[b, j]
                - target.encode(window.observations[b, j], jnp.zeros(0)).features
            )
            ** 2
        )
        for b in range(4)
        for j in (1, 2, 3)
    ]
    np.testing.assert_allclose(metrics["train/consistency_loss"], np.mean(distances), rtol=1e-4)
    np.testing.assert_allclose(loss - plain, np.mean(distances), rtol=1e-3)


def test_contrast_is_the_cross_entropy_of_picking_what_followed(key):
    model, target, window = small_model(key), small_model(jax.random.key(9)), window_of()
    loss, (states, metrics) = model_loss(
        model, target, window, jnp.zeros((4, 4)), consistency=0.0, contrast=2.0
    )
    plain, _ = model_loss(model, target, window, jnp.zeros((4, 4)), consistency=0.0)

    def cosine(x, y):
        return float(x @ y / (np.linalg.norm(x) * np.linalg.norm(y)))

    surprises = []
    for b, j in itertools.product(range(4), (1, 2, 3)):
        followed = [target.encode(window.observations[c, j], jnp.zeros(0)) for c in range(4)]
        scores = np.exp([10 * cosine(states.features[b, j], c.features) for c in followed])
        surprises.append(-np.log(scores[b] / scores.sum()))
    np.testing.assert_allclose(metrics["train/contrast_loss"], np.mean(surprises), rtol=1e-4)
    np.testing.assert_allclose(loss - plain, 2 * np.mean(surprises), rtol=1e-3)


def test_an_update_of_one_part_leaves_the_other_bit_for_bit(key):
    """The whole of Algorithm 1 with one learning rate at zero."""
    from grasp.agents.agent import Sizes
    from grasp.agents.grasp import Grasp

    def after(model_rate, affordance_rate):
        agent = Grasp(
            width=16,
            batch=4,
            model_learning_rate=model_rate,
            affordance_learning_rate=affordance_rate,
        )
        state = agent.init(Sizes(3, 0, 2), key)
        updated, _ = eqx.filter_jit(agent.update)(state, window_of(), key)
        return state.online, updated.online

    def same(left, right):
        pairs = zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
        return all(np.array_equal(a, b) for a, b in pairs)

    before, online = after(1e-3, 0.0)
    assert same(before.affordances, online.affordances)
    assert not same(before.model, online.model)
    before, online = after(0.0, 1e-3)
    assert same(before.model, online.model)
    assert not same(before.affordances, online.affordances)


def test_the_affordance_loss_gives_the_model_no_gradient(parts, key):
    """The loss's gradient has the affordances' structure: there is nothing in it for the model."""
    model, affordances, planner = parts
    roots = random_states(key, 4)

    def loss(affordances):
        return affordance_loss(affordances, model, planner, roots, key, saturation_penalty=0.0)

    gradient, plans = eqx.filter_grad(loss, has_aux=True)(affordances)
    assert jax.tree.structure(gradient) == jax.tree.structure(eqx.filter(affordances, eqx.is_array))
    assert not all_zero(gradient)
    value, _ = loss(affordances)
    np.testing.assert_allclose(value, -plans.value.mean(), rtol=1e-5)


def test_the_saturation_penalty_pulls_heads_back(parts, key):
    model, affordances, planner = parts
    saturated = eqx.tree_at(lambda a: a.offsets, affordances, affordances.offsets + 5.0)
    roots = random_states(key, 4)

    def penalty(affordances):
        with_it, _ = affordance_loss(
            affordances, model, planner, roots, key, saturation_penalty=1.0
        )
        without, _ = affordance_loss(
            affordances, model, planner, roots, key, saturation_penalty=0.0
        )
        return with_it - without

    assert (eqx.filter_grad(penalty)(saturated).offsets > 0).all()
    np.testing.assert_allclose(penalty(affordances), 0, atol=1e-6)


def test_head_metrics_by_hand():
    plans = Plan(
        actions=jnp.array([[[1.0, 0.0], [0.0, 0.0]], [[0.99, 0.2], [0.99, 0.2]]]),
        q_values=jnp.array([[1.0, 3.0], [2.0, 2.5]]),
        policy=jnp.array([[0.5, 0.5], [1.0, 0.0]]),
        value=jnp.array([2.0, 2.0]),
    )
    metrics = head_metrics(plans)
    np.testing.assert_allclose(metrics["affordances/head_spread"], np.sqrt(0.5) / 2, rtol=1e-5)
    np.testing.assert_allclose(metrics["planner/q_spread"], 1.25)
    np.testing.assert_allclose(metrics["planner/entropy"], np.log(2) / 2, rtol=1e-5)
    np.testing.assert_allclose(metrics["affordances/saturated"], 3 / 8)
    np.testing.assert_allclose(metrics["affordances/chosen"], [0, 1])
