"""The figures of the paper as data, and the command that makes them."""

import subprocess
import sys
from pathlib import Path

import pytest

from grasp.__main__ import main
from grasp.agents import check_agent
from grasp.command_line import train_flags
from grasp.environments import SUITE
from grasp.experiments import EXPERIMENTS, RATES, estimated_hours, jobs_of
from grasp.reproduction import draw, listed
from grasp.sweeps import Job, refuse_twins

TINY = [
    "--evaluate-every", "60", "--evaluation-episodes", "1", "--log-every", "30", "--width", "8",
    "--batch", "8", "--warm-up", "40",
]  # fmt: skip

# Section 3 of the specification: name of the row, figure, agents, tasks, seeds of the paper.
ROWS = {
    "hierarchical": ({"TD3", "GA-1", "GA-4", "A-8"}, 3, 5),
    "hierarchical-all": ({"TD3", "GA-1", "GA-2", "GA-4", "GA-8", "A-4", "A-8"}, 3, 5),
    "collect-pictures": ({"SA-3", "GA-3"}, 1, 1),
    "dm-control": ({"TD3", "GA-1", "GA-4", "A-8", "UCT-50"}, 9, 5),
    "dm-control-all": (
        {"TD3", "GA-1", "GA-2", "GA-4", "GA-8", "A-4", "A-8", "UCT-20", "UCT-50"}, 9, 5,
    ),
    "switching-strip": ({"GA-4"}, 1, 1),
    "switching-histograms": ({"GA-4"}, 9, 1),
    "depth": ({"GA-4"}, 1, 5),
    "random-affordances": ({"GA-4", "A-8", "TD3", "RND-GA-4", "RND-A-8"}, 1, 5),
    "pixels": ({"GA-4"}, 4, 3),
    "learning-rates": ({"GA-4", "TD3"}, 1, 5),
    "targets": ({"GA-4"}, 1, 5),
    "settings": ({"GA-4"}, 2, 5),
}  # fmt: skip


def test_every_figure_of_the_paper_is_there():
    assert EXPERIMENTS.keys() == ROWS.keys()
    for name, (agents, tasks, seeds) in ROWS.items():
        experiment = EXPERIMENTS[name]
        assert {variant.agent for variant in experiment.variants} == agents
        assert (len(experiment.tasks), experiment.paper_seeds) == (tasks, seeds)
        for agent in agents:
            check_agent(agent)
        assert name in listed()


def test_the_papers_scale_is_the_papers():
    jobs = jobs_of(EXPERIMENTS["dm-control"], "paper", Path("runs"))
    assert len(jobs) == 5 * 9 * 5
    assert {job.task for job in jobs} == set(SUITE)
    assert {job.steps for job in jobs} == {1_000_000}
    flags = train_flags(jobs[0].command()[1:])
    assert (flags.preset, flags.agent.width, flags.schedule.steps) == ("paper", 512, 1_000_000)
    assert {job.steps for job in jobs_of(EXPERIMENTS["hierarchical"], "paper", Path())} == {500_000}
    rates = EXPERIMENTS["learning-rates"]
    assert len(rates.variants) == 3 * len(RATES)
    assert rates.tasks == ("point_mass-easy",)
    assert EXPERIMENTS["depth"].tasks == EXPERIMENTS["random-affordances"].tasks == ("fish-swim",)


@pytest.mark.parametrize("scale", ["small", "paper"])
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_run_of_a_figure_is_a_command_that_train_accepts(name, scale):
    jobs = jobs_of(EXPERIMENTS[name], scale, Path("runs"), seeds=[0])
    refuse_twins(jobs)
    for job in jobs:
        if job.task == jobs[0].task:
            flags = train_flags(job.command()[1:])
            assert (flags.schedule.steps, flags.label) == (job.steps, job.label)
        assert estimated_hours(job, scale) > 0


def test_runs_of_options_are_not_estimated_as_those_of_actions():
    def hours(name, task):
        job = next(j for j in jobs_of(EXPERIMENTS[name], "small", Path()) if j.task == task)
        return 3.6e6 * estimated_hours(job, "small") / job.steps  # seconds per 1,000 steps

    assert hours("hierarchical", "collect") == pytest.approx(22 / 4 / 3.7)
    assert hours("dm-control", "walker-walk") == pytest.approx(2.3)
    assert hours("depth", "fish-swim") == pytest.approx(5 / 2)


def test_variants_differ_in_what_they_are_named_for():
    def agents(name):
        jobs = jobs_of(EXPERIMENTS[name], "small", Path(), seeds=[0])
        return {job.label: train_flags(job.command()[1:]).agent for job in jobs}

    assert [agent.planner.depth for agent in agents("depth").values()] == [1, 2, 3]
    targets = agents("targets")
    hard, soft = targets["GA-4-hard-targets"], targets["GA-4-soft-targets"]
    assert (hard.target_period, hard.target_rate) == (1_000, 1.0)
    assert (soft.target_period, soft.target_rate) == (1, 0.01)
    rates = agents("learning-rates")
    assert rates["TD3-critic-learning-rate-7e-4"].critic_learning_rate == 7e-4
    assert rates["TD3-actor-learning-rate-3e-3"].actor_learning_rate == 3e-3
    assert rates["GA-4-affordance-learning-rate-1e-4"].affordance_learning_rate == 1e-4


def test_the_list_needs_no_jax():
    program = (
        "import sys\nfrom grasp.__main__ import main\nmain(['reproduce', '--list'])\n"
        "sys.exit(1 if 'jax' in sys.modules or 'dm_control' in sys.modules else 0)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["dept"], "did you mean depth"),
        (["depth", "--tasks", "walker-wlak"], "walker-walk"),
        (["depth", "--agents", "TD3"], "no agent of this figure"),
        (["depth", "--steps", "0"], "at least 1"),
        (["depth", "--scale", "tiny"], "tiny"),
        (["depth", "--widht", "8"], "--width"),
    ],
)
def test_bad_input_gets_one_clear_sentence(capsys, tmp_path, monkeypatch, arguments, hint):
    monkeypatch.chdir(tmp_path)
    try:
        code = main(["reproduce", *arguments])
    except SystemExit as exit_:  # the parser's own refusals
        code = exit_.code
    error = capsys.readouterr().err
    assert code == 2
    assert hint in error
    assert "Traceback" not in error
    assert list(tmp_path.iterdir()) == []


def test_a_figure_on_another_task_says_so(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "depth", "--tasks", "walker-walk", "fish-swim", "--dry-run"]) == 0
    printed = capsys.readouterr()
    assert printed.err == "not in the paper's figure, which is on fish-swim: walker-walk\n"
    assert "0 of 18 runs are done" in printed.out


def test_a_figure_from_nothing_to_its_picture(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = ["reproduce", "targets", "--seeds", "0", "--agents", "GA-4-hard-targets"]
    command += ["--steps", "120", *TINY]
    assert main([*command, "--dry-run"]) == 0
    assert "missing  runs/small/point_mass-easy-GA-4-hard-targets-seed0" in capsys.readouterr().out
    assert not (tmp_path / "runs").exists()
    assert main(command) == 0
    assert "targets, small: 0 of 1 runs are done" in capsys.readouterr().out
    for ending in (".png", ".svg", ".csv", "-interquartile.png"):
        assert (tmp_path / "figures" / f"targets-small{ending}").stat().st_size > 50
    assert main(command) == 0
    assert "targets, small: 1 of 1 runs are done" in capsys.readouterr().out


def test_pictures_that_ask_the_agent(tmp_path, capsys):
    run = tmp_path / "r"
    small = ["--steps", "300", "--num-envs", "2", *TINY]
    assert main(["train", "SA-3", "--task", "collect", "--run", str(run), *small]) == 0
    jobs = [Job("SA-3", "collect", 0, run, "SA-3", steps=300)]
    for name, file in {
        "collect-pictures": "p-SA-3-seed0.png",
        "switching-strip": "p.png",
        "switching-histograms": "p.csv",
    }.items():
        folder = tmp_path / name
        written = draw(EXPERIMENTS[name], jobs, folder / "p.png", 5)
        assert folder / file in written
        assert all(path.stat().st_size > 50 for path in written)
    assert len((tmp_path / "switching-histograms" / "p.csv").read_text().splitlines()) == 1 + 3 * 5
