"""Several seeds in one process: each run directory is what its own run would have written."""

import signal
import threading

import pytest

import grasp
from grasp.__main__ import main
from grasp.command_line import seed_list
from grasp.errors import EnvironmentFault, UsageError
from grasp.randomness import Stream, episode_seed
from grasp.runs import Run
from grasp.session import Interrupted
from grasp.training import Loop
from test_command import SMALL, refused
from test_training import SHORT, TINY, Resumable, ending, final, trained, untimed
from worlds import Probe

SEEDS = [0, 2, 5]


def together(task=Resumable, seeds=SEEDS, **settings):
    return grasp.train(TINY, task, label="GA-2", seeds=seeds, **(SHORT | settings))


def where(seed, task="Resumable"):
    return f"runs/{task}-GA-2-seed{seed}"


def assert_same(left, right):
    """Two runs that ended in the same state, to the bit, and logged the same."""
    assert ending(left) == ending(right)
    assert untimed(left) == untimed(right)


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("task", "settings"),
    [(Resumable, {}), (lambda: Probe("goal"), {"num_envs": 2}), ("collect", {"num_envs": 1})],
    ids=["counting", "goal", "options"],
)
def test_each_seed_ends_as_its_own_run_does(task, settings):
    agents = together(task, **settings)
    for seed, agent in zip(SEEDS, agents, strict=True):
        assert agent.run.path.name.endswith(f"seed{seed}")
        assert agent.run.config()["seed"] == seed
        assert (agent.run.path / "curve.png").exists()
        trained(f"alone{seed}", task, seed=seed, **settings)
        assert_same(agent.run.path, f"alone{seed}")
    assert agents[0].compiled._update._cache_size() == 1  # compiled once for all
    assert agents[1].compiled._update is agents[0].compiled._update


def test_no_seed_waits_for_another(monkeypatch):
    think, goes_on, ended = Loop.think, Loop.goes_on, threading.Event()

    def late(self):
        if self.training.schedule.seed == 0:
            assert ended.wait(60), "seed 0 thinks, and seed 2 does not go on"
        return think(self)

    def noted(self):
        more = goes_on(self)
        if not more and self.training.schedule.seed == 2:
            ended.set()
        return more

    monkeypatch.setattr(Loop, "think", late)
    monkeypatch.setattr(Loop, "goes_on", noted)
    monkeypatch.setattr("grasp.turns.visible_cores", lambda: 2)
    assert len(together(seeds=[0, 2])) == 2


def test_a_signal_saves_all_and_the_same_command_continues(monkeypatch):
    decide = Loop.decide

    def interrupting(self, actions):
        decide(self, actions)
        if self.counters.decisions == 47 and self.training.schedule.seed == 2:
            signal.raise_signal(signal.SIGTERM)

    together()
    whole = {seed: (ending(where(seed)), untimed(where(seed))) for seed in SEEDS}
    with monkeypatch.context() as patch:
        patch.setattr(Loop, "decide", interrupting)
        patch.chdir(Run(where(0)).path.parent)
        with pytest.raises(Interrupted, match=r"seed0, runs.*seed5"):
            together()
        together()
        for seed in SEEDS:
            assert (ending(where(seed)), untimed(where(seed))) == whole[seed]


def test_one_of_several_can_be_continued_alone_and_others_later():
    together(steps=60)  # at an evaluation, so that the end makes no other
    trained(where(2), seed=2, task=Resumable)
    together()
    for seed in SEEDS:
        trained(f"alone{seed}", Resumable, seed=seed)
        assert_same(where(seed), f"alone{seed}")


class BrokenForOne(Resumable):
    """Gives a bad number in the fourth episode of seed 2."""

    def reset(self, *, seed=None, options=None):
        self.broken = seed == episode_seed(2, Stream.EPISODE, 9)
        return super().reset(seed=seed, options=options)

    def step(self, action):
        observation, reward, *rest = super().step(action)
        return observation, float("nan") if self.broken else reward, *rest


def test_a_seed_that_fails_does_not_end_the_others():
    with pytest.raises(EnvironmentFault, match="reward nan"):
        together(BrokenForOne)
    decisions = [final(where(seed, "BrokenForOne"))[1]["decisions"] for seed in (0, 5)]
    assert decisions == [120, 120]
    assert Run(where(2, "BrokenForOne")).latest() is None


def test_seeds_are_ranges_and_lists():
    assert seed_list("0..4") == [0, 1, 2, 3, 4]
    assert seed_list("0,3,7") == [0, 3, 7]
    assert seed_list("7, 1..2") == [7, 1, 2]


@pytest.mark.parametrize("text", ["4..0", "0..", "..3", "-1", "1,1", "0..3,2", "a", "", "0..1000"])
def test_other_seeds_are_one_clear_sentence(capsys, text):
    said = refused(capsys, "train", "GA-2", "--task", "gym:Pendulum-v1", f"--seeds={text}")
    assert "--seeds is" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("flag", ["--seed", "--run"])
def test_several_seeds_have_no_one_seed_and_no_one_directory(capsys, flag):
    task = ["--task", "gym:Pendulum-v1", "--seeds", "0,1"]
    assert "do not go together" in refused(capsys, "train", "GA-2", *task, flag, "3")


@pytest.mark.parametrize("seeds", [[], [1, 1]])
def test_seeds_from_python_are_checked(seeds):
    with pytest.raises(UsageError, match="each once"):
        together(seeds=seeds)
    with pytest.raises(UsageError, match="holds one seed"):
        together(run="here")


def test_the_command_trains_and_continues_several(capsys):
    command = ["train", "GA-2", "--task", "gym:Pendulum-v1", *SMALL, "--seeds", "0..1"]
    assert main(command) == 0
    printed = capsys.readouterr()
    assert printed.out.count("GA-2 on gym:Pendulum-v1: return -") == 2
    assert "of seed 1 -" in printed.err
    assert main([*command, "--steps", "120"]) == 0
    assert "seed 1, continuing at step 90" in capsys.readouterr().err
    assert Run("runs/gym-Pendulum-v1-GA-2-seed1").evaluations()[-1]["environment_steps"] == 120
