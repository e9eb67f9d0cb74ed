"""Options by hand: discounted reward, duration, every way to end; and the options that ship."""

import shutil

import gymnasium
import numpy as np
import pytest

from grasp.environments import make
from grasp.environments.boundary import Boundary
from grasp.environments.collect import Collect, GoAndCollect
from grasp.errors import CorruptCheckpoint, UsageError
from grasp.options import WEIGHTS, OptionEnvironment, shipped_options, write_options
from grasp.pretraining import reached_share


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
    assert world.sizes == (1, 0, 1, True, None, False)
    world.reset(0)
    outcome = world.step(np.array([-0.88]))  # 3 of [0, 50]
    assert (outcome.duration, outcome.reward, outcome.earned) == (3, 2.75, 6)  # of 1, 2 and 3


def test_the_options_of_collect_that_ship_go_where_they_say():
    assert reached_share(shipped_options(GoAndCollect()), Collect(), 300, seed=5)["reached"] >= 0.98


def test_an_option_of_collect_picks_up_what_it_is_aimed_at():
    environment = make("collect")
    environment.record = True
    for seed in range(20):
        environment.reset(seed=seed)
        world = environment.unwrapped
        first = world.objects[world.order[0]]
        _, reward, terminated, _, info = environment.step(first.astype(np.float32))
        assert not world.left[world.order[0]]
        assert (reward, terminated) == (0, False)
        assert len(info["path"]) == info["duration"] + 1


def test_three_right_options_win_an_episode_of_collect():
    environment = make("collect", discount=0.9)
    environment.reset(seed=3)
    world, total = environment.unwrapped, 0
    for index in world.order:
        _, reward, terminated, _, info = environment.step(world.objects[index].astype(np.float32))
        total += reward
    assert terminated
    assert info["success"]
    assert total == pytest.approx(
        0.9 ** (info["duration"] - 1)
    )  # discounted inside the option only


def test_an_episode_of_options_can_be_put_back():
    one, other = make("collect"), make("collect")
    one.reset(seed=1)
    one.step(np.array([0.2, 0.3], np.float32))
    other.reset(seed=2)
    other.set_state(one.get_state())
    for option in ([0.9, 0.9], [0.1, 0.5]):
        left, right = (e.step(np.array(option, np.float32)) for e in (one, other))
        np.testing.assert_array_equal(left[0]["observation"], right[0]["observation"])
        assert left[1:] == right[1:]


@pytest.mark.parametrize("damage", ["altered", "truncated", "other task", "missing"])
def test_weights_that_are_not_what_was_written_are_refused(tmp_path, damage):
    shutil.copytree(WEIGHTS / "collect", tmp_path / "collect")
    file = tmp_path / "collect" / "arrays.safetensors"
    content = bytearray(file.read_bytes())
    if damage == "altered":
        content[200] ^= 1
        file.write_bytes(content)
    elif damage == "truncated":
        file.write_bytes(content[:-9])
    elif damage == "missing":
        file.unlink()
    else:
        options = shipped_options(GoAndCollect())
        write_options(options, {"task": "point-mass"}, tmp_path)
    with pytest.raises(CorruptCheckpoint, match="collect"):
        shipped_options(GoAndCollect(), tmp_path)
