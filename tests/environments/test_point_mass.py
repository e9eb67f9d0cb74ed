"""The rules of Point-Mass, by hand."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from grasp.environments.collect import ORDERS
from grasp.environments.point_mass import LIMIT, PLACES, RADIUS, BeThereWithVelocity, PointMass

STILL = np.zeros(2, np.float32)


def world(order=(0, 1, 2), state=(0.2, 0.2, 0, 0)):
    environment = PointMass()
    environment.reset(seed=0, options={"order": order, "state": state})
    return environment


def visit(environment, *places):
    """Put the mass on each place in turn and let one step pass."""
    for place in places:
        environment._put(np.append(PLACES[place], [0, 0]))
        result = environment.step(STILL)
    return result


@pytest.mark.parametrize("order", ORDERS)
def test_the_three_places_in_order_earn_one_and_end(order):
    environment = world(order)
    _, reward, terminated, _, _ = visit(environment, *order[:2])
    assert (reward, terminated) == (0, False)
    observation, reward, terminated, truncated, info = visit(environment, order[2])
    assert (reward, terminated, truncated, info["success"]) == (1, True, False, True)
    np.testing.assert_array_equal(observation["observation"][4:], [1, 1, 1])


def test_a_place_counts_only_when_it_is_due():
    environment = world((0, 1, 2))
    observation, reward, terminated, _, _ = visit(environment, 2, 1, 0)
    assert (reward, terminated) == (0, False)
    np.testing.assert_array_equal(observation["observation"][4:], [1, 0, 0])
    assert visit(environment, 1, 2)[1] == 1


def test_a_place_is_passed_within_its_radius_and_not_beyond():
    for distance, passed in ((0.9, 1), (1.2, 0)):
        beside = PLACES[0] + [distance * RADIUS, 0]
        environment = world(state=(*beside, 0, 0))
        environment.step(STILL)
        assert environment.passed == passed


def test_an_episode_is_truncated_at_its_limit():
    environment = world()
    results = [environment.step(STILL) for _ in range(LIMIT)]
    assert [index for index, result in enumerate(results) if result[3]] == [LIMIT - 1]
    assert not results[-1][2]


def test_starts_and_orders_are_random_and_inside():
    environment, orders, starts = PointMass(), set(), []
    for seed in range(100):
        observation, _ = environment.reset(seed=seed)
        assert environment.observation_space.contains(observation)
        orders.add(environment.order)
        starts.append(observation["observation"][:2])
    assert orders == set(ORDERS)
    assert np.abs(starts).max() < 0.29
    assert np.std(starts) > 0.1


def test_gymnasium_knows_it_and_has_nothing_to_complain_about():
    environment = gymnasium.make("grasp/PointMass-v0", render_mode="rgb_array")
    check_env(environment.unwrapped)
    environment.reset(seed=0)
    assert environment.render().std() > 5


def test_an_episode_can_be_put_back_bit_for_bit():
    one, other = world(), PointMass()
    actions = np.random.default_rng(0).uniform(-1, 1, (40, 2))
    for action in actions[:20]:
        one.step(action)
    other.reset(seed=9)
    other.set_state(one.get_state())
    for action in actions[20:]:
        left, right = one.step(action), other.step(action)
        np.testing.assert_array_equal(left[0]["observation"], right[0]["observation"])
        assert left[1:] == right[1:]


def test_an_option_is_reached_in_place_and_velocity():
    reaching = BeThereWithVelocity()
    option = np.array([0.1, 0.1, 0.03, 0])
    assert reaching.reached(option + np.array([0.01, 0.01, 0.01, 0.01]), option)
    assert not reaching.reached(option + np.array([0.03, 0, 0, 0]), option)
    assert not reaching.reached(option + np.array([0, 0, 0.03, 0]), option)
    batch = np.stack([option, option + 1])
    np.testing.assert_array_equal(reaching.reached(batch, np.stack([option] * 2)), [True, False])
