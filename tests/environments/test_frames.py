"""Images on their way to the agent: stacked, repeated, resized, put back, refused."""

import gymnasium
import numpy as np
import pytest

from grasp.environments import make, rendering
from grasp.environments.boundary import Boundary
from grasp.environments.check import check_environment
from grasp.environments.dm_control import SuiteEnvironment
from grasp.environments.frames import Frames, Repeated, Sight, resized, seen_by, shows_images
from grasp.errors import EnvironmentFault, UsageError
from worlds import Counting, Pictures, Probe

TINY = Sight(image_size=16, frame_stack=3)


def indices(observation):
    """What the frames of a stack encode."""
    return np.asarray(observation).reshape(3, -1)[:, 0].tolist()


def test_a_stack_holds_the_last_frames_and_begins_with_the_first():
    world = seen_by(Pictures(length=4), TINY, "pictures")
    shown = [indices(world.reset()[0])]
    shown += [indices(world.step(np.zeros(1))[0]) for _ in range(4)]
    assert shown == [[0, 0, 0], [0, 0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4]]
    assert indices(world.reset()[0]) == [20, 20, 20]  # nothing of the episode before


def test_a_repeated_action_sums_rewards_counts_steps_and_lasts_one_decision():
    world = Boundary(Repeated(Counting(length=5), 2), "counting")
    world.reset(0)
    outcomes = [world.step(np.zeros(2)) for _ in range(3)]
    assert [o.reward for o in outcomes] == [3, 7, 5]
    assert [o.steps for o in outcomes] == [2, 2, 1]
    assert [o.duration for o in outcomes] == [1, 1, 1]
    assert [o.ended for o in outcomes] == [False, False, True]


def test_what_needs_no_change_is_left_alone():
    probe = Probe("constant")
    assert seen_by(probe, Sight(), "probe") is probe


def test_options_are_not_repeated():
    with pytest.raises(UsageError, match="--action-repeat"):
        make("collect", sight=Sight(action_repeat=2))


def test_resizing_takes_the_mean_of_what_a_pixel_covers():
    image = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    exact = image.reshape(16, 2, 16, 2, 3).mean((1, 3))
    assert np.abs(resized(image, TINY) - exact).max() <= 1  # rounding
    grey = resized(image[..., :1], TINY)
    assert np.abs(grey - exact[..., :1]).max() <= 1


class WithState(Pictures):
    def get_state(self):
        return {"episode": self.episode, "steps": self.steps}

    def set_state(self, state):
        self.episode, self.steps = int(state["episode"]), int(state["steps"])


@pytest.mark.parametrize(("kind", "tier"), [(WithState, "state"), (Pictures, "actions")])
def test_episodes_of_images_are_put_back_with_their_frames(kind, tier):
    found = check_environment(
        lambda: Boundary(seen_by(kind(length=9), TINY, "pictures"), "pictures"), 60
    )
    assert (found.problems, found.tier) == ([], tier)


def test_a_suite_task_from_pixels_is_the_task_seen_from_its_camera():
    world = make("pixels:ball_in_cup-catch")
    seen, _ = world.reset(seed=3)
    again, _ = make("pixels:ball_in_cup-catch").reset(seed=3)
    assert seen.shape == (3, 64, 64, 3)
    assert seen.dtype == np.uint8
    np.testing.assert_array_equal(seen, again)
    after, _, _, _, info = world.step(world.action_space.high)
    assert info["steps"] == 2
    np.testing.assert_array_equal(after[:2], seen[1:])
    assert (after[2] != seen[2]).any()
    twin = SuiteEnvironment("ball_in_cup", "catch", quality="fast")
    twin.reset(seed=3)
    np.testing.assert_array_equal(twin.photograph(64), seen[0])
    for _ in range(2):
        twin.step(world.action_space.high)
    np.testing.assert_array_equal(twin.photograph(64), after[2])


def test_from_pixels_a_target_is_only_seen():
    assert isinstance(make("reacher-easy").observation_space, gymnasium.spaces.Dict)
    assert isinstance(make("pixels:reacher-easy").observation_space, gymnasium.spaces.Box)


def test_an_episode_from_pixels_goes_on_exactly():
    found = check_environment(
        lambda: Boundary(make("pixels:cartpole-swingup"), "pixels"), 12, seeds=(0,)
    )
    assert (found.problems, found.tier) == ([], "state")


@pytest.mark.parametrize(
    ("shape", "kind", "said"),
    [
        ((64, 64, 3), np.float32, "float32 of shape"),
        ((3, 64, 64), np.uint8, r"\(3, 64, 64\)"),
        ((64, 64), np.uint8, "1, 3 or 4 channels"),
        ((4, 64, 64, 3), np.uint8, "--frame-stack"),
    ],
)
def test_images_of_another_kind_are_refused(shape, kind, said):
    space = gymnasium.spaces.Box(0, 255, shape, kind)
    with pytest.raises(UsageError, match=said):
        shows_images(space, "pictures")


def test_blocks_of_numbers_are_no_images():
    assert not shows_images(gymnasium.spaces.Box(0, 1, (5, 4, 3), np.float32), "blocks")
    assert not shows_images(gymnasium.spaces.Box(0, 1, (7,), np.uint8), "bytes")


@pytest.mark.parametrize(
    ("image", "said"),
    [
        (np.zeros((16, 16, 1), np.float32), "float32"),
        (np.zeros((16, 8, 1), np.uint8), r"\(16, 8, 1\)"),
        (None, "gave None"),
    ],
)
def test_an_image_that_is_not_as_its_space_says_is_named(image, said):
    world = seen_by(Pictures(faults={2: image}), TINY, "pictures")
    world.reset()
    world.step(np.zeros(1))
    with pytest.raises(EnvironmentFault, match=said) as refusal:
        world.step(np.zeros(1))
    assert "uint8 of shape 16 x 16 x 1" in str(refusal.value)


def test_what_cannot_be_rendered_is_refused_before_it_is_used(monkeypatch):
    def broken():
        raise RuntimeError("no context\nand more")

    with pytest.raises(UsageError, match=r"probe cannot be rendered \(RuntimeError: no context\)$"):
        Frames(Probe("constant"), Sight(), "probe", broken)
    monkeypatch.setenv("MUJOCO_GL", "disable")
    with pytest.raises(UsageError, match="apt-get install libegl1"):
        make("pixels:walker-walk")


@pytest.mark.parametrize(
    ("egl", "library", "chosen"),
    [(True, None, "egl"), (False, "libOSMesa.so", "osmesa"), (False, None, "disable")],
)
def test_the_renderer_is_what_works(monkeypatch, egl, library, chosen):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr(rendering, "egl_works", lambda: egl)
    monkeypatch.setattr(rendering.ctypes.util, "find_library", lambda name: library)
    assert rendering.choose_renderer() == chosen
    monkeypatch.setenv("MUJOCO_GL", "glfw")
    assert rendering.choose_renderer() == "glfw"
    with pytest.raises(UsageError, match="renders on a screen"):
        rendering.check_renderer()


@pytest.mark.parametrize(
    ("given", "said"),
    [("nonsense", "may be egl, osmesa"), ("egl", "does not work"), ("osmesa", "does not work")],
)
def test_a_renderer_that_mujoco_could_not_be_imported_with_is_refused(monkeypatch, given, said):
    monkeypatch.setenv("MUJOCO_GL", given)
    monkeypatch.setattr(rendering, "egl_works", lambda: False)
    monkeypatch.setattr(rendering, "osmesa_works", lambda: False)
    with pytest.raises(UsageError, match=said):
        rendering.choose_renderer()


@pytest.mark.parametrize("wrong", [{"image_size": 60}, {"frame_stack": 0}, {"random_shift": -1}])
def test_a_sight_that_cannot_be_is_refused(wrong):
    with pytest.raises(UsageError, match=f"--{next(iter(wrong)).replace('_', '-')}"):
        Sight(**wrong)
