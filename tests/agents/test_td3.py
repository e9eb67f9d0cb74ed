"""TD3: targets by hand, delayed actor, probe environments with known answers."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from probes import greedy, learned

from grasp.agents.agent import Sizes
from grasp.agents.td3 import TD3, q_values
from grasp.replay import Window

SMALL = TD3(
    width=32, batch=32, actor_learning_rate=1e-3, critic_learning_rate=1e-3, updates_per_call=50
)


def window_of(B=4, **changes):
    random = np.random.default_rng(0)
    window = Window(
        observations=jnp.asarray(random.normal(size=(B, 2, 3)), jnp.float32),
        goals=jnp.zeros((B, 2, 0)),
        actions=jnp.asarray(np.tanh(random.normal(size=(B, 1, 2))), jnp.float32),
        rewards=jnp.asarray(random.normal(size=(B, 1)), jnp.float32),
        durations=jnp.array([[1.0], [3.0], [1.0], [7.0]]),
        valid=jnp.ones((B, 1), bool),
        terminated=jnp.array([False, False, True, False]),
    )
    return window._replace(**changes)


def same(left, right):
    pairs = zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


def test_targets_by_hand(key):
    agent = dataclasses.replace(SMALL, target_noise=0.0)
    networks, window = agent.init(Sizes(3, 0, 2), key).target, window_of()
    targets = agent.targets(networks, window, key)
    for row in range(4):
        last, none = window.observations[row, 1], jnp.zeros(0)
        action = networks.act(last, none)
        least = min(float(critic(last, none, action)[0]) for critic in networks.critics)
        bootstrap = 0 if window.terminated[row] else least
        by_hand = (
            float(window.rewards[row, 0]) + 0.99 ** float(window.durations[row, 0]) * bootstrap
        )
        np.testing.assert_allclose(targets[row], by_hand, rtol=1e-5)


def test_target_noise_is_clipped_and_actions_stay_inside(key):
    loud = dataclasses.replace(SMALL, target_noise=100.0, target_noise_clip=0.3)
    smoothed = loud.smoothed(jnp.zeros((50, 2)), key)
    np.testing.assert_allclose(jnp.abs(smoothed), 0.3, rtol=1e-5)
    assert float(jnp.abs(loud.smoothed(jnp.full((50, 2), 0.9), key)).max()) == 1
    quiet = dataclasses.replace(SMALL, target_noise=0.2, target_noise_clip=9.0)
    assert float(jnp.std(quiet.smoothed(jnp.zeros((4000, 1)), key))) == pytest.approx(0.2, rel=0.1)


def test_actor_and_targets_follow_every_second_update(key):
    state, update = SMALL.init(Sizes(3, 0, 2), key), eqx.filter_jit(SMALL.update)
    first, _ = update(state, window_of(), key)
    assert not same(state.online.critics, first.online.critics)
    assert same(state.online.actor, first.online.actor)
    assert same(state.target, first.target)
    second, _ = update(first, window_of(), key)
    assert not same(first.online.actor, second.online.actor)
    expected = jax.tree.map(lambda o, n: o + 0.005 * (n - o), first.target, second.online)
    for left, right in zip(jax.tree.leaves(expected), jax.tree.leaves(second.target), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-7)


def test_normalised_critics_by_hand_and_an_actor_as_it_was(key):
    agent = dataclasses.replace(SMALL, layer_norm=True)
    networks, plain = agent.init(Sizes(3, 0, 2), key).online, SMALL.init(Sizes(3, 0, 2), key).online
    assert same(networks.actor, plain.actor)
    observation, action, none = jnp.array([1.0, -2.0, 0.5]), jnp.array([0.3, -0.9]), jnp.zeros(0)
    critic = networks.critics[0]
    units = np.concatenate([observation, action])
    first = np.concatenate([np.asarray(weight) for weight in critic.layers[0].weights])
    weights = [first, *(np.asarray(layer.weights[0]) for layer in critic.layers[1:])]
    for weight, layer in zip(weights[:-1], critic.layers[:-1], strict=True):
        units = units @ weight + np.asarray(layer.bias)
        units = np.maximum((units - units.mean()) / np.sqrt(units.var() + 1e-5), 0)
    by_hand = units @ weights[-1] + np.asarray(critic.layers[-1].bias)
    np.testing.assert_allclose(critic(observation, none, action), by_hand, rtol=1e-4)
    assert float(plain.critics[0](observation, none, action)[0]) != pytest.approx(float(by_hand[0]))


def test_observations_are_brought_to_one_scale_where_asked(key):
    """A normalised agent on stretched observations is a plain one on observations of unit scale."""
    agent, sizes = dataclasses.replace(SMALL, normalise_observations=True), Sizes(3, 0, 2)
    window = window_of()
    stretched = window._replace(observations=5 + 40 * window.observations)
    rows = stretched.observations[:, 0]
    unit = (stretched.observations - rows.mean(0)[None, None]) / rows.std(0)[None, None]
    after, metrics = agent.update(agent.init(sizes, key), stretched, key)
    plain, expected = SMALL.update(SMALL.init(sizes, key), window._replace(observations=unit), key)
    np.testing.assert_allclose(
        metrics["train/critic_loss"], expected["train/critic_loss"], rtol=1e-4
    )
    acted = agent.act_greedily(after, rows, jnp.zeros((4, 0)), key).actions
    wanted = SMALL.act_greedily(plain, unit[:, 0], jnp.zeros((4, 0)), key).actions
    np.testing.assert_allclose(acted, wanted, rtol=1e-4, atol=1e-6)
    untouched, _ = SMALL.update(SMALL.init(sizes, key), stretched, key)
    assert float(untouched.observation_normaliser.seen) == 0


def test_an_actor_beyond_its_bounds_is_pulled_back(key):
    """The critics are zero here, so that only the penalty moves the actor."""

    def proposal(penalty):
        agent = dataclasses.replace(SMALL, saturation_penalty=penalty, policy_delay=1)
        state = agent.init(Sizes(3, 0, 2), key)
        far = eqx.tree_at(lambda s: s.online.actor.layers[-1].bias, state, jnp.array([5.0, 1.0]))
        critics = jax.tree.map(jnp.zeros_like, far.online.critics)
        far = eqx.tree_at(lambda s: s.online.critics, far, critics)
        window = window_of(rewards=jnp.zeros((4, 1)), terminated=jnp.ones(4, bool))
        state, _ = eqx.filter_jit(agent.update)(far, window, key)
        return state.online.actor.layers[-1].bias

    np.testing.assert_allclose(proposal(0.0), [5, 1])
    assert proposal(1.0)[0] < 5
    np.testing.assert_allclose(proposal(1.0)[1], 1)


def q_of(agent, observation, action):
    networks = agent.arrays.online
    critic = eqx.combine(networks, agent.agent.init(agent.sizes, jax.random.key(0)).online).critics[
        0
    ]
    return float(
        q_values(critic, jnp.array([[observation]]), jnp.zeros((1, 0)), jnp.array([[action]]))[0]
    )


def test_the_best_action_is_learned_with_its_value():
    agent = learned("action", SMALL)
    assert greedy(agent, -0.5) == pytest.approx(0.5, abs=0.15)
    assert q_of(agent, -0.5, 0.5) == pytest.approx(1, abs=0.1)
    assert q_of(agent, -0.5, -0.5) == pytest.approx(0, abs=0.1)


def test_the_action_follows_the_goal():
    agent = learned("goal", SMALL)
    assert greedy(agent, -0.5, [0.6]) == pytest.approx(0.6, abs=0.2)
    assert greedy(agent, -0.5, [-0.6]) == pytest.approx(-0.6, abs=0.2)


def test_termination_does_not_bootstrap_and_truncation_does():
    agent = learned("delayed", SMALL)
    assert q_of(agent, 0.0, 0.3) == pytest.approx(1, abs=0.1)
    assert q_of(agent, -0.5, 0.3) == pytest.approx(0.99, abs=0.1)
    endless = dataclasses.replace(SMALL, discount=0.5)
    assert q_of(learned("endless", endless), 0.0, 0.3) == pytest.approx(2, abs=0.2)


def test_exploration_noise_has_the_deviation_asked_for(key):
    agent = dataclasses.replace(SMALL, noise=0.2)
    state = agent.init(Sizes(1, 0, 1), key)
    at = (jnp.zeros((2000, 1)), jnp.zeros((2000, 0)), key)
    noise = agent.act(state, *at, jnp.asarray(0)).actions - agent.act_greedily(state, *at).actions
    assert float(jnp.std(noise)) == pytest.approx(0.2, rel=0.1)
