"""The agent: probe environments with known answers, targets, compilations, normalisation."""

import dataclasses
import gc
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from probes import greedy, learned, replayed, sampled

from grasp.agents.agent import Sizes
from grasp.agents.compiled import CompiledAgent
from grasp.agents.grasp import Grasp
from grasp.agents.state import centred, following
from grasp.errors import UsageError
from grasp.normaliser import Normaliser
from grasp.planners.complete_tree import CompleteTree
from grasp.planners.gumbel import Gumbel

SMALL = Grasp(
    num_affordances=2,
    planner=CompleteTree(depth=1, temperature=0.5),
    width=32,
    batch=32,
    window=2,
    model_learning_rate=5e-4,
    affordance_learning_rate=2e-3,
    updates_per_call=50,
    target_rate=0.05,
    greedy_share=0.0,
)
ENDLESS = Sizes(1, 0, 1, endless=True)


def value(agent, observation, goal=()):
    plan = agent.plan(
        np.array([[observation]], np.float32), np.array(goal, np.float32).reshape(1, -1)
    )
    return float(plan.q_values.max())


def test_constant_reward_is_learned():
    assert value(learned("constant", SMALL), -0.5) == pytest.approx(1, abs=0.05)


def test_the_best_action_is_learned_with_its_value():
    agent = learned("action", SMALL)
    assert greedy(agent, -0.5) == pytest.approx(0.5, abs=0.15)
    assert value(agent, -0.5) == pytest.approx(1, abs=0.1)


def test_returns_of_several_decisions_without_unrolling_them():
    agent = dataclasses.replace(SMALL, window=3, unroll=1, trace=1.0)
    assert value(learned("delayed", agent), -0.5) == pytest.approx(1, abs=0.1)


def test_the_offset_of_values_raises_all_plans_alike(key):
    tree = CompleteTree(depth=2, temperature=0.5)
    agent = dataclasses.replace(SMALL, planner=tree, centring=0.03)
    state = agent.init(ENDLESS, key)
    raised = eqx.tree_at(lambda s: s.target.model.offset, state, jnp.array(5.0))
    seen = (jnp.array([[-0.3], [0.4]]), jnp.zeros((2, 0)))
    low, high = (agent.plan(s, *seen, key) for s in (state, raised))
    np.testing.assert_allclose(high.policy, low.policy, atol=1e-5)
    np.testing.assert_allclose(high.q_values - low.q_values, 5 * agent.discount**2, rtol=1e-5)


def test_the_offset_moves_by_what_the_targets_show_it_to_lack(key):
    model = dataclasses.replace(SMALL, centring=0.03).init(ENDLESS, key).online.model
    raised = eqx.tree_at(lambda m: m.offset, model, jnp.array(2.0))
    metrics = {"train/value_lacks": jnp.array(0.5)}
    moved = centred(raised, metrics, 0.03).offset  # 0.5 is a hundredth of 50
    assert moved == pytest.approx(2 + 0.03 * 50)


def test_values_have_no_offset_where_episodes_end(key):
    agent = dataclasses.replace(SMALL, centring=0.03)
    assert agent.init(Sizes(1, 0, 1), key).online.model.offset is None


def test_a_reward_for_ever_is_soon_worth_a_hundred_of_it():
    """r / (1 - gamma), which targets alone would take tens of thousands of updates to reach."""
    _, replay = replayed("action")  # endless it is not, but its ends are taken out below
    worth = {}
    for centring in (0.0, 0.03):
        agent = dataclasses.replace(SMALL, centring=centring)
        compiled = CompiledAgent(agent, ENDLESS, 0)
        for call in range(20):
            windows = sampled(replay, agent, call)
            compiled.update(
                windows._replace(
                    rewards=np.ones_like(windows.rewards),
                    durations=np.ones_like(windows.durations),
                    terminated=np.zeros_like(windows.terminated),
                    valid=np.ones_like(windows.valid),
                ),
                agent.updates_per_call * call,
            )
        worth[centring] = value(compiled, -0.5)
        online, target = compiled.arrays.online.model, compiled.arrays.target.model
        assert online.offset == target.offset
    assert worth[0.03] == pytest.approx(100, rel=0.05)
    assert worth[0.0] < 50


def test_heads_take_a_step_in_every_second_update_and_their_metrics_stay_between():
    agent = dataclasses.replace(SMALL, updates_per_call=1, affordance_period=2)
    sizes, replay = replayed("action")
    compiled, windows = CompiledAgent(agent, sizes, 0), sampled(replay, agent, 0)
    heads, gradients = [], []
    for update in range(4):
        metrics = compiled.update(windows, update)
        assert metrics is not None
        heads.append(np.array(compiled.arrays.online.affordances.offsets))
        gradients.append(float(metrics["train/affordance_gradient"]))
    changed = [(before != after).any() for before, after in itertools.pairwise(heads)]
    assert changed == [False, True, False]
    assert gradients[0] == gradients[1] != gradients[2] == gradients[3]


def test_values_in_larger_units_are_the_same_values():
    plain, scaled = (dataclasses.replace(SMALL, value_scale=scale) for scale in (1.0, 10.0))
    models = [a.init(Sizes(1, 0, 1), jax.random.key(0)).online.model for a in (plain, scaled)]
    state = models[0].encode(jnp.array([0.3]), jnp.zeros(0))
    said = [model.value(state) for model in models]
    assert float(said[1]) == pytest.approx(10 * float(said[0]), rel=1e-5)
    agent = learned("delayed", scaled)
    assert value(agent, -0.5) == pytest.approx(0.99, abs=0.06)


def test_the_action_follows_the_goal():
    agent = learned("goal", SMALL, calls=50)
    assert greedy(agent, -0.5, [0.6]) == pytest.approx(0.6, abs=0.2)
    assert greedy(agent, -0.5, [-0.6]) == pytest.approx(-0.6, abs=0.2)


def test_affordances_that_do_not_read_the_goal_serve_both_goals_between_them():
    """SA-2 and A-2 cannot move with the goal, so one head goes to each and planning picks."""
    for reads in ("state", "none"):
        agent = learned("goal", dataclasses.replace(SMALL, affordances=reads), calls=50)
        plans = [
            agent.plan(np.array([[-0.5]], np.float32), np.array([[g]], np.float32))
            for g in (0.6, -0.6)
        ]
        np.testing.assert_array_equal(plans[0].actions, plans[1].actions)
        assert greedy(agent, -0.5, [0.6]) == pytest.approx(0.6, abs=0.25)
        assert greedy(agent, -0.5, [-0.6]) == pytest.approx(-0.6, abs=0.25)


def test_delayed_reward_is_discounted_once():
    agent = learned("delayed", SMALL)
    assert value(agent, -0.5) == pytest.approx(0.99, abs=0.06)
    assert value(agent, 0.0) == pytest.approx(1, abs=0.06)


def test_truncation_bootstraps():
    agent = learned("endless", dataclasses.replace(SMALL, discount=0.9), calls=60)
    assert value(agent, 0.0) == pytest.approx(10, rel=0.1)


def test_termination_does_not_bootstrap():
    agent = learned("final", SMALL)
    assert value(agent, -0.5) == pytest.approx(1, abs=0.06)
    assert value(agent, 0.0) == pytest.approx(0, abs=0.06)


def test_planning_two_deep_knows_that_nothing_follows_the_end():
    agent = learned("final", dataclasses.replace(SMALL, planner=CompleteTree(2, 0.5)))
    assert value(agent, -0.5) == pytest.approx(1, abs=0.08)
    assert value(agent, 0.0) == pytest.approx(0, abs=0.08)


def test_act_and_update_compile_once():
    agent = learned("action", SMALL, calls=2)
    observations, goals = np.zeros((1, 1), np.float32), np.zeros((1, 0), np.float32)
    for step in range(3):
        agent.act(observations, goals, step)
        agent.act_greedily(observations, goals, step)
    assert agent._act._cache_size() == 1
    assert agent._act_greedily._cache_size() == 1
    assert agent._update._cache_size() == 1


def test_an_agent_that_is_let_go_leaves_nothing_compiled():
    def left() -> int:
        agent = CompiledAgent(Grasp(width=8), Sizes(observation=2, goal=0, action=1), seed=0)
        agent.act_greedily(np.zeros((1, 2), np.float32), np.zeros((1, 0), np.float32))
        del agent
        gc.collect()
        return len(jax.devices()[0].client.live_executables())

    assert left() == left()


def test_an_update_takes_the_place_of_the_agent_before_it_unless_it_is_not_finite():
    sizes, replay = replayed("action")
    agent, windows = CompiledAgent(SMALL, sizes, 0), sampled(replay, SMALL, 0)
    given = jax.tree.leaves(agent.arrays)
    assert agent.update(windows, 0) is not None
    assert all(leaf.is_deleted() for leaf in given)  # its memory is used again
    before = jax.tree.map(np.array, agent.arrays)
    broken = windows._replace(rewards=np.full_like(windows.rewards, np.nan))
    assert agent.update(broken, SMALL.updates_per_call) is None
    jax.tree.map(np.testing.assert_array_equal, agent.arrays, before)
    assert agent.update(windows, SMALL.updates_per_call) is not None


@pytest.mark.parametrize(("period", "rate"), [(3, 1.0), (1, 0.25)])
def test_targets_follow_the_online_parameters(key, period, rate):
    state = Grasp(width=8).init(Sizes(2, 0, 1), key)
    moved = jax.tree.map(lambda leaf: leaf + 1.0 if eqx.is_array(leaf) else leaf, state.online)
    for updates in range(1, 7):
        followed = following(state.target, moved, jnp.asarray(updates), period, rate)
        share = rate if updates % period == 0 else 0.0
        for old, new in zip(jax.tree.leaves(state.target), jax.tree.leaves(followed), strict=True):
            np.testing.assert_allclose(new, old + share, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("targets", [True, False])
def test_greedy_decisions_are_those_of_the_parameters_asked_for(key, targets):
    agent = dataclasses.replace(SMALL, act_by_targets=targets)
    state = agent.init(Sizes(1, 0, 1), key)
    other = agent.init(Sizes(1, 0, 1), jax.random.key(8))
    state = eqx.tree_at(lambda s: s.target, state, other.target)
    expected = other if targets else agent.init(Sizes(1, 0, 1), key)
    at = (jnp.full((1, 1), 0.3), jnp.zeros((1, 0)), key)
    np.testing.assert_array_equal(
        agent.act_greedily(state, *at).actions, agent.act_greedily(expected, *at).actions
    )


def test_learning_through_a_shallower_tree_than_the_one_that_decides():
    """Planned two deep and learned one deep: the parameters are those of depth 1, the plans not."""
    shallow = learned("goal", SMALL, calls=2)
    deeper = dataclasses.replace(SMALL, planner=CompleteTree(2, 0.5), learning_depth=1)
    deep = learned("goal", deeper, calls=2)
    assert eqx.tree_equal(shallow.arrays, deep.arrays)
    assert value(shallow, -0.5, [0.6]) != value(deep, -0.5, [0.6])
    with pytest.raises(UsageError, match="Gumbel has no depth"):
        dataclasses.replace(SMALL, planner=Gumbel(16), learning_depth=1)


def test_random_affordances_never_learn():
    agent = dataclasses.replace(SMALL, affordance_learning_rate=0.0, saturation_penalty=0.0)
    trained = learned("action", agent, calls=2)
    fresh = CompiledAgent(agent, trained.sizes, seed=0)
    for old, new in zip(
        jax.tree.leaves(fresh.arrays.online.affordances),
        jax.tree.leaves(trained.arrays.online.affordances),
        strict=True,
    ):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("normalised", [True, False])
def test_hidden_layers_are_normalised_where_asked(key, normalised):
    agent = dataclasses.replace(SMALL, normalise_layers=normalised)
    online = agent.init(Sizes(2, 0, 1), key).online
    networks = [online.model.encoder, online.model.embedding, online.model.dynamics]
    networks += [online.model.reward_head, *online.model.value_heads, online.affordances.mappings]
    assert {network.norm for network in networks} == {normalised}


def test_there_is_no_network_for_an_end_that_never_comes(key):
    ends, endless = (SMALL.init(Sizes(2, 0, 1, endless=never), key) for never in (False, True))
    assert ends.online.model.predicts_termination
    assert not endless.online.model.predicts_termination


def test_exploration_noise_falls_with_the_decisions():
    agent = CompiledAgent(
        dataclasses.replace(SMALL, noise_start=0.4, noise_end=0.0, noise_decisions=50_000),
        Sizes(1, 0, 1),
        0,
    )
    observations, goals = np.zeros((400, 1), np.float32), np.zeros((400, 0), np.float32)

    def spread(decisions):
        decision = agent.act(observations, goals, decisions)
        heads = np.asarray(decision.heads)
        chosen = np.asarray(decision.plan.actions)[np.arange(400), heads]
        return np.std(np.asarray(decision.actions) - chosen)

    assert spread(0) == pytest.approx(0.4, rel=0.2)
    assert spread(25_000) == pytest.approx(0.2, rel=0.2)
    assert spread(50_000) == 0
    assert np.abs(agent.act(observations, goals, 0).actions).max() <= 1


def test_greedy_stretches_are_whole_and_as_many_as_asked():
    agent = dataclasses.replace(
        SMALL, noise_end=0.5, noise_decisions=0, greedy_share=0.25, greedy_stretch=10
    )
    compiled = CompiledAgent(agent, Sizes(1, 0, 1), 0)
    observations, goals = np.zeros((2, 1), np.float32), np.zeros((2, 0), np.float32)
    greedy = np.asarray(compiled.act_greedily(observations, goals).actions)

    def greedy_lanes(decisions):
        actions = np.asarray(compiled.act(observations, goals, decisions).actions)
        return (actions == greedy).all(-1)  # [2]

    of_a_stretch = 2 * 10  # decisions of both environments
    stretches = np.array(
        [[greedy_lanes(of_a_stretch * at + step) for step in (0, 18)] for at in range(200)]
    )  # [200, first and last, 2]
    np.testing.assert_array_equal(stretches[:, 0], stretches[:, 1])
    assert stretches.mean() == pytest.approx(0.25, abs=0.07)
    assert (stretches[:, 0, 0] != stretches[:, 0, 1]).any()  # each environment has its own


def test_heads_are_sampled_from_the_policy():
    agent = CompiledAgent(dataclasses.replace(SMALL, num_affordances=4), Sizes(1, 0, 1), 0)
    observations, goals = np.zeros((4000, 1), np.float32), np.zeros((4000, 0), np.float32)
    decision = agent.act(observations, goals, 0)
    shares = np.bincount(np.asarray(decision.heads), minlength=4) / 4000
    np.testing.assert_allclose(shares, decision.plan.policy[0], atol=0.04)
    greedy = agent.act_greedily(observations, goals)
    assert (np.asarray(greedy.heads) == np.argmax(decision.plan.policy[0])).all()


def test_same_place_same_numbers():
    def actions(seed, step):
        agent = CompiledAgent(SMALL, Sizes(1, 0, 1), seed)
        return np.asarray(
            agent.act(np.zeros((3, 1), np.float32), np.zeros((3, 0), np.float32), step).actions
        )

    np.testing.assert_array_equal(actions(1, 5), actions(1, 5))
    assert not np.array_equal(actions(1, 5), actions(1, 6))
    assert not np.array_equal(actions(1, 5), actions(2, 5))


def test_normaliser_is_numpys_mean_and_deviation():
    data = np.random.default_rng(0).normal(3, 2, (100, 4)).astype(np.float32)
    data[:, 3] = 7.0  # constant
    statistics = Normaliser.empty(4)
    for part in np.split(data, [10, 55]):
        statistics = statistics.including(jnp.asarray(part))
    expected = (data - data.mean(0)) / np.where(data.std(0) > 1e-4, data.std(0), 1)
    np.testing.assert_allclose(statistics(jnp.asarray(data)), expected, atol=1e-3)
    fresh = Normaliser.empty(4)
    np.testing.assert_array_equal(fresh(jnp.asarray(data)), data)
    assert np.abs(statistics(jnp.full((1, 4), 1e9))).max() <= 10


@pytest.mark.parametrize("reads", ["goal", "state", "none"])
def test_what_each_kind_of_affordance_reads(key, reads):
    agent = dataclasses.replace(SMALL, affordances=reads, num_affordances=3)
    affordances = agent.init(Sizes(1, 2, 2), key).online.affordances

    def actions(features, goal):
        from grasp.model import AbstractState

        return affordances(AbstractState(jnp.full(32, features), jnp.full(2, goal)))

    assert actions(0.1, 0.1).shape == (3, 2)
    assert (reads != "none") == (not np.array_equal(actions(0.1, 0.1), actions(0.9, 0.1)))
    assert (reads == "goal") == (not np.array_equal(actions(0.1, 0.1), actions(0.1, 0.9)))
