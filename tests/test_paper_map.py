"""docs/paper-map.md: every part of the paper is there, and every file, name and command exists."""

import ast
import re
from pathlib import Path

import pytest

from grasp.__main__ import USAGE
from grasp.agents import check_agent
from grasp.environments import check_task
from grasp.experiments import EXPERIMENTS

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "grasp"
ROWS = [
    [cell.strip() for cell in line.strip("|\n").split("|")]
    for line in (ROOT / "docs" / "paper-map.md").read_text().splitlines()
    if line.startswith("| ") and not line.startswith("| paper |")
]

# Headings, equations and figures of the paper, in its order.
PARTS = [
    "Key idea", "High level overview", "Agent-environment interaction, actions",
    "Agent-environment interaction, options", "Affordance module",
    "Value-equivalent model representation", "Value-equivalent model training",
    "Lookahead tree expansion, complete tree", "Lookahead tree expansion, UCT",
    "Action selection via planning tree", "Gradient update for the affordance module",
    "Neural network architecture", "Collect", "Ant-Gather", "Point-Mass", "Variants of the agents",
    "§3.1 Results", "§3.2 Results", "Analysis of switching", "Future work", "hardware",
    "comparison with a model-based approach", "additional visualization from Collect",
    "complete learning curves", "network architecture", "learning rates", "hard or soft targets",
    "planning depths", "random affordances", "Algorithm 1", "equation of the model loss",
    "both gradient equations", *(f"Figure {number}" for number in range(1, 11)),
]  # fmt: skip


def names_in(file):
    """The functions, classes, methods and constants that a file defines."""
    found = set()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{f.name}" for f in node.body if isinstance(f, ast.FunctionDef)}
        if isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return found


@pytest.mark.parametrize("part", PARTS)
def test_every_part_of_the_paper_is_in_the_map(part):
    assert any(part in row[0] for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=[row[0][:50] for row in ROWS])
def test_files_names_and_commands_exist(row):
    _, code, command = row
    if code == "not built yet":
        return
    places = code.split("; ")
    assert places
    for place in places:
        file, *names = re.findall(r"`([^`]+)`", place)
        assert names, place
        assert set(names) <= names_in(SOURCE / file), place
    for given in re.findall(r"`grasp ([^`]+)`", command):
        words = given.split()
        assert f"grasp {words[0]} " in USAGE
        if words[0] == "train":
            check_agent(words[1])
        if words[0] == "reproduce":
            assert words[1] in EXPERIMENTS
        if "--task" in words:
            check_task(words[words.index("--task") + 1])


def test_every_figure_that_can_be_made_is_in_the_map():
    commands = " ".join(row[2] for row in ROWS)
    assert {name for name in EXPERIMENTS if f"`grasp reproduce {name}`" in commands} == set(
        EXPERIMENTS
    )


def test_a_name_that_is_not_there_would_be_found():
    assert "Grasp.update" in names_in(SOURCE / "agents" / "grasp.py")
    assert "Grasp.updat" not in names_in(SOURCE / "agents" / "grasp.py")
