"""Options by hand: discounted reward, duration, and every way an option can end."""

import gymnasium
import numpy as np
import pytest

from grasp.environments.boundary import Boundary
from grasp.errors import UsageError
from grasp.options import OptionEnvironment


class Corridor(gymnasium.Env):
    """Step k earns k; ends for good at step `ends`, is cut at step `cut`."""

    observation_space = gymnasium.spaces.Box(-100, 100, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, ends=99, cut=99):
        self.ends, self.cut = ends, cut

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps, self.actions = 0, []
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.steps += 1
        self.actions.append(action)
        observation = np.array([self.steps], np.float32)
        return observation, float(self.steps), self.steps == self.ends, self.steps == self.cut, {}


class UntilPlace:
    """Go on until the place that the option names; `final` makes the last action another one."""

    space = gymnasium.spaces.Box(0, 50, (1,), np.float32)

    def __init__(self, cap=20, final=False):
        self.cap, self.final = cap, final

    def act(self, observation, option):
        last = self.final and observation[0] >= option[0]
        return int(last), last

    def ended(self, observation, option):
        return not self.final and observation[0] >= option[0]


def decide(option, *, discount=0.5, **kinds):
    corridor = {name: kinds.pop(name) for name in ("ends", "cut") if name in kinds}
    environment = OptionEnvironment(Corridor(**corridor), UntilPlace(**kinds), discount)
    environment.reset(seed=0)
    return environment, environment.step(np.array([option], np.float32))


def test_reward_is_the_discounted_sum_and_duration_the_steps():
    _, (observation, reward, terminated, truncated, info) = decide(3)
    assert reward == 1 + 0.5 * 2 + 0.25 * 3
    assert (observation[0], info["duration"], terminated, truncated) == (3, 3, False, False)


def test_the_next_option_discounts_anew():
    environment, _ = decide(3)
    _, reward, _, _, info = environment.step(np.array([5], np.float32))
    assert reward == 4 + 0.5 * 5
    assert info["duration"] == 2


def test_an_option_lasts_at_least_one_step():
    environment, _ = decide(3)
    _, reward, _, _, info = environment.step(np.array([0], np.float32))
    assert (reward, info["duration"]) == (4, 1)


def test_a_final_action_belongs_to_the_option():
    environment, (_, reward, _, _, info) = decide(2, final=True)
    assert environment.unwrapped.actions == [0, 0, 1]
    assert (reward, info["duration"]) == (1 + 0.5 * 2 + 0.25 * 3, 3)


def test_termination_inside_an_option_ends_it():
    _, (observation, reward, terminated, truncated, info) = decide(10, ends=2)
    assert (observation[0], reward, terminated, truncated, info["duration"]) == (
        2,
        2,
        True,
        False,
        2,
    )


def test_truncation_inside_an_option_ends_it():
    _, (observation, reward, terminated, truncated, info) = decide(10, cut=2)
    assert (observation[0], reward, terminated, truncated, info["duration"]) == (
        2,
        2,
        False,
        True,
        2,
    )


def test_an_option_that_never_terminates_stops_at_its_cap():
    _, (_, _, terminated, truncated, info) = decide(50, cap=7)
    assert (info["duration"], terminated, truncated) == (7, False, False)


def test_an_option_outside_its_space_is_clipped():
    _, (_, _, _, _, info) = decide(-30)
    assert info["duration"] == 1


@pytest.mark.parametrize("change", [{"cap": 0}, {"discount": 1.5}])
def test_impossible_options_are_refused(change):
    with pytest.raises(UsageError):
        decide(3, **change)


def test_the_boundary_sees_decisions_with_their_duration():
    environment = OptionEnvironment(Corridor(), UntilPlace(), 0.5)
    world = Boundary(environment, "corridor")
    assert world.sizes == (1, 0, 1, True)
    world.reset(0)
    outcome = world.step(np.array([-0.88]))  # 3 of [0, 50]
    assert (outcome.duration, outcome.reward) == (3, 2.75)
