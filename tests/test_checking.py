"""grasp check and grasp check-env."""

import json

import gymnasium
import numpy as np
import pytest

from grasp.__main__ import main
from grasp.checking import check_run
from grasp.environments.boundary import Boundary
from grasp.environments.check import check_environment
from grasp.runs import Run
from test_training import Resumable, ending, trained
from worlds import Counting, Probe


def test_a_whole_run_is_said_to_be_whole_with_its_digest(tmp_path, capsys):
    trained(tmp_path / "r", Resumable)
    assert main(["check", str(tmp_path / "r")]) == 0
    printed = capsys.readouterr().out
    assert f"digest {ending(tmp_path / 'r')}" in printed
    assert "resumed run is exact" in printed
    assert main(["check", str(tmp_path / "r"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["problems"] == []


def test_every_damaged_file_of_a_run_is_named(tmp_path, capsys):
    trained(tmp_path / "r", Resumable)
    run = Run(tmp_path / "r")
    files = [p for p in tmp_path.rglob("*") if p.suffix in (".safetensors", ".jsonl")]
    files += list(run.segments.iterdir()) + list(tmp_path.rglob("manifest.json"))
    assert len(files) > 8
    for path in files:
        content = path.read_bytes()
        path.write_bytes(content[:-2] + bytes([content[-2] ^ 1]) + content[-1:])
        assert any(path.name in problem for problem in check_run(run).problems), path
        assert main(["check", str(run.path)]) == 5
        assert path.name in capsys.readouterr().err
        path.write_bytes(content)
    assert check_run(run).problems == []


def checked(world, steps=100):
    return check_environment(lambda: Boundary(world(), "world"), steps)


class Drifting(Counting):
    """No function of its seed."""

    def step(self, action):
        observation, *rest = super().step(action)
        return (observation + np.float32(np.random.default_rng().random()), *rest)


class Forgetful(Resumable):
    """Its state lacks what decides the rest of the episode."""

    def get_state(self):
        return {"total": self.total}

    def set_state(self, state):
        self.total, self.steps = int(state["total"]), 0


@pytest.mark.parametrize(
    ("world", "tier", "problem"),
    [
        (Resumable, "state", None),
        (Counting, "actions", None),
        (lambda: Probe("goal"), "actions", None),
        (Forgetful, "episode", None),
        (Drifting, "episode", "reset(seed) does not decide"),
        (lambda: Counting(faults={70: (np.array([np.nan]), 0.0)}), "episode", "at step 70"),
    ],
)
def test_what_is_wrong_with_an_environment_is_said(world, tier, problem):
    found = checked(world)
    assert found.tier == tier
    if problem is None:
        assert found.problems == []
        assert found.decisions == 200
    else:
        assert problem in found.problems[0]


def test_the_command_takes_a_plain_gymnasium_id(capsys):
    assert main(["check-env", "Pendulum-v1", "--steps", "300"]) == 0
    printed = capsys.readouterr().out
    assert "600 decisions" in printed
    assert "lived again from its seed and actions" in printed
    assert main(["check-env", "collect", "--steps", "30", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tier"] == "state"


def test_the_command_ends_with_3_for_a_faulty_environment_and_2_for_none(capsys):
    gymnasium.register("Faulty-v0", lambda: Counting(faults={30: (np.array([np.inf]), 0.0)}))
    try:
        assert main(["check-env", "Faulty-v0", "--steps", "100"]) == 3
        assert "at step 30 from seed 0" in capsys.readouterr().err
    finally:
        del gymnasium.registry["Faulty-v0"]
    assert main(["check-env", "Nothing-v0"]) == 2
    assert main(["check-env", "collect", "--steps", "0"]) == 2
    assert main(["check", "nowhere"]) == 2


def test_wrong_settings_are_said_all_at_once(capsys):
    line = ["train", "GA-4", "--task", "collect", "--steps", "0", "--batch", "-3"]
    assert main([*line, "--discount", "2", "--seed", "-1"]) == 2
    error = capsys.readouterr().err
    assert all(flag in error for flag in ("--steps is 0", "--batch is -3", "--discount is 2"))
    assert "--seed is -1" in error
    assert "Traceback" not in error
