"""The tree on the page: the planner's own plan at its root, the recursion in plain Python below."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import grasp
from grasp.agents import agent_named
from grasp.errors import UsageError
from grasp.lens.tree import MOST_SENT, Level, levels, nodes, shown_tree, tree_of
from grasp.planners.complete_tree import CompleteTree
from worlds import HandMade, Position, hand_made_affordances, small_affordances, small_model

K = 3


def hand_made():
    weights = jax.random.normal(jax.random.key(1), (K, 2, 2))
    return HandMade(), hand_made_affordances(weights), Position(jnp.array([0.3, -0.7]))


def network():
    keys = jax.random.split(jax.random.key(2), 3)
    model = small_model(keys[0], goal=2, options=True, termination=True)
    affordances = small_affordances(keys[1], K, goal=2)
    observation, goal = jnp.array([0.1, -0.4, 0.9]), jnp.array([1.0, 0.0])
    return model, affordances, model.encode(observation, goal)


def batched(root):
    return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], root)


def value_by_recursion(model, affordances, state, depth, temperature):
    """V of a node with `depth` levels below it that count: the oracle."""
    if depth <= 0:
        return float(model.value(state))
    q_values = []
    for action in affordances(state):
        step = model.step(state, action)
        after = value_by_recursion(model, affordances, step.state, depth - 1, temperature)
        q_values.append(float(step.reward) + float(step.discount) * after)
    weights = np.exp((np.array(q_values) - max(q_values)) / temperature)
    return float(np.sum(weights / weights.sum() * q_values))


@pytest.mark.parametrize("world", [hand_made, network])
@pytest.mark.parametrize(("depth", "shown"), [(1, 1), (1, 3), (2, 2), (2, 3), (3, 3)])
def test_the_first_level_is_the_planners_plan(world, depth, shown, key):
    model, affordances, root = world()
    tree = CompleteTree(depth=depth, temperature=0.4)
    plan = tree(model, affordances, root, key)
    first = levels(model, affordances, batched(root), tree, shown)[0]
    np.testing.assert_allclose(first.actions[0], plan.actions, atol=1e-6)
    np.testing.assert_allclose(first.q_values[0], plan.q_values, atol=1e-5)
    np.testing.assert_allclose(first.policy[0], plan.policy, atol=1e-5)
    np.testing.assert_allclose((first.policy * first.q_values).sum(), plan.value, atol=1e-5)


@pytest.mark.parametrize("world", [hand_made, network])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_every_node_follows_the_recursion(world, depth):
    model, affordances, root = world()
    found = levels(model, affordances, batched(root), CompleteTree(depth, 0.4), 3)
    told = nodes(found, lambda action: action, lambda action: None, 0.99)

    def check(state, children, counted):
        assert sum(node["policy"] for node in children) == pytest.approx(1, abs=1e-5)
        for node, action in zip(children, affordances(state), strict=True):
            step = model.step(state, action)
            np.testing.assert_allclose(node["action"], action, atol=1e-5)
            assert node["reward"] == pytest.approx(float(step.reward), abs=1e-5)
            assert node["discount"] == pytest.approx(float(step.discount), abs=1e-5)
            value = value_by_recursion(model, affordances, step.state, counted - 1, 0.4)
            assert node["value"] == pytest.approx(value, abs=1e-4)
            assert node["q"] == pytest.approx(
                node["reward"] + node["discount"] * node["value"], abs=1e-5
            )
            if node["children"]:
                check(step.state, node["children"], counted - 1)

    check(root, told, depth)


def test_durations_are_the_models_own_or_unknown():
    for world, known in ((hand_made, False), (network, True)):
        model, affordances, root = world()
        found = levels(model, affordances, batched(root), CompleteTree(1), 1)
        first = nodes(found, lambda action: action, lambda action: None, 0.99)[0]
        if not known:
            assert first["duration"] is None
            assert first["goes_on"] is None
            continue
        predicted = model.predict(root, affordances(root)[0])
        assert first["duration"] == pytest.approx(float(predicted.duration), abs=1e-5)
        goes_on = float(jax.nn.sigmoid(predicted.continuation))
        assert first["goes_on"] == pytest.approx(goes_on, abs=1e-5)


@pytest.mark.parametrize(
    ("name", "counted", "shown"),
    [("GA-1", 1, 3), ("GA-4", 1, 3), ("SA-3", 3, 3), ("GA-8", 1, 2), ("GA-20", 1, 1)],
)
def test_how_much_of_a_tree_is_shown(name, counted, shown):
    tree, levels_shown = shown_tree(agent_named(name))
    assert (tree.depth, levels_shown) == (counted, shown)


def test_a_wide_deep_tree_is_cut_where_nobody_would_read_on():
    N = [1, 10, 100, 1000]
    found = [Level(*(np.ones((n, 10, 2)), *[np.ones((n, 10))] * 6)) for n in N]
    told = nodes(found, lambda action: action, lambda action: None, 0.9)

    def count(children):
        return len(children) + sum(count(node["children"]) for node in children)

    assert count(told) == 10 + 100 <= MOST_SENT


def test_the_tree_of_a_loaded_agent_has_its_plan_at_the_root(collect_run):
    agent = grasp.load(collect_run.path)
    random = np.random.default_rng(0)
    look = tree_of(agent.compiled)
    for _ in range(5):
        observation, goal = random.random(11, np.float32), np.eye(3, dtype=np.float32).ravel()
        plan = agent.plan({"observation": observation, "desired_goal": goal})
        first = look(observation, goal)[0]
        np.testing.assert_allclose(first.actions[0], plan.actions, atol=1e-6)
        np.testing.assert_allclose(first.q_values[0], plan.q_values, atol=1e-5)
        np.testing.assert_allclose(first.policy[0], plan.policy, atol=1e-5)


def test_an_agent_without_a_model_has_no_tree(td3_run):
    with pytest.raises(UsageError, match="TD3 has no tree to show"):
        tree_of(grasp.load(td3_run.path).compiled)
