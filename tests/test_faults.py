"""The short form of `make faults`: each suite a few times, and each of them able to fail."""

import os
import subprocess
import sys
from pathlib import Path

import fault_files
import fault_worlds
import pytest

from grasp.runs import Run

TOOLS = Path(fault_files.__file__).parent


def assert_held(rows):
    for row in rows:
        assert row.tried > 0
        assert row.held == row.tried, row


def test_damage_of_every_kind_is_answered(tmp_path):
    assert_held(fault_files.damage(tmp_path, flips=60, truncations=20))


def test_a_reader_that_checks_nothing_is_found_out(tmp_path, monkeypatch):
    def unchecked(path, mark):
        return path.read_bytes() if path.exists() else b""

    monkeypatch.setattr("grasp.files.read_stamped", unchecked)
    monkeypatch.setattr("grasp.runs.read_stamped", unchecked)
    assert fault_files.damage(tmp_path, flips=60, truncations=0)[0].held < 60


def test_bad_numbers_are_caught_at_their_step(tmp_path):
    assert_held([fault_worlds.bad_numbers(tmp_path, 14)])


def test_errors_of_the_environment_join_no_episodes(tmp_path):
    assert_held(fault_worlds.raising(tmp_path, 2_000))


def test_fuzzed_input_never_ends_in_a_traceback():
    assert_held([fault_worlds.fuzzed_commands(60, seed=5)])


@pytest.mark.parametrize("suite", ["saving", "kill-many"])
def test_kills(tmp_path, suite):
    """In a process of its own, which forks before JAX has threads."""
    command = [sys.executable, TOOLS / "faults.py", "--quick", "--only", suite, "--to", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3/3 SIGKILL" in done.stdout or "30/30 kills during saving" in done.stdout
    assert (tmp_path / "faults.json").exists()


def test_two_runs_in_one_directory(tmp_path):
    path = tmp_path / "r"
    command = [sys.executable, "-m", "grasp", "train", "GA-4", "--task", "collect", "--run", path]
    with Run(path).locked():
        second = subprocess.run(command, capture_output=True, text=True, check=False)
    assert second.returncode == 2
    assert "another process is running" in second.stderr
