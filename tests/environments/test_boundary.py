"""Where an environment's numbers enter: bounds, goals, faults at any step."""

import gymnasium
import numpy as np
import pytest

from grasp.environments import (
    PIXELS,
    SUITE,
    TASKS,
    check_task,
    make,
    suite_of,
    usual_repeat,
    usual_sight,
)
from grasp.environments.boundary import Boundary
from grasp.environments.frames import Sight
from grasp.errors import EnvironmentFault, EnvironmentRaised, UsageError
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
    assert goal.sizes == (1, 1, 1, False, None, False)
    observation, desired = goal.reset(3)
    assert abs(desired[0]) == pytest.approx(0.6)
    assert observation.dtype == np.float32
    assert Boundary(Probe("action"), "probe").sizes.goal == 0


BAD = {
    "NaN observation": (np.array([np.nan]), 1.0),
    "infinite observation": (np.array([np.inf]), 1.0),
    "too large for float32": (np.array([1e300]), 1.0),
    "NaN reward": (np.array([1.0]), np.nan),
    "infinite reward": (np.array([1.0]), -np.inf),
    "two rewards": (np.array([1.0]), np.array([1.0, 2.0])),
    "no reward": (np.array([1.0]), None),
    "a reward of text": (np.array([1.0]), "1"),
    "another size": (np.array([1.0, 2.0]), 1.0),
    "another shape": (np.array([[1.0]]), 1.0),
    "no observation": (None, 1.0),
    "objects": (np.array([None]), 1.0),
    "complex numbers": (np.array([1j]), 1.0),
    "rows of unequal length": ([[1.0], [1.0, 2.0]], 1.0),
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


@pytest.mark.parametrize("name", TASKS)
def test_an_episode_is_a_function_of_its_seed_and_can_be_put_back(name):
    actions = np.random.default_rng(0).uniform(-1, 1, (40, 10))

    def run(world, start, stop):
        size = world.sizes.action
        return [world.step(a[:size]) for a in actions[start:stop]]

    world, other = Boundary(make(name), name), Boundary(make(name), name)
    first, again = world.reset(7), other.reset(7)
    np.testing.assert_array_equal(first[0], again[0])
    half = 2 if world.sizes.options else 20  # options make long episodes short
    last = run(world, 0, half)[-1]
    assert not last.ended
    state = world.state()
    assert all(name.startswith("state/") for name in state)  # by its own account
    rest = run(world, half, 2 * half)
    other.reset(99)
    assert other.restore(state, last.observation, last.goal)
    for expected, restored in zip(rest, run(other, half, 2 * half), strict=True):
        np.testing.assert_array_equal(expected.observation, restored.observation)
        assert expected.reward == restored.reward


@pytest.mark.parametrize("action_repeat", [1, 2])
def test_a_suite_episode_is_truncated_after_a_thousand_steps_not_terminated(action_repeat):
    world = Boundary(make("reacher-easy", sight=Sight(action_repeat)), "reacher-easy")
    world.reset(0)
    outcomes = [world.step(np.zeros(2)) for _ in range(1000 // action_repeat)]
    assert not any(outcome.ended for outcome in outcomes[:-1])
    assert outcomes[-1].truncated
    assert not outcomes[-1].terminated


@pytest.mark.parametrize(
    ("task", "endless"),
    [*((task, True) for task in SUITE), ("dmc:lqr-lqr_2_1", False), ("gym:Pendulum-v1", False)],
)
def test_only_tasks_that_never_end_an_episode_are_called_endless(task, endless):
    assert Boundary(make(task), task).sizes.endless == endless


def test_suite_tasks_are_decided_every_second_step_but_by_the_paper_and_td3():
    repeats = {
        (task, preset): usual_sight(task, preset).action_repeat
        for task in ("walker-walk", "dmc:hopper-hop", "gym:Pendulum-v1", "collect", PIXELS + "a-b")
        for preset in ("default", "paper")
    }
    assert [repeats.pop((task, "default")) for task in ("walker-walk", "dmc:hopper-hop")] == [2, 2]
    assert [repeats.pop((PIXELS + "a-b", preset)) for preset in ("default", "paper")] == [2, 2]
    assert set(repeats.values()) == {1}
    by_td3 = [usual_repeat(task, agent="TD3") for task in ("walker-walk", PIXELS + "walker-walk")]
    assert by_td3 == [1, 2]


def test_any_suite_task_and_any_gymnasium_task():
    assert make("dmc:pendulum-swingup").action_space.shape == (1,)
    assert Boundary(make("gym:Pendulum-v1"), "pendulum").sizes == (3, 0, 1, False, None, False)
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


class Answering(Counting):
    """Gives a whole answer of one's own from step 2 on."""

    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def step(self, action):
        usual = super().step(action)
        return usual if self.steps < 2 else self.answer


ONE = np.array([1.0], np.float32)


@pytest.mark.parametrize(
    "answer",
    [
        None,
        (ONE, 1.0, False, {}),
        (ONE, 1.0, None, False, {}),
        (ONE, 1.0, False, np.nan, {}),
        (ONE, 1.0, np.array([True]), False, {}),
        (ONE, 1.0, False, False, None),
        (ONE, 1.0, False, False, {"duration": 0}),
        (ONE, 1.0, False, False, {"duration": 1.5}),
    ],
)
def test_an_answer_that_is_not_gymnasiums_is_named(answer):
    world = Boundary(Answering(answer), "counting")
    world.reset(0)
    world.step(np.zeros(2))
    with pytest.raises(EnvironmentFault, match="counting returned"):
        world.step(np.zeros(2))


class Pair(Counting):
    """Without a state of its own; `drift` is not a function of the seed."""

    drift = 0.0

    def step(self, action):
        observation, *rest = super().step(action)
        return (observation * 10 + np.float32(action[0]) + np.float32(self.drift), *rest)


def test_an_episode_is_put_back_by_its_seed_and_actions_if_it_ends_up_the_same():
    world, other = Boundary(Pair(), "pair"), Boundary(Pair(), "pair")
    world.reset(5)
    for share in (0.1, -0.7, 0.3):
        last = world.step(np.array([share, share]))
    state = world.state()
    assert state.keys() == {"seed", "actions"}
    assert other.restore(state, last.observation, last.goal)
    assert other.environment.steps == 3
    assert other.state()["actions"].tobytes() == state["actions"].tobytes()
    other.environment.drift = 1e-3
    assert not other.restore(state, last.observation, last.goal)
    assert not other.restore({}, last.observation, last.goal)


def test_a_state_that_is_not_numbers_is_named():
    environment = Counting()
    environment.get_state = lambda: {"generator": object()}
    with pytest.raises(EnvironmentFault, match="generator of type object"):
        Boundary(environment, "counting").state()


class Raising(Counting):
    def step(self, action):
        if self.steps == 3:
            raise ZeroDivisionError("the simulator fell over")
        return super().step(action)


def test_an_error_inside_the_environment_is_said_as_such():
    world = Boundary(Raising(), "counting")
    world.reset(0)
    for _ in range(3):
        world.step(np.zeros(2))
    with pytest.raises(EnvironmentRaised, match="raised ZeroDivisionError in step: the simulator"):
        world.step(np.zeros(2))
    assert world.busy is None


def test_a_suite_task_stepped_past_its_end_asks_for_a_reset():
    environment = make("cartpole-swingup")
    environment.reset(seed=0)
    action, ended = np.zeros(1, np.float32), False
    while not ended:
        *_, terminated, truncated, _ = environment.step(action)
        ended = terminated or truncated
    with pytest.raises(gymnasium.error.ResetNeeded, match="call reset"):
        environment.step(action)
