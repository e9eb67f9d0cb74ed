"""Released agents: what ships acts as the run did, is checked before use, and says what it is."""

import json
import shutil
import subprocess
import sys

import jax
import numpy as np
import pytest

import grasp
from grasp import releases
from grasp.__main__ import main
from grasp.checkpoints import acting_arrays, completed, named_arrays
from grasp.errors import CorruptCheckpoint, UsageError
from grasp.evaluation import Episode
from grasp.runs import RELEASED, Run, released_names

SMALL = [
    "--task", "gym:Pendulum-v1", "--steps", "120", "--evaluate-every", "60",
    "--evaluation-episodes", "1", "--log-every", "30", "--width", "8", "--batch", "8",
    "--warm-up", "40",
]  # fmt: skip
OBSERVATION = np.array([0.6, 0.8, -0.3], np.float32)


@pytest.fixture(scope="session", params=["GA-2", "TD3"])
def run(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / request.param
    assert main(["train", request.param, "--run", str(path), *SMALL]) == 0
    return Run.existing(path)


@pytest.fixture(scope="session")
def released(run, tmp_path_factory):
    to = tmp_path_factory.mktemp("released")
    assert main(["release", str(run.path), "--to", str(to), "--episodes", "2"]) == 0
    return Run.existing(to / f"gym-Pendulum-v1-{run.config()['name']}")


def played(*returns):
    return [Episode(0, float(value), 1, 1, None, [0]) for value in returns]


def test_decisions_depend_on_nothing_else(run):
    agent = grasp.load(run.path)
    action = agent.act(OBSERVATION)
    needed = agent.compiled.agent.acts_with
    agent.compiled.arrays = jax.tree_util.tree_map_with_path(
        lambda path, leaf: (
            leaf if jax.tree_util.keystr(path).startswith(needed) else leaf * 0 + leaf.dtype.type(7)
        ),
        agent.compiled.arrays,
    )
    np.testing.assert_array_equal(agent.act(OBSERVATION), action)


def test_at_full_precision_nothing_changes_and_half_rounds_matrices_alone(run):
    agent = grasp.load(run.path)
    arrays, needed = named_arrays(agent.compiled.arrays), agent.compiled.agent.acts_with
    whole = completed(arrays, acting_arrays(arrays, needed, half=False), needed)
    assert whole.keys() == arrays.keys()
    assert all(np.array_equal(whole[name], arrays[name]) for name in arrays)
    for name, array in completed(arrays, acting_arrays(arrays, needed, half=True), needed).items():
        assert array.dtype == arrays[name].dtype
        if array.ndim > 1:
            np.testing.assert_allclose(array, arrays[name], rtol=1e-3, atol=1e-6)
        else:
            np.testing.assert_array_equal(array, arrays[name])


def test_a_released_agent_acts_like_its_run_and_knows_its_training(run, released):
    trained, shipped = grasp.load(run.path), grasp.load(released.path)
    np.testing.assert_allclose(shipped.act(OBSERVATION), trained.act(OBSERVATION), atol=0.02)
    card, last = releases.card_of(released), run.metrics()[-1]
    assert card["environment_steps"] == last["environment_steps"] == 120
    assert card["episodes"] == 2
    assert card["success"] is None
    assert card["return"] == pytest.approx(
        np.mean([episode.returned for episode in shipped.evaluate(2)]), abs=1e-3
    )
    assert f"return {card['return']:.4g} in 2 greedy episodes" in releases.line(card)
    assert [row["eval/return"] for row in released.evaluations()] == pytest.approx(
        [row["eval/return"] for row in run.evaluations()], rel=1e-3
    )


def test_nothing_that_only_learning_needs_is_kept(run, released):
    kept = released.latest().parts["agent"]
    assert not [name for name in kept if "optimiser" in name]
    assert releases.size(released.path) < releases.size(run.path) / 2
    assert not list(released.path.parent.glob(".tmp-*"))


def test_damage_is_found_before_loading(released, tmp_path):
    copied = Run(shutil.copytree(released.path, tmp_path / "copied"))
    (folder,) = copied.folders()
    file = folder / "agent.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(CorruptCheckpoint, match="SHA-256"):
        grasp.load(copied.path)
    assert main(["check", str(copied.path)]) == 5


def test_half_precision_holds_unless_it_clearly_returns_less():
    before = played(1, 2, 3, 4)
    assert releases.holds(before, before)
    assert releases.holds(before, played(2, 2, 3, 3))
    assert not releases.holds(before, played(0.9, 1.9, 2.9, 3.9))


def test_full_precision_is_kept_where_half_does_not_hold(run, tmp_path, monkeypatch):
    monkeypatch.setattr(releases, "holds", lambda before, after: False)
    card = releases.write_release(run, tmp_path / "whole", 1)
    assert card["stored"] == "float32"
    trained, shipped = grasp.load(run.path), grasp.load(tmp_path / "whole")
    np.testing.assert_array_equal(shipped.act(OBSERVATION), trained.act(OBSERVATION))


def test_a_name_is_not_written_over(run, released, capsys):
    command = ["release", str(run.path), "--to", str(released.path.parent)]
    assert main(command) == 2
    assert "--replace" in capsys.readouterr().err


@pytest.mark.parametrize("name", released_names())
def test_what_ships_is_whole_small_and_says_what_it_is(name):
    card, config = releases.card_of(Run.existing(name)), Run.existing(name).config()
    assert card["name"] == name
    assert (card["task"], card["agent"]) == (config["task"], config["name"])
    assert card["command"].startswith(f"grasp train {card['agent']} --task {card['task']}")
    assert "/" not in card["command"].replace("runs/", "")
    assert card["episodes"] >= 100
    assert releases.size(RELEASED / name) < 1_000_000
    assert main(["check", name]) == 0


def test_a_shipped_agent_collects():
    episodes = grasp.load("collect-GA-4").evaluate(64, seed=3)
    assert np.mean([episode.success for episode in episodes]) > 0.85


def test_commands_take_a_name_and_write_nothing_into_the_package(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    before = sorted(RELEASED.rglob("*"))
    assert main(["evaluate", "collect-GA-4", "--episodes", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["episodes"] == 2
    assert main(["look", "collect-GA-4", "--starts", "5"]) == 0
    assert (tmp_path / "collect-GA-4-affordances.png").exists()
    assert sorted(RELEASED.rglob("*")) == before


def test_a_wrong_name_is_answered_by_the_nearest_in_one_sentence(capsys):
    with pytest.raises(UsageError, match="did you mean collect-GA-4") as refusal:
        grasp.load("collet-GA-4")
    assert "\n" not in str(refusal.value)
    assert main(["lens", "collet-GA-4"]) == 2
    assert "did you mean collect-GA-4" in capsys.readouterr().err
    with pytest.raises(UsageError, match="no best agent"):
        grasp.load("collect-GA-4", "best")


def test_the_list_needs_no_jax(capsys):
    assert main(["agents"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in released_names())
    assert max(len(line) for line in listed.splitlines()) <= 100
    assert main(["agents", "collect-GA-4"]) == 0
    assert json.loads(capsys.readouterr().out)["task"] == "collect"
    program = (
        "import sys; from grasp.__main__ import main; main(['agents']); print('jax' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "False"
