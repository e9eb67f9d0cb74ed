"""Episodes by one head or another, and where each head's option leads."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

import grasp
from grasp.__main__ import main
from grasp.agents.agent import Decision, Sizes
from grasp.agents.compiled import CompiledAgent
from grasp.agents.grasp import Grasp
from grasp.environments import make
from grasp.environments.boundary import Boundary
from grasp.errors import UsageError
from grasp.evaluation import Episode, all_different, chosen, next_on_a_head, outlooks, play, score
from grasp.figures import Outlook, Scene
from grasp.planners.plan import Plan
from worlds import Counting

PLACES = np.array([[0.2, 0.2], [0.8, 0.2], [0.5, 0.8]])


class Proposing(CompiledAgent):
    """Stands in for an agent: the same K options everywhere, with a policy over them."""

    def __init__(self, options, policy):
        self.seed, self.sizes = 0, Sizes(observation=11, goal=9, action=2, options=True)
        self.options = jnp.asarray(options, jnp.float32) * 2 - 1  # [K, 2] in [-1, 1]
        self.policy = jnp.asarray(policy, jnp.float32)

    def plan(self, observations, goals):
        B = len(observations)
        policy = jnp.tile(self.policy, (B, 1))
        actions = jnp.tile(self.options, (B, 1, 1))
        return Plan(actions, jnp.log(policy), policy, jnp.zeros(B))

    def act_greedily(self, observations, goals, step=0):
        plan = self.plan(observations, goals)
        heads = plan.policy.argmax(-1)
        return Decision(plan.actions[jnp.arange(len(heads)), heads], heads, plan)


def collect():
    return Boundary(make("collect"), "collect")


def used(agent, heads, episodes=20):
    played = play(agent, [collect() for _ in range(5)], range(episodes), heads=heads)
    return np.concatenate([episode.heads for episode in played])


def test_heads_are_chosen_as_asked():
    agent = Proposing(PLACES, [0.2, 0.5, 0.3])
    assert set(used(agent, "greedy")) == {1}
    assert set(used(agent, 2)) == {2}
    drawn = used(agent, "sampled")
    np.testing.assert_allclose(np.bincount(drawn) / len(drawn), agent.policy, atol=0.1)
    np.testing.assert_array_equal(drawn, used(agent, "sampled"))  # the same seed, the same heads


def test_actions_anywhere_are_a_baseline_of_no_head():
    agent = Proposing(PLACES, [0.2, 0.5, 0.3])
    assert set(used(agent, "random")) == {-1}
    decision = agent.act_greedily(np.zeros((400, 9)), np.zeros((400, 9)), 0)
    actions, _ = chosen(decision, "random", 0, 3)
    assert actions.min() < -0.9 < 0.9 < actions.max()
    again, other = (chosen(decision, "random", seed, 3)[0] for seed in (0, 1))
    np.testing.assert_array_equal(actions, again)
    assert not np.array_equal(actions, other)


def test_a_head_that_is_not_there_is_refused():
    with pytest.raises(UsageError, match="heads 0 to 2"):
        used(Proposing(PLACES, [0.2, 0.5, 0.3]), 3)


def test_outlooks_follow_each_option_to_the_object_it_takes():
    reset = {"agent": [0.5, 0.5], "objects": PLACES, "order": (2, 0, 1)}
    agent = Proposing([*PLACES, [0.05, 0.95]], [0.25] * 4)
    world = collect()
    (outlook,) = outlooks(agent, world, [reset])
    assert outlook.picked == [0, 1, 2, None]
    for path, option in zip(outlook.paths, [*PLACES, [0.05, 0.95]], strict=True):
        np.testing.assert_allclose(path[0], [0.5, 0.5])
        assert np.linalg.norm(path[-1] - option) <= 0.8 * 0.15 + 1e-6
    np.testing.assert_array_equal(outlook.scene.left, [True] * 3)
    assert not world.environment.record  # as it was


def test_counts_over_outlooks_by_hand():
    scene = Scene(np.zeros(2), PLACES, np.ones(3, bool), (2, 0, 1))
    found = [Outlook(scene, [], list(picked)) for picked in ((0, 1, 2), (2, 2, None), (0, 1, None))]
    assert all_different(found) == pytest.approx(1 / 3)
    assert next_on_a_head(found) == pytest.approx(2 / 3)


def test_a_world_without_a_scene_is_refused(tmp_path):
    agent = grasp.train(
        Grasp(num_affordances=2, width=8, batch=8, warm_up=20, updates_per_call=2),
        Counting, run=tmp_path / "r", steps=40, evaluation_episodes=1,
    )  # fmt: skip
    with pytest.raises(UsageError, match="has no picture of its options"):
        agent.draw(tmp_path / "p.png")
    with pytest.raises(UsageError, match="has no picture of its options"):
        agent.outlooks([{}])


@pytest.mark.parametrize("task", ["collect", "point-mass", "ant-gather"])
def test_the_command_draws_and_counts(tmp_path, capsys, task):
    small = ["--steps", "800", "--evaluate-every", "800", "--evaluation-episodes", "1"]
    small += ["--width", "8", "--batch", "8", "--warm-up", "20", "--num-envs", "2"]
    run = str(tmp_path / "r")
    assert main(["train", "SA-3", "--task", task, "--run", run, *small]) == 0
    assert "success" in capsys.readouterr().out
    assert main(["look", run, "--starts", "5", "--json"]) == 0
    counted = json.loads(capsys.readouterr().out)
    assert counted["starts"] == 5
    assert (tmp_path / "r" / "affordances.png").stat().st_size > 20_000
    assert main(["evaluate", run, "--episodes", "2", "--heads", "sampled", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["success"] in (0.0, 0.5, 1.0)


def test_the_score_of_episodes_by_hand():
    won = Episode(0, 1.0, 2, 8, success=True, heads=[0, 1])
    lost = Episode(1, -1.0, 4, 12, success=False, heads=[1, 1, 1, 2])
    silent = Episode(2, 3.0, 3, 10, success=None, heads=[0, 0, 2])
    found = score([won, lost, silent])
    assert (found.episodes, found.mean, found.decisions, found.environment_steps) == (3, 1, 3, 10)
    assert found.deviation == pytest.approx(np.sqrt(8 / 3))
    assert found.success == 0.5  # of those that tell
    assert found.heads == pytest.approx({"0": 3 / 9, "1": 4 / 9, "2": 2 / 9})
    assert score([silent]).success is None
    told = [won._replace(counts={"apples": 3.0}), lost._replace(counts={"apples": 1.0}), silent]
    assert score(told).counts == {"apples": 2}  # an episode that broke off tells nothing
    assert found.counts == {}
