"""Planning against single heads: the same returns as a slow loop over one world, and pictures."""

import csv

import gymnasium
import numpy as np
import pytest

import grasp
from grasp.agents.grasp import Grasp
from grasp.agents.td3 import TD3
from grasp.errors import UsageError
from grasp.randomness import Stream, episode_seed
from grasp.switching import Switching, draw_histograms, draw_strip, switches, switching


class Walk(gymnasium.Env):
    """From a place to a goal on a line, new in each episode; the reward is minus the distance."""

    def __init__(self):
        box = gymnasium.spaces.Box(-9, 9, (1,), np.float32)
        self.observation_space = gymnasium.spaces.Dict(observation=box, desired_goal=box)
        self.action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.goal = self.np_random.uniform(-1, 1, (2, 1)).astype(np.float32)
        self.steps = 0
        return self._seen(), {}

    def step(self, action):
        self.place = self.place + 0.2 * np.asarray(action, np.float32)
        self.steps += 1
        reward = -float(abs(self.place - self.goal)[0])
        return self._seen(), reward, False, self.steps == 8, {}

    def _seen(self):
        return {"observation": self.place, "desired_goal": self.goal}


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    return grasp.train(
        Grasp(num_affordances=3, width=8, batch=8, warm_up=20, updates_per_call=2), Walk,
        run=tmp_path_factory.mktemp("walk") / "r", steps=80, evaluation_episodes=1,
    )  # fmt: skip


def slow_return(agent, seed, head):
    """One episode in one world, decision by decision; `head` None is the planner's choice."""
    world, returned, ended = Walk(), 0.0, False
    observation, _ = world.reset(seed=seed)
    while not ended:
        plan = agent.plan(observation)
        chosen = int(plan.policy.argmax()) if head is None else head
        observation, reward, _, ended, _ = world.step(plan.actions[chosen])
        returned += reward
    return returned


def test_returns_are_those_of_a_slow_loop(agent):
    found = switching(agent, configurations=40, seed=3)
    assert found.alone.shape == (3, 40)
    seeds = [episode_seed(3, Stream.EVALUATE, 2**40 + index) for index in range(40)]
    slow = np.array(
        [[slow_return(agent, seed, head) for seed in seeds] for head in (None, 0, 1, 2)]
    )
    np.testing.assert_allclose(found.planned, slow[0], rtol=1e-4)
    np.testing.assert_allclose(found.alone, slow[1:], rtol=1e-4)
    np.testing.assert_allclose(found.differences(), slow[:1] - slow[1:], atol=1e-3)
    assert len(np.unique(found.planned.round(3))) > 30  # the starts differ
    assert np.abs(found.differences()).max() > 0.1  # and so do the heads


def test_pictures_come_with_their_numbers(tmp_path):
    found = Switching(np.array([3.0, 5.0]), np.array([[1.0, 5.0], [4.0, 0.0]]))
    png, svg, table = draw_histograms(
        {"walker-walk": found, "fish-swim": found}, tmp_path / "h.png"
    )
    assert png.stat().st_size > 10_000
    assert svg.exists()
    with table.open() as lines:
        rows = [row for row in csv.DictReader(lines) if row["task"] == "fish-swim"]
    assert [float(row["planned"]) - float(row["alone"]) for row in rows] == [2, 0, -1, 5]
    png, _, table = draw_strip({"episode 0": [0, 0, 1, 3, 3]}, 4, tmp_path / "s.png")
    assert png.stat().st_size > 5_000
    assert table.read_text().splitlines()[3:5] == ["episode 0,2,1", "episode 0,3,3"]
    assert switches([0, 0, 1, 3, 3]) == 2


def test_an_agent_without_heads_is_refused(tmp_path):
    agent = grasp.train(
        TD3(width=8, batch=8, warm_up=20), Walk, run=tmp_path / "r", steps=40, evaluation_episodes=1
    )
    with pytest.raises(UsageError, match="an agent without heads, TD3; take a run of GA-4"):
        switching(agent, 2)
