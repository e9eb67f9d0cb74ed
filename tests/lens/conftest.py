"""Small agents, trained once for all tests of the Lens."""

import pytest

from grasp.__main__ import main
from grasp.lens.view import View
from grasp.runs import Run

SMALL = [
    "--evaluate-every", "400", "--evaluation-episodes", "1", "--log-every", "100",
    "--width", "8", "--batch", "8", "--warm-up", "20",
]  # fmt: skip


def trained(folder, agent, task, *flags):
    assert main(["train", agent, "--task", task, "--run", str(folder), *SMALL, *flags]) == 0
    return Run.existing(folder)


@pytest.fixture(scope="session")
def collect_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "collect"
    depth = ["--planner.depth", "2"]
    return trained(folder, "SA-3", "collect", "--steps", "800", "--num-envs", "2", *depth)


@pytest.fixture(scope="session")
def point_mass_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "point-mass"
    return trained(folder, "GA-4", "point-mass", "--steps", "1500", "--num-envs", "2")


@pytest.fixture(scope="session")
def pendulum_run(tmp_path_factory):
    """A world that cannot be put back into a state, nor drawn."""
    folder = tmp_path_factory.mktemp("runs") / "pendulum"
    return trained(folder, "GA-2", "gym:Pendulum-v1", "--steps", "120")


@pytest.fixture(scope="session")
def uct_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "uct"
    return trained(folder, "UCT-6", "gym:Pendulum-v1", "--steps", "60", "--planner.depth", "2")


@pytest.fixture(scope="session")
def td3_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "td3"
    return trained(folder, "TD3", "gym:Pendulum-v1", "--steps", "120")


@pytest.fixture(scope="session")
def collect_view(collect_run):
    return View(collect_run)
