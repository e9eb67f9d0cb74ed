"""The loop and the Python face: learning counts, resume, faults, evaluation as an onlooker."""

import signal

import gymnasium
import numpy as np
import pytest

import grasp
from grasp.agents.grasp import Grasp
from grasp.checkpoints import digest, ring
from grasp.errors import Diverged, EnvironmentFault, UsageError
from grasp.runs import Run
from grasp.session import Interrupted
from grasp.training import Loop
from worlds import Counting, Probe

TINY = Grasp(
    num_affordances=2,
    width=8,
    batch=8,
    window=2,
    warm_up=20,
    updates_per_call=2,
    decisions_per_update=2,
    replay_capacity=400,
)
SHORT = {"steps": 120, "evaluate_every": 60, "evaluation_episodes": 2, "log_every": 30}


def trained(path, task=Counting, agent=TINY, **settings):
    return grasp.train(agent, task, run=path, label="GA-2", **(SHORT | settings))


def final(path):
    """Replay and counters of the last checkpoint."""
    run = Run(path)
    checkpoint = run.latest()
    counters = checkpoint.facts["counters"]
    return ring(checkpoint, run), {n: v for n, v in counters.items() if n != "seconds"}


def ending(path):
    return digest(Run(path).latest(), Run(path))


def untimed(path):
    """The log without its time fields."""
    return [
        {name: value for name, value in row.items() if not name.startswith("time/")}
        for row in Run(path).metrics()
    ]


def assert_same_end(left, right):
    """The same learning, replay and environment, bit for bit, however often it was evaluated."""
    assert final(left)[1]["decisions"] == final(right)[1]["decisions"]
    assert ending(left) == ending(right)


def test_a_run_leaves_what_the_documentation_says(tmp_path):
    agent = trained(tmp_path / "r")
    names = {entry.name.split(".")[0] for entry in (tmp_path / "r").iterdir()}
    assert {"config", "metrics", "checkpoints", "best", "curve", "events"} <= names
    rows = Run(tmp_path / "r").metrics()
    assert [row["environment_steps"] for row in rows if "rollout/episodes" in row] == [
        30,
        60,
        90,
        120,
    ]
    assert rows[-1]["eval/return"] == 15  # 1 + 2 + ... + 5, whatever the actions
    heads = {"affordances/head_spread", "affordances/saturated", "affordances/chosen"}
    assert heads | {"planner/q_spread", "planner/entropy"} <= rows[-1].keys()
    assert agent.run.path == tmp_path / "r"


def test_updates_are_those_that_the_decisions_earned(tmp_path):
    trained(tmp_path / "r")
    _, facts = final(tmp_path / "r")
    assert facts["decisions"] == 120
    assert facts["updates"] == (120 - 20) // 2
    assert facts["episodes"] == 120 // 5 + 1


class Resumable(Counting):
    """Counting that can be put back."""

    def get_state(self):
        return {"steps": self.steps, "total": self.total}

    def set_state(self, state):
        self.steps, self.total = int(state["steps"]), int(state["total"])


def test_a_run_in_two_parts_equals_the_run_in_one(tmp_path):
    trained(tmp_path / "whole", Resumable)
    trained(tmp_path / "parts", Resumable, steps=63)
    trained(tmp_path / "parts", Resumable)
    assert_same_end(tmp_path / "whole", tmp_path / "parts")


def test_same_seed_same_bits_and_another_seed_other_bits(tmp_path):
    trained(tmp_path / "one", lambda: Resumable())
    trained(tmp_path / "two", lambda: Resumable())
    assert_same_end(tmp_path / "one", tmp_path / "two")
    trained(tmp_path / "other", seed=1)
    assert not np.array_equal(
        final(tmp_path / "one")[0]["actions"], final(tmp_path / "other")[0]["actions"]
    )


def test_evaluating_and_logging_change_nothing_about_training(tmp_path):
    trained(tmp_path / "seldom")
    trained(tmp_path / "often", evaluate_every=20, evaluation_episodes=3, log_every=7)
    assert_same_end(tmp_path / "seldom", tmp_path / "often")


def test_an_environment_that_cannot_be_put_back_starts_an_episode_anew(tmp_path):
    trained(tmp_path / "r", steps=63)
    trained(tmp_path / "r", steps=120)
    arrays, facts = final(tmp_path / "r")
    observations, end = arrays["observations"][0, :, 0], arrays["end"][0]
    for row in np.flatnonzero(~end)[:-1]:
        assert observations[row + 1] == observations[row] + 1  # no decision joins two episodes
    assert facts["decisions"] == 120


def test_several_environments_at_once(tmp_path):
    trained(tmp_path / "r", lambda: Counting(), num_envs=3)
    arrays, facts = final(tmp_path / "r")
    assert arrays["observations"].shape[0] == 3
    assert facts["decisions"] == 120
    assert facts["updates"] == 50


def test_a_bad_number_stops_the_run_and_never_enters_the_replay(tmp_path):
    faults = {47: (np.array([np.nan], np.float32), 1.0)}
    with pytest.raises(EnvironmentFault, match="Counting returned nan"):
        trained(tmp_path / "r", Counting(faults=faults), evaluate_every=40)
    arrays, facts = final(tmp_path / "r")
    assert all(np.isfinite(array).all() for array in arrays.values())
    assert facts["decisions"] == 40


def test_divergence_stops_the_run_before_it_is_saved(tmp_path):
    huge = {step: (np.array([1.0], np.float32), 1e30) for step in range(1, 200)}
    with pytest.raises(Diverged, match="learning-rate"):
        trained(tmp_path / "r", Counting(faults=huge), evaluate_every=1000)


def test_a_signal_saves_and_the_same_command_continues(tmp_path, monkeypatch):
    decide = Loop.decide

    def interrupting(self, actions):
        decide(self, actions)
        if self.counters.decisions == 47:
            signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    trained(tmp_path / "whole", Resumable)
    with monkeypatch.context() as patch:
        patch.setattr(Loop, "decide", interrupting)
        with pytest.raises(Interrupted, match="SIGINT"):
            trained(tmp_path / "r", Resumable)
    assert final(tmp_path / "r")[1]["decisions"] == 47
    assert signal.getsignal(signal.SIGINT) is before
    trained(tmp_path / "r", Resumable)
    assert_same_end(tmp_path / "whole", tmp_path / "r")


def test_load_gives_the_trained_agent_back(tmp_path):
    agent = trained(tmp_path / "r", Probe("goal"))
    for which in ("last", "best"):
        loaded = grasp.load(tmp_path / "r", which, environment=Probe("goal"))
        observation = {
            "observation": np.array([-0.5], np.float32),
            "desired_goal": np.array([0.6], np.float32),
        }
        action, plan = loaded.act(observation), loaded.plan(observation)
        assert action.shape == (1,)
        assert plan.actions.shape == (2, 1)
        np.testing.assert_allclose(plan.policy.sum(), 1, rtol=1e-5)
        np.testing.assert_allclose(plan.value, np.sum(plan.policy * plan.q_values), rtol=1e-4)
        np.testing.assert_allclose(action, plan.actions[np.argmax(plan.policy)], rtol=1e-5)
    np.testing.assert_array_equal(
        grasp.load(tmp_path / "r", environment=Probe("goal")).act(observation),
        agent.act(observation),
    )


def test_acting_respects_the_environments_bounds(tmp_path):
    agent = trained(tmp_path / "r")
    for place in np.linspace(-50, 50, 20, dtype=np.float32):
        assert Counting.action_space.contains(agent.act(np.array([place])))


def test_evaluation_does_not_depend_on_how_many_run_at_once(tmp_path):
    agent = trained(tmp_path / "r", Probe("goal"))
    together = agent.evaluate(12, seed=4)
    alone = [agent.evaluate(index + 1, seed=4)[index] for index in (0, 3)]
    assert [e.returned for e in alone] == pytest.approx([together[i].returned for i in (0, 3)])
    assert len({episode.seed for episode in together}) == 12


def test_an_environment_from_gymnasium_is_named_after_its_id(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    agent = grasp.train(
        TINY, gymnasium.make("Pendulum-v1"), label="GA-2", **(SHORT | {"steps": 60})
    )
    assert agent.run.path.name == "Pendulum-v1-GA-2-seed0"


@pytest.mark.parametrize("setting", ["steps", "num_envs", "evaluate_every", "log_every"])
@pytest.mark.parametrize("value", [0, -5])
def test_counts_below_one_are_refused(tmp_path, setting, value):
    flag = "--" + setting.replace("_", "-")
    with pytest.raises(UsageError, match=f"{flag} is {value}"):
        trained(tmp_path / "r", **{setting: value})


def test_one_environment_cannot_be_several(tmp_path):
    with pytest.raises(UsageError, match="function that makes one"):
        trained(tmp_path / "r", Counting(), num_envs=2)


def test_options_train_and_resume_like_actions(tmp_path):
    trained(tmp_path / "whole", "collect")
    trained(tmp_path / "parts", "collect", steps=70)
    trained(tmp_path / "parts", "collect")
    assert_same_end(tmp_path / "whole", tmp_path / "parts")
    row = Run(tmp_path / "whole").evaluations()[-1]
    assert 0 <= row["eval/success"] <= 1
    assert row["environment_steps"] > row["decisions"]
