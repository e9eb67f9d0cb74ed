"""Several seeds in one compiled call: each as if it were alone."""

import jax
import numpy as np
import pytest
from probes import replayed, sampled

from grasp.agents.compiled import CompiledAgent
from grasp.agents.grasp import Grasp
from grasp.agents.td3 import TD3
from grasp.agents.together import Lesson, Question, Together

SEEDS = (0, 3, 2**40)
AGENTS = {
    "GA-2": Grasp(num_affordances=2, width=8, batch=4, window=2, updates_per_call=2),
    "TD3": TD3(width=8, batch=4, updates_per_call=2),
}


@pytest.fixture(params=AGENTS)
def parties(request):
    """The same agents together and alone, and a replay."""
    agent = AGENTS[request.param]
    sizes, replay = replayed("goal")
    first = CompiledAgent(agent, sizes, SEEDS[0])
    together, alone = ([first.sibling(seed) for seed in SEEDS] for _ in range(2))
    return Together(together), alone, replay


def assert_same(left, right):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-4, 1e-6), left, right)


def test_each_learns_and_decides_as_it_would_alone(parties):
    together, alone, replay = parties
    observations, goals = replay.current()
    for call in range(3):
        lessons = [Lesson(sampled(replay, one.agent, 7 * call + at), 2 * call + at)
                   for at, one in enumerate(alone)]  # fmt: skip
        found = together.update(dict(zip(together.agents, lessons, strict=True)))
        for member, one, lesson in zip(together.agents, alone, lessons, strict=True):
            assert_same(found[member], one.update(*lesson))
            assert_same(member.arrays, one.arrays)
    questions = {one: Question(observations, goals, at) for at, one in enumerate(together.agents)}
    actions = together.act(questions)
    for at, (member, one) in enumerate(zip(together.agents, alone, strict=True)):
        assert_same(actions[member], np.asarray(one.act(observations, goals, at).actions))


def test_who_does_not_ask_stays_as_it_was_and_nothing_is_compiled_anew(parties):
    together, alone, replay = parties
    lesson = Lesson(sampled(replay, alone[0].agent, 0), 0)
    together.update(dict.fromkeys(together.agents, lesson))
    for learning in ([0], [1, 2]):
        before = [jax.tree.map(np.array, one.arrays) for one in together.agents]
        found = together.update({together.agents[at]: lesson for at in learning})
        assert list(found) == [together.agents[at] for at in learning]
        for at, (old, one) in enumerate(zip(before, together.agents, strict=True)):
            same = jax.tree.map(np.array_equal, old, one.arrays)
            assert all(jax.tree.leaves(same)) == (at not in learning)
    assert together._update._cache_size() == 1


def test_an_update_that_is_not_finite_is_refused_for_its_own_seed_alone(parties):
    together, alone, replay = parties
    good = Lesson(sampled(replay, alone[0].agent, 0), 0)
    bad = Lesson(good.windows._replace(rewards=good.windows.rewards * np.float32("nan")), 0)
    first, second, third = together.agents
    before = jax.tree.map(np.array, second.arrays)
    found = together.update({first: good, second: bad, third: good})
    assert found[second] is None
    assert found[first] is not None
    jax.tree.map(np.testing.assert_array_equal, second.arrays, before)
    assert_same(found[first], alone[0].update(*good))


def test_a_seed_that_learns_with_others_cannot_be_set_apart(parties):
    together, alone, replay = parties
    together.act({together.agents[0]: Question(*replay.current(), 0)})
    with pytest.raises(RuntimeError, match="together with other seeds"):
        together.agents[0].arrays = alone[0].arrays
