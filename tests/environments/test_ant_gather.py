"""The rules of Ant-Gather, by hand."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from grasp.environments.ant_gather import (
    APPLES,
    ARENA,
    BOMBS,
    CATCH,
    LIMIT,
    OBJECTS,
    AntGather,
    WalkThere,
)

STILL = np.zeros(8, np.float32)


def world(place=(1.4, 0.2)):
    environment = AntGather()
    environment.reset(seed=0, options={"place": place, "heading": 0.0})
    return environment


def visit(environment, *places):
    """Put the torso over each place in turn and let one step pass; the rewards, and the last."""
    rewards = []
    for place in places:
        environment.data.qpos[:3] = [*place, 0.6]
        environment.data.qvel[:] = 0
        result = environment.step(STILL)
        rewards.append(result[1])
    return rewards, result


def test_the_objects_are_apart_and_inside():
    apart = np.hypot(*(OBJECTS[:, None] - OBJECTS).transpose(2, 0, 1))
    assert (apart[~np.eye(8, dtype=bool)] >= 2).all()
    assert (np.abs(OBJECTS) <= ARENA).all()
    assert (len(APPLES), len(BOMBS)) == (3, 5)


def test_the_environment_is_clean():
    check_env(gymnasium.make("grasp/AntGather-v0").unwrapped, skip_render_check=True)


def test_starts_are_anywhere_out_of_reach():
    environment = AntGather()
    starts = np.array([environment.reset(seed=seed)[0] for seed in range(100)])
    apart = np.hypot(*(starts[:, None, :2] - OBJECTS).transpose(2, 0, 1))
    assert (apart > CATCH).all()
    assert (starts[:, :2].std(0) > 1.5).all()
    assert starts[:, 3].std() > 0.2  # turned any way
    np.testing.assert_array_equal(starts[:, 29:], 1)


def test_apples_earn_one_each_once_and_the_third_ends():
    environment = world()
    rewards, (observation, *_, info) = visit(environment, APPLES[0], APPLES[0], APPLES[1])
    assert rewards == [1, 0, 1]
    np.testing.assert_array_equal(observation[29:], [0, 0, 1, 1, 1, 1, 1, 1])
    assert (info["apples"], info["success"]) == (2, False)
    rewards, (_, _, terminated, truncated, info) = visit(environment, APPLES[2])
    assert (rewards, terminated, truncated, info["success"]) == ([1], True, False, True)


def test_bombs_earn_nothing_and_are_counted():
    environment = world()
    rewards, (_, _, terminated, _, info) = visit(environment, *BOMBS)
    assert (rewards, terminated, info["bombs"]) == ([0] * 5, False, 5)


def test_reach_is_a_metre():
    environment = world()
    rewards, _ = visit(environment, APPLES[2] + [0, -1.05], APPLES[2] + [0, -0.95])
    assert rewards == [0, 1]


@pytest.mark.parametrize(("height", "orientation"), [(1.4, [1, 0, 0, 0]), (0.5, [0, 1, 0, 0])])
def test_a_fall_ends_the_episode_with_nothing(height, orientation):
    environment = world()
    environment.data.qpos[2:7] = [height, *orientation]
    _, reward, terminated, _, info = environment.step(STILL)
    assert (reward, terminated, info["fell"], info["success"]) == (0, True, True, False)


def test_an_episode_is_truncated_at_its_limit():
    environment = world()
    environment.steps = LIMIT - 2
    assert not environment.step(STILL)[3]
    assert environment.step(STILL)[2:4] == (False, True)


def test_a_state_put_back_continues_bit_for_bit():
    random = np.random.default_rng(0)
    actions = random.uniform(-1, 1, (60, 8))
    environment = world()
    visit(environment, APPLES[0])
    for action in actions[:20]:
        environment.step(action)
    state = environment.get_state()
    expected = [environment.step(action)[0] for action in actions[20:]]
    fresh = AntGather()
    fresh.reset(seed=5)
    fresh.set_state(state)
    for action, observation in zip(actions[20:], expected, strict=True):
        np.testing.assert_array_equal(fresh.step(action)[0], observation)


def test_the_option_is_seen_from_the_body():
    """The same place, left and right of an ant that looks the other way, looks the same."""
    reaching = WalkThere()
    body = np.zeros(29)
    body[2:7] = [0.55, 1, 0, 0, 0]
    turned = body.copy()
    turned[3:7] = [0, 0, 0, 1]  # by half a turn about the vertical
    here = reaching.inputs(body, np.array([2.0, 1.0, 0.3, 0.0]))
    there = reaching.inputs(turned, np.array([-2.0, -1.0, -0.3, 0.0]))
    np.testing.assert_allclose(here, there, atol=1e-12)
    assert here[:2].tolist() == [0.5, 0.25]


def test_reached_failed_and_the_reward_of_walking():
    reaching = WalkThere()
    body, after = np.zeros(29), np.zeros(29)
    body[2:7] = after[2:7] = [0.55, 1, 0, 0, 0]
    after[0] = 0.2
    option = np.array([2.0, 0.0, 0.0, 0.0])
    assert not reaching.reached(body, option)
    assert reaching.reward(body, after, option) == pytest.approx(2)
    after[0] = 1.6
    assert reaching.reached(after, option)
    assert reaching.reward(body, after, option) == pytest.approx(16 + 5)
    after[15] = 0.5  # arrives with 0.5 m/s where 0 was asked for
    assert reaching.reward(body, after, option) == pytest.approx(16 + 4.5)
    np.testing.assert_allclose(reaching.achieved(after), [1.6, 0, 0.5, 0])
    after[2] = 0.1
    assert reaching.failed(after)
    assert reaching.reward(body, after, option) == pytest.approx(16 + 4.5 - 50)
