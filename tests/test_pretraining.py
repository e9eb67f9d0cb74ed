"""Hindsight by hand, and a short pretraining that learns."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest

from grasp.__main__ import main
from grasp.environments.collect import EPSILON, Collect, GoAndCollect
from grasp.errors import UsageError
from grasp.options import shipped_options
from grasp.pretraining import (
    Hindsight,
    Pretrainer,
    Pretraining,
    layers_of,
    pretrain,
    reached_share,
)


def test_hindsight_asks_for_places_that_the_same_episode_came_to_later():
    memory, reaching = Hindsight(100, 2, 4, 2), GoAndCollect()
    for episode in range(3):
        places = [np.array([0.1 * step, 0.3 * episode], np.float32) for step in range(5)]
        rows = [(a, np.full(4, 0.5), b) for a, b in pairwise(places)]
        memory.add(rows, np.array([0.9, 0.9]))
    window = memory.sample(2_000, reaching, np.random.default_rng(0))
    before, after = np.moveaxis(window.observations, 1, 0) * EPSILON  # to the option
    np.testing.assert_allclose(before - after, [[0.1, 0]] * 2_000, atol=1e-6)
    hindsight = np.abs(before[:, 1]) < 1e-6  # an option on the episode's own line
    assert hindsight.mean() == pytest.approx(0.8, abs=0.05)
    assert (before[hindsight, 0] > 0.05).all()  # never a place of the past
    reached = window.terminated
    np.testing.assert_array_equal(reached, np.linalg.norm(after, axis=1) <= 0.8 * EPSILON)
    np.testing.assert_array_equal(window.rewards[:, 0], np.where(reached, 0, -1))


def test_a_full_memory_forgets_the_oldest_episodes_whole():
    memory = Hindsight(10, 2, 4, 2)
    for episode in range(5):  # of four decisions: two fit, the third begins anew
        places = [np.array([step, episode], np.float32) for step in range(5)]
        memory.add([(a, np.zeros(4), b) for a, b in pairwise(places)], np.zeros(2))
        assert memory.size <= 10
    window = memory.sample(500, GoAndCollect(), np.random.default_rng(0))
    assert {int(b[1]) for b in memory.bodies[: memory.size]} == {3, 4}
    assert (memory.left[: memory.size] == [3, 2, 1, 0] * 2).all()
    assert window.observations.shape == (500, 2, 2)


def test_an_interrupted_pretraining_continues_where_it_was(tmp_path):
    """And ends as one that was never interrupted."""
    settings = Pretraining(steps=1_200, agent=dataclasses.replace(Pretraining.agent, warm_up=500))
    whole = Pretrainer(GoAndCollect(), Collect(), settings)
    whole.run(lambda steps, share: None)

    first = Pretrainer(GoAndCollect(), Collect(), settings, tmp_path)

    def stop(steps, share):
        if steps > 700:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        first.run(stop)
    first.save()
    second = Pretrainer(GoAndCollect(), Collect(), settings, tmp_path)
    assert second.steps == first.steps
    second.run(lambda steps, share: None)
    assert (second.steps, second.updates) == (whole.steps, whole.updates)
    for ours, theirs in zip(layers_of(second.agent), layers_of(whole.agent), strict=True):
        np.testing.assert_array_equal(ours[0], theirs[0])
    other = dataclasses.replace(settings, seed=1)
    with pytest.raises(UsageError, match="other settings"):
        Pretrainer(GoAndCollect(), Collect(), other, tmp_path)


def test_a_short_pretraining_learns_to_go_places():
    settings = Pretraining(steps=4_000)
    _, report = pretrain(GoAndCollect(), Collect(), settings)
    lazy = dataclasses.replace(settings, steps=400)
    untrained, _ = pretrain(GoAndCollect(), Collect(), lazy)
    assert report["reached"] > 0.8
    assert reached_share(untrained, Collect(), 100)["reached"] < 0.6


def test_the_command_writes_weights_that_load(tmp_path, capsys):
    flags = ["--steps", "1500", "--agent.warm-up", "500", "--to", str(tmp_path)]
    flags += ["--run", str(tmp_path / "run")]
    assert main(["pretrain", "collect", *flags]) == 0
    assert "random options reached" in capsys.readouterr().out
    assert shipped_options(GoAndCollect(), tmp_path).layers[0][0].shape == (2, 64)


def test_a_task_without_options_is_refused(capsys):
    assert main(["pretrain", "walker-walk"]) == 2
    assert "option tasks: collect" in capsys.readouterr().err
