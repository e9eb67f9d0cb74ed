"""What the heads read, and what they propose while they learn."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from grasp.affordances import smoothed
from grasp.losses import affordance_loss
from grasp.model import Step
from grasp.planners.complete_tree import CompleteTree
from worlds import all_zero, random_states, small_affordances


def of(states, row):
    return jax.tree.map(lambda leaf: leaf[row], states)


@pytest.mark.parametrize(
    ("conditioning", "reads_features", "reads_goal"),
    [("goal", True, True), ("state", True, False), ("none", False, False)],
)
def test_heads_read_what_their_name_says(key, conditioning, reads_features, reads_goal):
    affordances = small_affordances(key, 3, goal=2, conditioning=conditioning)
    state = of(random_states(key, 1, goal=2), 0)
    sensed = jax.jacobian(affordances)(state)
    assert all_zero(sensed.features) != reads_features
    assert all_zero(sensed.goal) != reads_goal


@pytest.mark.parametrize("hidden", [0, 1, 2])
def test_heads_without_hidden_layers_are_linear_in_the_abstract_state(key, hidden):
    affordances = small_affordances(key, 3, hidden=hidden)
    states = random_states(key, 2)
    between = of(jax.tree.map(lambda leaf: leaf.mean(0, keepdims=True), states), 0)
    mean = jax.vmap(affordances.raw)(states).mean(0)
    assert np.allclose(affordances.raw(between), mean, atol=1e-6) == (hidden == 0)


def test_smoothed_proposals_miss_by_the_deviation_each_state_in_its_own_way(key):
    affordances = small_affordances(key, 3)
    states = random_states(key, 2_000)
    noisy = jax.vmap(smoothed(affordances, 0.05, key))(states)
    missed = np.asarray(noisy - jax.vmap(affordances)(states))
    inside = np.abs(noisy) < 1  # not clipped
    assert missed[inside].std() == pytest.approx(0.05, rel=0.05)
    assert abs(np.corrcoef(missed[:-1, 0, 0], missed[1:, 0, 0])[0, 1]) < 0.1
    again = jax.vmap(smoothed(affordances, 0.05, key))(states)
    np.testing.assert_array_equal(noisy, again)
    assert smoothed(affordances, 0.0, key) is affordances


def test_smoothing_draws_a_head_away_from_a_cliff(key):
    """Reward 1 above 0, and less the further above: the best action is at the edge, the best
    action that is missed by a little is not.
    """

    class Cliff:
        def step(self, state, action):
            reward = jax.nn.sigmoid(60 * action[0]) - 0.3 * action[0]
            return Step(reward=reward, discount=jnp.zeros(()), state=state)

        def value(self, state):
            return jnp.zeros(())

    affordances = small_affordances(key, 1, conditioning="none")
    at_the_edge = eqx.tree_at(lambda a: a.offsets, affordances, jnp.full((1, 2), 0.1))
    roots = random_states(key, 4_000)

    def slope(smoothing):
        def loss(affordances):
            return affordance_loss(
                affordances,
                Cliff(),
                CompleteTree(1, 0.1),
                roots,
                key,
                saturation_penalty=0.0,
                smoothing=smoothing,
            )

        gradient, _ = eqx.filter_grad(loss, has_aux=True)(at_the_edge)
        return -float(gradient.offsets[0, 0])

    assert slope(0.0) < -0.1
    assert slope(0.1) > 0.1
