"""Videos: every kind of task gives one, with its heads beside it."""

import subprocess

import jax.numpy as jnp
import numpy as np
import pytest

from grasp.agents.agent import Decision
from grasp.agents.compiled import CompiledAgent
from grasp.agents.grasp import Grasp
from grasp.environments import make
from grasp.environments.boundary import Boundary
from grasp.errors import UsageError
from grasp.figures import COLOURS
from grasp.planners.plan import Plan
from grasp.videos import PANEL, SIDE, drawn_panel, film
from worlds import Counting

ffmpeg = pytest.importorskip("imageio_ffmpeg").get_ffmpeg_exe()


def frames(path):
    """All frames of a video [frames, SIDE, SIDE + PANEL, 3]."""
    read = [ffmpeg, "-loglevel", "error", "-i", path, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    found = subprocess.run(read, capture_output=True, check=True).stdout
    return np.frombuffer(found, np.uint8).reshape(-1, SIDE, SIDE + PANEL, 3)


def decision(q_values, head):
    K = len(q_values)
    plan = Plan(
        actions=jnp.linspace(-1, 1, K)[None, :, None] * jnp.ones((1, K, 2)),
        q_values=jnp.array([q_values]),
        policy=jnp.full((1, K), 1 / K),
        value=jnp.zeros(1),
    )
    return Decision(plan.actions[:, head], jnp.array([head]), plan)


def has_colour(panel, colour):
    wanted = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return (panel == wanted).all(-1)


def test_the_panel_frames_the_head_that_was_chosen():
    panels = [drawn_panel(decision([0.0, 1.0, 2.0], head), np.zeros(2), head) for head in (0, 2)]
    assert all(panel.shape == (SIDE, PANEL, 3) for panel in panels)
    for index in range(3):  # every head is drawn in its colour, the chosen one in a frame of it
        ink = [has_colour(panel, COLOURS[index]).sum() for panel in panels]
        assert min(ink) > 10
        assert (ink[0] > ink[1] + 500) == (index == 0)
        assert (ink[1] > ink[0] + 500) == (index == 2)


def test_an_agent_without_a_plan_shows_its_action():
    alone = Decision(jnp.ones((1, 2)), jnp.zeros(1, jnp.int32), None)
    assert has_colour(drawn_panel(alone, np.ones(2), 0), COLOURS[0]).sum() > 1000


@pytest.mark.parametrize("task", ["collect", "point-mass", "pixels:ball_in_cup-catch"])
def test_an_episode_is_filmed_step_by_step(task, tmp_path, monkeypatch):
    world = Boundary(make(task, render_mode="rgb_array"), task)
    frame = np.full((SIDE, SIDE, 3), 128, np.uint8)
    drawn = []  # drawing a scene takes longer than all else here
    monkeypatch.setattr(
        type(world.environment.unwrapped), "render", lambda _: drawn.append(0) or frame
    )
    if not world.sizes.options:
        monkeypatch.setattr("grasp.videos.LONGEST", 3)
    agent = CompiledAgent(Grasp(width=8, num_affordances=2), world.sizes, 0)
    taken = film(agent, world, 0, tmp_path / "episode.mp4")
    steps = world.environment.unwrapped.steps if world.sizes.options else 6
    assert taken == len(drawn) == steps + 1
    shown = frames(tmp_path / "episode.mp4")
    assert len(shown) == taken
    assert shown[0].shape == (SIDE, SIDE + PANEL, 3)
    assert abs(shown[0][SIDE // 2, SIDE // 2].astype(int) - 128).max() < 12


def test_a_world_without_pictures_is_refused(tmp_path):
    world = Boundary(Counting(), "counting")
    world.environment.render = lambda: None
    agent = CompiledAgent(Grasp(width=8, num_affordances=2), world.sizes, 0)
    with pytest.raises(UsageError, match="counting draws no picture"):
        film(agent, world, 0, tmp_path / "episode.mp4")
