"""Episodes of the Lens are those of `evaluate`, and rules change what comes after them only."""

import numpy as np
import pytest

import grasp
from grasp.environments import make
from grasp.environments.boundary import Boundary
from grasp.lens.episode import Episode, Rule, Spec, compare

FREE = ((0, Rule()),)


@pytest.fixture(scope="module", params=["collect", "pendulum"])
def agent(request):
    """One world that can be put back into a state, and one that cannot."""
    return grasp.load(request.getfixturevalue(f"{request.param}_run").path)


def world(agent):
    name = agent.world.name
    return Boundary(make(name, agent.compiled.agent.discount), name)


def episode(agent, **parts):
    return Episode(agent.compiled, world(agent), Spec(**parts))


def told(played):
    """All of an episode that can be seen, as plain numbers."""
    heads = [choice.head for choice in played.choices]
    return heads, [moment.returned for moment in played.moments], played.success


def test_start_k_is_the_kth_episode_of_evaluate(agent):
    for start, expected in enumerate(agent.evaluate(episodes=3)):
        played = episode(agent, start=start)
        assert played.reach(-1) == expected.decisions
        heads, returns, success = told(played)
        assert heads == expected.heads
        assert returns[-1] == pytest.approx(expected.returned, rel=1e-4, abs=1e-6)
        assert (success, played.moments[-1].steps) == (
            expected.success,
            expected.environment_steps,
        )


def test_a_rule_chooses_among_the_heads_that_are_on():
    policy = np.array([0.2, 0.5, 0.3])
    assert Rule().chosen(policy) == 1
    assert Rule(off=frozenset({1})).chosen(policy) == 2
    assert Rule(off=frozenset({1, 2})).chosen(policy) == 0
    assert Rule(force=0).chosen(policy) == 0


def test_a_new_rule_keeps_what_was_decided_before_it(agent):
    free = episode(agent, start=1)
    free.reach(-1)
    least = int(np.argmin(free.moments[1].plan.policy))
    rules = ((0, Rule()), (1, Rule(force=least)))
    branched = episode(agent, start=1, rules=rules)
    branched.take_over(free)
    assert len(branched.choices) == 1
    assert not branched.ended
    branched.reach(-1)
    heads, returns, _ = told(branched)
    assert heads[0] == free.choices[0].head
    assert set(heads[1:]) == {least}
    fresh = episode(agent, start=1, rules=rules)
    fresh.reach(-1)
    assert told(branched) == told(fresh)
    assert returns != told(free)[1]


def test_an_episode_taken_over_whole_is_over(agent):
    free = episode(agent)
    free.reach(-1)
    again = episode(agent, rules=((0, Rule()), (10_000, Rule(force=0))))
    again.take_over(free)
    assert told(again) == told(free)
    assert again.ended


def test_comparing_plays_each_rule_as_alone(agent):
    rules = [Rule(), Rule(force=0), Rule(off=frozenset({0}))]
    results = compare(agent.compiled, [world(agent) for _ in rules], Spec(start=2), rules)
    for result, rule in zip(results, rules, strict=True):
        alone = episode(agent, start=2, rules=((0, rule),))
        alone.reach(-1)
        assert result.decisions == len(alone.choices)
        assert result.returned == pytest.approx(alone.returned, rel=1e-4, abs=1e-4)
        assert (result.success, result.rule) == (alone.success, rule)


def test_looking_back_changes_nothing(collect_run):
    agent = grasp.load(collect_run.path)
    looked, plain = episode(agent, start=3), episode(agent, start=3)
    plain.reach(-1)
    looked.reach(1)
    assert looked.frame(0).shape == looked.frame(1).shape
    looked.reach(-1)
    assert told(looked) == told(plain)
