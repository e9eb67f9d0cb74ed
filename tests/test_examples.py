"""The examples are programs that run."""

import os
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def output(tmp_path, name, *arguments):
    program = [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments]
    done = subprocess.run(
        program,
        cwd=tmp_path,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_custom_environment(tmp_path):
    printed = output(tmp_path, "custom_environment.py", "2300")
    assert "mean return" in printed
    assert "Plan(actions" in printed
    assert (tmp_path / "runs" / "Puck-GA-4-seed0" / "curve.png").exists()


def test_options_of_your_own(tmp_path):
    printed = output(tmp_path, "own_options.py", "25000")
    assert float(printed.split("lit ")[1].split()[0]) > 0.3  # 60,000 steps: see the file
    assert "Plan(actions" in printed


def test_planning_with_a_model_of_your_own(tmp_path):
    before, after = output(tmp_path, "plan_with_your_model.py").split("after")
    value = [float(part.rsplit("Array(", 1)[1].split(",")[0]) for part in (before, after)]
    assert value[1] > value[0] + 0.5


def test_a_planner_of_your_own(tmp_path):
    printed = output(tmp_path, "own_planner.py", "2300")
    assert "mean return" in printed
    assert "Plan(actions" in printed


def test_affordances_of_your_own(tmp_path):
    printed = output(tmp_path, "own_affordances.py", "2300")
    heads = [float(number) for number in printed.split("[")[1].split("]")[0].split()]
    anchors = [-1, -0.5, 0, 0.5, 1]
    assert all(abs(head - anchor) <= 0.3 for head, anchor in zip(heads, anchors, strict=True))
    assert "mean return" in printed
