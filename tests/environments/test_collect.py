"""The rules of Collect, by hand."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from grasp.environments.collect import (
    COLLECT,
    DOWN,
    EPSILON,
    LEFT,
    LIMIT,
    ORDERS,
    RIGHT,
    UP,
    Collect,
)

OBJECTS = [[0.5, 0.5], [0.8, 0.5], [0.5, 0.8]]  # A, B, C: two steps of epsilon apart


def world(order=(0, 1, 2), agent=(0.5, 0.5)):
    environment = Collect()
    environment.reset(seed=0, options={"agent": agent, "objects": OBJECTS, "order": order})
    return environment


def walk(environment, *actions):
    for action in actions:
        result = environment.step(action)
    return result


RIGHT_ORDER = (COLLECT, *[RIGHT] * 2, COLLECT, *[UP] * 2, *[LEFT] * 2, COLLECT)


def test_the_right_order_earns_one_at_the_last_pick_and_ends():
    environment = world()
    _, reward, terminated, _, _ = walk(environment, *RIGHT_ORDER[:-1])
    assert (reward, terminated) == (0, False)
    _, reward, terminated, truncated, info = environment.step(RIGHT_ORDER[-1])
    assert (reward, terminated, truncated, info["success"]) == (1, True, False, True)


@pytest.mark.parametrize("order", [order for order in ORDERS if order[0] != 0])
def test_a_pick_out_of_order_ends_with_nothing(order):
    _, reward, terminated, truncated, info = world(order).step(COLLECT)
    assert (reward, terminated, truncated, info["success"]) == (0, True, False, False)


def test_collect_out_of_reach_does_nothing():
    environment = world(agent=(0.1, 0.1))
    observation, reward, terminated, _, _ = environment.step(COLLECT)
    assert (reward, terminated) == (0, False)
    np.testing.assert_array_equal(observation["observation"][-3:], [1, 1, 1])


def test_moves_are_epsilon_and_stop_at_the_walls():
    environment = world(agent=(0.05, 0.97))
    for action, place in {RIGHT: (0.2, 0.97), UP: (0.2, 1.0), DOWN: (0.2, 0.85)}.items():
        observation = environment.step(action)[0]
        np.testing.assert_allclose(observation["observation"][:2], place, atol=1e-6)
    observation = walk(environment, LEFT, LEFT)[0]
    np.testing.assert_allclose(observation["observation"][:2], (0, 0.85), atol=1e-6)


def test_the_nearest_of_two_in_reach_is_picked():
    environment = Collect()
    places = [[0.5, 0.5], [0.62, 0.5], [0.1, 0.1]]
    fixed = {"agent": [0.57, 0.5], "objects": places, "order": (1, 0, 2)}
    environment.reset(seed=0, options=fixed)
    observation, _, terminated, _, _ = environment.step(COLLECT)
    assert not terminated
    np.testing.assert_array_equal(observation["observation"][-3:], [1, 0, 1])


def test_an_episode_is_truncated_at_its_limit():
    environment = world(agent=(0.0, 0.0))
    results = [environment.step(LEFT) for _ in range(LIMIT)]
    assert not any(truncated for _, _, _, truncated, _ in results[:-1])
    assert results[-1][3]
    assert not results[-1][2]


def test_layouts_are_random_apart_and_every_order_comes():
    environment, orders = Collect(), set()
    for seed in range(200):
        observation, _ = environment.reset(seed=seed)
        places = environment.objects
        gaps = [np.linalg.norm(places[i] - places[j]) for i, j in ((0, 1), (0, 2), (1, 2))]
        assert min(gaps) >= 2 * EPSILON
        assert environment.observation_space.contains(observation)
        orders.add(environment.order)
    assert orders == set(ORDERS)


def test_the_goal_tells_the_order():
    observation, _ = Collect().reset(seed=0, options={"order": (2, 0, 1)})
    np.testing.assert_array_equal(
        observation["desired_goal"].reshape(3, 3), [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
    )


def test_gymnasium_knows_it_and_has_nothing_to_complain_about():
    environment = gymnasium.make("grasp/Collect-v0", render_mode="rgb_array")
    check_env(environment.unwrapped)
    environment.reset(seed=0)
    frame = environment.render()
    assert frame.dtype == np.uint8
    assert frame.std() > 5


def test_an_episode_can_be_put_back():
    environment, other = world(), Collect()
    walk(environment, *RIGHT_ORDER[:5])
    other.reset(seed=5)
    other.set_state(environment.get_state())
    for action in RIGHT_ORDER[5:]:
        left, right = environment.step(action), other.step(action)
        np.testing.assert_array_equal(left[0]["observation"], right[0]["observation"])
        assert left[1:] == right[1:]
