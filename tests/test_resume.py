"""Exact resume: by state, by actions, or said not to be; and what ends a run without losing it."""

import signal
import time

import numpy as np
import pytest

import grasp
from grasp.agents.compiled import CompiledAgent
from grasp.checkpoints import SavedReplay
from grasp.environments.frames import Sight
from grasp.errors import Diverged, EnvironmentFault
from grasp.runs import Run
from grasp.session import Interrupted
from grasp.training import Loop
from test_replay import fill, filled
from test_training import TINY, Resumable, assert_same_end, ending, final, trained, untimed
from worlds import Counting, Pictures, Probe


def stopping(monkeypatch, decisions):
    """A signal after that many decisions."""
    decide = Loop.decide

    def interrupting(self, actions):
        decide(self, actions)
        if self.counters.decisions == decisions:
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(Loop, "decide", interrupting)


def in_two_parts(path, task, monkeypatch, decisions=47, **settings):
    with monkeypatch.context() as patch:
        stopping(patch, decisions)
        with pytest.raises(Interrupted, match="SIGTERM"):
            trained(path, task, **settings)
    assert final(path)[1]["decisions"] == decisions
    said = []
    grasp.train(TINY, task, run=path, label="GA-2", show=said.append, **(SETTINGS | settings))
    return next(row["notes"] for row in said if "resumed" in row)


SETTINGS = {"steps": 120, "evaluate_every": 60, "evaluation_episodes": 2, "log_every": 30}


class Dependent(Counting):
    """Without get_state; what it shows depends on the seed and on all actions."""

    def reset(self, *, seed=None, options=None):
        observation, info = super().reset(seed=seed)
        self.place = float(self.np_random.normal())
        return observation + np.float32(self.place), info

    def step(self, action):
        observation, reward, *rest = super().step(action)
        self.place = 0.9 * self.place + 0.01 * float(action.sum())
        return observation + np.float32(self.place), reward, *rest


class Unrepeatable(Counting):
    """Without get_state, and no function of its seed."""

    def step(self, action):
        observation, *rest = super().step(action)
        return (observation + np.float32(1e-3 * np.random.default_rng().random()), *rest)


class Endless(Dependent):
    """Episodes only stop by the clock, so values have an offset."""

    endless = True


TASKS = {
    "state": (Resumable, {}),
    "actions": (Dependent, {}),
    "goal": (lambda: Probe("goal"), {}),
    "several": (Dependent, {"num_envs": 3}),
    "endless": (Endless, {}),
    "options": ("collect", {"num_envs": 1, "steps": 400}),
}


@pytest.mark.parametrize("kind", TASKS)
@pytest.mark.parametrize("decisions", [12, 48, 60])  # before learning, between, when evaluating
def test_a_run_that_was_stopped_ends_with_the_same_bits_and_log(
    tmp_path, monkeypatch, kind, decisions
):
    task, settings = TASKS[kind]
    trained(tmp_path / "whole", task, **settings)
    assert in_two_parts(tmp_path / "parts", task, monkeypatch, decisions, **settings) == []
    assert_same_end(tmp_path / "whole", tmp_path / "parts")
    assert untimed(tmp_path / "whole") == untimed(tmp_path / "parts")
    assert final(tmp_path / "parts")[1] == final(tmp_path / "whole")[1]


def test_what_cannot_be_put_back_is_said_and_never_joined(tmp_path, monkeypatch):
    notes = in_two_parts(tmp_path / "r", Unrepeatable, monkeypatch)
    assert "not exact: environment 0 could not be put back" in notes[0]
    arrays, counters = final(tmp_path / "r")
    assert counters["inexact"] == 1
    observations, end = arrays["observations"][0, :, 0], arrays["end"][0]
    for row in np.flatnonzero(~end):
        assert round(float(observations[row + 1] - observations[row])) == 1


def test_the_interval_of_checkpoints_changes_nothing(tmp_path):
    trained(tmp_path / "seldom", Resumable)
    trained(tmp_path / "always", Resumable, save_seconds=0.0)
    assert_same_end(tmp_path / "seldom", tmp_path / "always")
    assert untimed(tmp_path / "seldom") == untimed(tmp_path / "always")


def test_a_run_killed_before_its_first_checkpoint_starts_over_with_a_clean_log(
    tmp_path, monkeypatch
):
    class Killed(BaseException):
        pass

    def kill(self):
        raise Killed

    trained(tmp_path / "whole", Resumable)
    with monkeypatch.context() as patch:
        patch.setattr(Loop, "_save", kill)
        with pytest.raises(Killed):
            trained(tmp_path / "r", Resumable)
    assert len(Run(tmp_path / "r").metrics()) == 1
    trained(tmp_path / "r", Resumable)
    assert untimed(tmp_path / "whole") == untimed(tmp_path / "r")


def test_a_damaged_checkpoint_is_named_and_the_run_goes_on_from_the_one_before(
    tmp_path, monkeypatch
):
    trained(tmp_path / "whole", Resumable)
    with monkeypatch.context() as patch:
        stopping(patch, 47)
        with pytest.raises(Interrupted):
            trained(tmp_path / "r", Resumable, save_seconds=0.0)
    newest = Run(tmp_path / "r").latest().folder
    (newest / "agent.safetensors").write_bytes(b"damaged")
    said = []
    grasp.train(TINY, Resumable, run=tmp_path / "r", label="GA-2", show=said.append, **SETTINGS)
    assert "agent.safetensors is damaged" in said[0]["notes"][0]
    assert said[0]["environment_steps"] == 46
    assert_same_end(tmp_path / "whole", tmp_path / "r")
    assert untimed(tmp_path / "whole") == untimed(tmp_path / "r")


class Raising(Resumable):
    """An error at one in ten of its steps, and at some resets."""

    def reset(self, **arguments):
        observed = super().reset(**arguments)
        if self.np_random.random() < 0.1:
            raise OSError("no licence for the simulator")
        return observed

    def step(self, action):
        if (self.total * 7919) % 10 == 3:
            self.total += 1
            raise ZeroDivisionError("the simulator fell over")
        return super().step(action)


def test_an_environment_that_raises_ends_its_episode_and_joins_nothing(tmp_path):
    trained(tmp_path / "r", Raising, steps=300)
    arrays, counters = final(tmp_path / "r")
    assert counters["decisions"] == 300
    assert counters["faults"] > 20
    observations, end = arrays["observations"][0, :, 0], arrays["end"][0]
    for row in np.flatnonzero(~end):
        assert observations[row + 1] == observations[row] + 1
    assert Run(tmp_path / "r").metrics()[-1]["rollout/faults"] == counters["faults"]


class Broken(Resumable):
    def step(self, action):
        raise ZeroDivisionError("always")


def test_an_environment_that_only_raises_ends_the_run(tmp_path):
    with pytest.raises(EnvironmentFault, match="raised ZeroDivisionError in step: always; that"):
        trained(tmp_path / "r", Broken)


class Hanging(Resumable):
    def step(self, action):
        while self.total == 70:
            try:
                time.sleep(0.01)
            except Exception:  # an environment that swallows what it can
                continue
        return super().step(action)


def test_an_environment_that_hangs_is_stopped_and_named(tmp_path):
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(EnvironmentFault, match="Hanging has not returned from step for 1 s"):
        trained(tmp_path / "r", Hanging, patience=1.0)
    assert final(tmp_path / "r")[1]["decisions"] == 60
    assert signal.getsignal(signal.SIGALRM) is before


def refusing(monkeypatch, refused):
    """Updates whose numbers say they are not finite, from the given calls on."""
    update, calls = CompiledAgent.update, []

    def sometimes(self, windows, first):
        calls.append(first)
        if len(calls) in refused:
            windows = windows._replace(rewards=windows.rewards * np.float32("nan"))
        return update(self, windows, first)

    monkeypatch.setattr(CompiledAgent, "update", sometimes)


def test_updates_that_are_not_finite_are_refused_and_learning_goes_on(tmp_path, monkeypatch):
    refusing(monkeypatch, {3, 4, 9})
    trained(tmp_path / "r", Resumable)
    arrays = Run(tmp_path / "r").latest().parts["agent"]
    assert all(np.isfinite(array).all() for array in arrays.values())
    _, counters = final(tmp_path / "r")
    assert (counters["refused"], counters["refused_in_a_row"]) == (3, 0)
    assert counters["updates"] == 50


def test_several_in_a_row_stop_the_run_with_the_last_good_checkpoint(tmp_path, monkeypatch):
    refusing(monkeypatch, range(15, 999))
    with pytest.raises(Diverged, match="5 updates in a row"):
        trained(tmp_path / "r", Resumable)
    checkpoint = Run(tmp_path / "r").latest()
    assert checkpoint.facts["counters"]["decisions"] == 60
    assert all(np.isfinite(a).all() for a in checkpoint.parts["agent"].values())


def test_clock_jumps_have_no_effect(tmp_path, monkeypatch):
    trained(tmp_path / "whole", Resumable)
    now, jumps = time.time, iter(range(10**9))
    offsets = [0, 3600, -3600, 86400, -86400]
    monkeypatch.setattr(time, "time", lambda: now() + offsets[next(jumps) % 5])
    assert in_two_parts(tmp_path / "r", Resumable, monkeypatch) == []
    assert ending(tmp_path / "whole") == ending(tmp_path / "r")


def test_a_run_from_images_is_continued_exactly(tmp_path, monkeypatch):
    sight = Sight(image_size=16, frame_stack=2, action_repeat=2, filters=2, random_shift=2)

    def pictures():
        return Pictures(length=9)

    trained(tmp_path / "whole", pictures, sight=sight)
    in_two_parts(tmp_path / "parts", pictures, monkeypatch, 33, sight=sight)
    assert_same_end(tmp_path / "whole", tmp_path / "parts")
    ring, counters = final(tmp_path / "parts")
    assert ring["observations"].shape[-1] == 16 * 16  # each frame once
    assert counters["environment_steps"] > 1.5 * counters["decisions"]
    loaded = grasp.load(tmp_path / "parts", environment=pictures)
    observation, _ = loaded.world.environment.reset(seed=0)
    assert loaded.act(observation).shape == (1,)


@pytest.mark.parametrize("largest", [1, 400, 10_000])
def test_a_ring_is_put_back_however_it_was_cut(tmp_path, monkeypatch, largest):
    monkeypatch.setattr("grasp.checkpoints.LARGEST", largest)
    monkeypatch.setattr("grasp.checkpoints.MOST_SEGMENTS", 3)
    run, replay = Run(tmp_path), filled([5], capacity=24)
    saved = SavedReplay(run, replay)
    for episodes in ([7], [4, 6], [3], [9], [2], [8]):
        fill(replay, episodes)
        for _ in range(2):  # both copies
            marks = saved.save()
            other = filled([], capacity=24)
            SavedReplay(run, other).restore(marks, replay.begun)
            for name, ring in replay.state().items():
                np.testing.assert_array_equal(other.state()[name], ring)
