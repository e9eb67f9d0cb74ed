"""The rules of Ant-Gather, by hand."""

import gymnasium
import mujoco
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from grasp.environments.ant_gather import (
    APPLES,
    ARENA,
    BOMBS,
    CATCH,
    FALL,
    LIMIT,
    OBJECTS,
    STEP,
    AntGather,
    WalkThere,
)
from grasp.options import ReachingOptions

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


@pytest.mark.parametrize("orientation", [[0, 1, 0, 0], [0.6, 0, 0.8, 0]])
def test_a_fall_ends_the_episode_with_nothing(orientation):
    """On its back, and tilted by 106 degrees."""
    environment = world()
    environment.data.qpos[3:7] = orientation
    _, reward, terminated, _, info = environment.step(STILL)
    assert (reward, terminated, info["fell"], info["success"]) == (0, True, True, False)


def test_a_leap_is_not_a_fall():
    environment = world()
    environment.data.qpos[2] = 1.4
    _, _, terminated, _, info = environment.step(STILL)
    assert (terminated, info["fell"]) == (False, False)


def test_the_scene_is_the_square_with_apples_to_take():
    environment = world(place=(2.0, -4.0))
    scene = environment.scene()
    np.testing.assert_allclose(scene.agent, [0.75, 0])
    np.testing.assert_allclose(scene.objects[0], APPLES[0] / 8 + 0.5)
    assert (scene.marks, scene.wanted()) == ("AAABBBBB", [0, 1, 2])
    np.testing.assert_allclose(environment.options_to_objects()[3], [*BOMBS[0], 0, 0])
    left = [True, False, True, False, True, True, True, True]
    environment.reset(seed=0, options={"left": left})
    assert environment.scene().left.tolist() == left


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


def turned_inside(environment, quarter):
    """Name the four sides anew: the same ant in the same pose, another leg is its first."""
    data, angle = environment.data, quarter * np.pi / 2
    alike = np.array([1, 1, 1, -1, 1, -1, 1, 1])  # two ankles bend the other way round
    orientation = np.zeros(4)
    turn = np.array([np.cos(angle / 2), 0, 0, np.sin(angle / 2)])
    mujoco.mju_mulQuat(orientation, data.qpos[3:7], turn)  # pyright: ignore
    data.qpos[3:7] = orientation
    for joints in (data.qpos[7:], data.qvel[6:]):
        joints[:] = np.roll(joints * alike, -2 * quarter) * alike
    (x, y), cosine, sine = data.qvel[3:5].copy(), np.cos(angle), np.sin(angle)
    data.qvel[3:5] = [cosine * x + sine * y, cosine * y - sine * x]
    return np.concatenate([data.qpos, data.qvel])


@pytest.mark.parametrize("quarter", [1, 2, 3])
def test_an_ant_walks_alike_with_each_of_its_sides_in_front(quarter):
    """By the physics: another naming of the legs, and the options move the same ant."""
    reaching, random = WalkThere(), np.random.default_rng(0)
    option = np.array([2.0, 1.0, 0.3, -0.2])
    size = reaching.inputs(np.ones(29), option).size
    layers = [(random.normal(size=(size, 8)) / 3, np.zeros(8))]
    options = ReachingOptions(reaching, layers)
    ways = []
    for sides in (0, quarter):
        environment = world()
        environment.step(np.full(8, 0.3))
        observation = turned_inside(environment, sides)
        for _ in range(4):
            action, _ = options.act(observation, option)
            observation = environment.step(action)[0]
        ways.append(observation[:3])
    np.testing.assert_allclose(ways[0], ways[1], atol=1e-3)
    assert np.abs(ways[0][:2] - [1.4, 0.2]).max() > 0.02  # it did move


def test_outputs_are_kept_as_the_body_makes_them():
    reaching, random = WalkThere(), np.random.default_rng(1)
    bodies, options = random.normal(size=(50, 29)), random.normal(size=(50, 4))
    outputs = random.uniform(-1, 1, (50, 8))
    seen = reaching.to_front(bodies, options, outputs)
    np.testing.assert_allclose(reaching.from_front(bodies, options, seen), outputs)
    assert len({tuple(row) for row in np.argsort(np.abs(seen)) - np.argsort(np.abs(outputs))}) > 4


def test_reached_failed_and_the_reward_of_walking():
    reaching = WalkThere()
    body, after = np.zeros(29), np.zeros(29)
    body[2:7] = after[2:7] = [0.55, 1, 0, 0, 0]
    after[0] = 0.04
    option = np.array([2.0, 0.0, 0.0, 0.0])
    assert not reaching.reached(body, option)
    assert reaching.reward(body, after, option) == pytest.approx(0.08)
    after[0] = -0.2
    assert reaching.reward(body, after, option) == pytest.approx(-0.4)
    after[0] = 1.6
    assert reaching.reached(after, option)
    assert reaching.reward(body, after, option) == pytest.approx(2 * STEP + 1)
    after[15] = 0.5  # arrives with 0.5 m/s where 0 was asked for
    assert reaching.reward(body, after, option) == pytest.approx(2 * STEP + 0.9)
    np.testing.assert_allclose(reaching.achieved(after), [1.6, 0, 0.5, 0])
    after[3:7] = [0, 1, 0, 0]
    assert reaching.failed(after)
    assert reaching.reward(body, after, option) == pytest.approx(2 * STEP + 0.9 - FALL)
