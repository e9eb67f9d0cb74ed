"""UCT against the paper's words in plain Python: a dictionary as tree, a recursive backup."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from grasp.errors import UsageError
from grasp.planners.complete_tree import CompleteTree
from grasp.planners.uct import UCT
from worlds import HandMade, Position, hand_made_affordances, small_affordances, small_model

ROOT = Position(jnp.array([0.3, -0.8]))


class LiteralTree:
    """Nodes are the tuples of heads that lead to them."""

    def __init__(self, model, affordances, root, depth, c1=1.25, c2=19652):
        self.model, self.affordances, self.depth, self.c1, self.c2 = (
            model, affordances, depth, c1, c2,
        )  # fmt: skip
        self.states = {(): root}
        self.edges = {}  # (node, head) -> reward, discount
        self.visits = {}  # node -> counts of its K heads
        self.bounds = [math.inf, -math.inf]
        self.paths = []

    def child(self, node, head):
        """The node after a head, by the model where it is new."""
        if (node, head) not in self.edges:
            state = self.states[node]
            step = self.model.step(state, self.affordances(state)[head])
            self.edges[node, head] = (float(step.reward), float(step.discount))
            self.states[(*node, head)] = step.state
        return (*node, head)

    def value(self, node):
        if len(node) == self.depth:
            return float(self.model.value(self.states[node]))
        visits = self.visits[node]
        return sum(n / sum(visits) * self.q_value(node, b) for b, n in enumerate(visits) if n)

    def q_value(self, node, head):
        reward, discount = self.edges[node, head]
        return reward + discount * self.value((*node, head))

    def head(self, node, priorities):
        K = len(priorities)
        visits = self.visits.setdefault(node, [0] * K)
        untried = [b for b in range(K) if visits[b] == 0]
        if (node == () and untried) or sum(visits) == 0:
            return max(untried, key=lambda b: priorities[b])
        least, largest = self.bounds

        def score(b):
            q = 0.0
            if visits[b]:
                q = self.q_value(node, b)
                q = (q - least) / (largest - least) if largest > least else q
            N = sum(visits)
            growth = self.c1 + math.log((N + self.c2 + 1) / self.c2)
            return q + 1 / K * math.sqrt(N) / (1 + visits[b]) * growth

        return max(range(K), key=score)

    def follow(self, priorities):
        """One trajectory; `priorities` [D, K] make the random choices."""
        node = ()
        for depth in range(self.depth):
            head = self.head(node, list(priorities[depth]))
            node = self.child(node, head)
        self.paths.append(node)
        for depth in range(self.depth):
            self.visits[node[:depth]][node[depth]] += 1
        for depth in range(self.depth):
            q = self.q_value(node[:depth], node[depth])
            self.bounds = [min(self.bounds[0], q), max(self.bounds[1], q)]


def literal(model, affordances, root, planner, key):
    K = affordances(root).shape[0]
    tree = LiteralTree(model, affordances, root, planner.depth)
    for priorities in np.asarray(jax.random.uniform(key, (planner.trajectories, planner.depth, K))):
        tree.follow(priorities)
    return tree


def assert_same(plan, tree):
    visits = np.array(tree.visits[()])
    np.testing.assert_array_equal(np.round(plan.policy * visits.sum()), visits)
    q_values = [tree.q_value((), head) for head in range(len(visits))]
    np.testing.assert_allclose(plan.q_values, q_values, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(plan.value, tree.value(()), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("K", "H", "depth"), [(1, 3, 2), (2, 9, 3), (3, 20, 2), (3, 7, 4), (4, 20, 5), (5, 50, 3)]
)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_search_is_that_of_the_paper_s_words(K, H, depth, seed):
    key = jax.random.key(seed)
    affordances = hand_made_affordances(jax.random.normal(jax.random.key(seed + 7), (K, 2, 2)))
    planner = UCT(H, depth)
    plan = jax.jit(lambda: planner(HandMade(), affordances, ROOT, key))()
    tree = literal(HandMade(), affordances, ROOT, planner, key)
    assert_same(plan, tree)
    np.testing.assert_allclose(plan.actions, affordances(ROOT), rtol=1e-6)


def test_the_search_with_real_networks_and_options(key):
    model = small_model(key, options=True, termination=True)
    affordances = small_affordances(key, 3)
    root = model.encode(jnp.ones(3), jnp.zeros(0))
    planner = UCT(12, 3)
    plan = planner(model, affordances, root, key)
    assert_same(plan, literal(model, affordances, root, planner, key))


@pytest.mark.parametrize(("H", "depth"), [(8, 2), (6, 4)])
def test_gradient_is_that_of_finite_differences_along_the_chosen_paths(key, H, depth):
    with jax.enable_x64(True):
        weights = jnp.asarray(np.random.default_rng(1).normal(size=(3, 2, 2)))
        root = Position(jnp.array([0.3, -0.8], jnp.float64))
        planner = UCT(H, depth)

        def value(weights):
            return planner(HandMade(), hand_made_affordances(weights), root, key).value

        paths = literal(HandMade(), hand_made_affordances(weights), root, planner, key).paths

        def value_of_paths(weights):
            tree = LiteralTree(HandMade(), hand_made_affordances(weights), root, depth)
            returns = []
            for path in paths:
                total, discount, node = 0.0, 1.0, ()
                for head in path:
                    node = tree.child(node, head)
                    reward, gamma = tree.edges[node[:-1], head]
                    total, discount = total + discount * reward, discount * gamma
                returns.append(total + discount * tree.value(node))
            return np.mean(returns)

        gradient = jax.grad(value)(weights)
        assert float(value(weights)) == pytest.approx(value_of_paths(weights), rel=1e-9)
        for index in np.ndindex(weights.shape):
            change = jnp.zeros_like(weights).at[index].set(1e-6)
            difference = value_of_paths(weights + change) - value_of_paths(weights - change)
            np.testing.assert_allclose(gradient[index], difference / 2e-6, rtol=1e-5, atol=1e-8)


def test_visits_concentrate_on_the_best_affordance_as_trajectories_grow():
    """Judged by the enumerated tree: at a low temperature its value is the best path's."""
    shares = {20: [], 1000: []}
    for seed in range(10):
        affordances = hand_made_affordances(jax.random.normal(jax.random.key(seed), (3, 2, 2)))
        best = CompleteTree(2, 1e-3)(HandMade(), affordances, ROOT, jax.random.key(0))
        for H, found in shares.items():
            plan = UCT(H, 2)(HandMade(), affordances, ROOT, jax.random.key(seed))
            found.append(float(plan.policy[int(best.q_values.argmax())]))
    assert np.mean(shares[1000]) > 0.8
    assert np.mean(shares[1000]) > np.mean(shares[20]) + 0.1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [((0, 3), "trajectories is 0"), ((5, 0), "depth is 0"), ((2, 3), "2 trajectories for 3")],
)
def test_bad_settings_are_refused(key, arguments, sentence):
    affordances = hand_made_affordances(jnp.ones((3, 2, 2)))
    with pytest.raises(UsageError, match=sentence):
        UCT(*arguments)(HandMade(), affordances, ROOT, key)
