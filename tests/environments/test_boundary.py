"""Where an environment's numbers enter: bounds, goals, faults at any step."""

import gymnasium
import numpy as np
import pytest

from grasp.environments import TASKS, check_task, make, suite_of
from grasp.environments.boundary import Boundary
from grasp.errors import EnvironmentFault, UsageError
from worlds import Counting, Probe


@pytest.mark.parametrize(
    ("action", "taken"),
    [([-1, -1], [-2, 0]), ([1, 1], [6, 1]), ([0, 0], [2, 0.5]), ([9, -9], [6, 0])],
)
def test_actions_are_stretched_to_the_environments_bounds_and_never_beyond(action, taken):
    environment = Counting()
    world = Boundary(environment, "counting")
    world.reset(0)
    world.step(np.array(action, np.float32))
    np.testing.assert_allclose(environment.last_action, taken)
    assert environment.last_action.dtype == np.float64
    assert environment.action_space.contains(environment.last_action)


def test_a_goal_dictionary_is_split_and_a_box_has_no_goal():
    goal = Boundary(Probe("goal"), "probe")
    assert goal.sizes == (1, 1, 1, False)
    observation, desired = goal.reset(3)
    assert abs(desired[0]) == pytest.approx(0.6)
    assert observation.dtype == np.float32
    assert Boundary(Probe("action"), "probe").sizes.goal == 0


BAD = {
    "NaN observation": (np.array([np.nan]), 1.0),
    "infinite observation": (np.array([np.inf]), 1.0),
    "NaN reward": (np.array([1.0]), np.nan),
    "infinite reward": (np.array([1.0]), -np.inf),
    "another shape": (np.array([1.0, 2.0]), 1.0),
}


@pytest.mark.parametrize("fault", BAD)
@pytest.mark.parametrize("step", [1, 2, 7])
def test_a_bad_number_is_named_at_its_step(fault, step):
    world = Boundary(Counting(length=100, faults={step: BAD[fault]}), "counting")
    world.reset(0)
    for _ in range(step - 1):
        world.step(np.zeros(2))
    with pytest.raises(EnvironmentFault, match="counting returned"):
        world.step(np.zeros(2))


class Discrete(Counting):
    action_space = gymnasium.spaces.Discrete(4)


class Unbounded(Counting):
    action_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,))


class Words(Counting):
    observation_space = gymnasium.spaces.Text(5)


class GoalWithoutObservation(Counting):
    observation_space = gymnasium.spaces.Dict(desired_goal=gymnasium.spaces.Box(-1, 1, (2,)))


@pytest.mark.parametrize("kind", [Discrete, Unbounded, Words, GoalWithoutObservation])
def test_spaces_that_do_not_fit_are_refused_with_what_to_do(kind):
    with pytest.raises(UsageError, match="counting has") as refused:
        Boundary(kind(), "counting")
    assert ":" in str(refused.value)


@pytest.mark.parametrize("name", TASKS)
def test_every_task_loads_and_steps(name):
    world = Boundary(make(name), name)
    world.reset(0)
    outcome = world.step(np.zeros(world.sizes.action))
    assert np.isfinite(outcome.observation).all()
    goals = {"reacher-easy": 3, "fish-swim": 3, "collect": 9, "point-mass": 9}
    assert world.sizes.goal == goals.get(name, 0)
    world.close()


@pytest.mark.parametrize("name", ["reacher-easy", "fish-swim", "walker-walk", "cartpole-swingup"])
def test_an_episode_is_a_function_of_its_seed_and_can_be_put_back(name):
    actions = np.random.default_rng(0).uniform(-1, 1, (40, 10))

    def run(world, start, stop):
        size = world.sizes.action
        return [world.step(a[:size]) for a in actions[start:stop]]

    world, other = Boundary(make(name), name), Boundary(make(name), name)
    first, again = world.reset(7), other.reset(7)
    np.testing.assert_array_equal(first[0], again[0])
    run(world, 0, 20)
    state = world.state()
    rest = run(world, 20, 40)
    other.reset(99)
    other.restore(state)
    for expected, restored in zip(rest, run(other, 20, 40), strict=True):
        np.testing.assert_array_equal(expected.observation, restored.observation)
        assert expected.reward == restored.reward


def test_a_suite_episode_is_truncated_after_a_thousand_steps_not_terminated():
    world = Boundary(make("reacher-easy"), "reacher-easy")
    world.reset(0)
    outcomes = [world.step(np.zeros(2)) for _ in range(1000)]
    assert not any(outcome.ended for outcome in outcomes[:-1])
    assert outcomes[-1].truncated
    assert not outcomes[-1].terminated


def test_any_suite_task_and_any_gymnasium_task():
    assert make("dmc:pendulum-swingup").action_space.shape == (1,)
    assert Boundary(make("gym:Pendulum-v1"), "pendulum").sizes == (3, 0, 1, False)
    assert suite_of("walker-walk") == "dm_control"
    assert suite_of("gym:Pendulum-v1") == "gymnasium"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("cartpole-swingpu", "cartpole-swingup"),
        ("walker", "walker-walk"),
        ("", "tasks"),
        ("gym:", "tasks"),
    ],
)
def test_an_unknown_task_names_the_nearest(name, hint):
    with pytest.raises(UsageError, match=hint):
        check_task(name)


@pytest.mark.parametrize(
    ("name", "hint"), [("dmc:walker-wlak", "walker-walk"), ("gym:Pendulum-v9", "Pendulum")]
)
def test_an_unknown_simulator_task_names_the_nearest(name, hint):
    with pytest.raises(UsageError, match=hint):
        make(name)
