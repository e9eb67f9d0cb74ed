"""Curves from result files."""

import numpy as np

from grasp.figures import draw_results, has_success, mean_curve, read_results


def test_seeds_are_grouped_by_agent_and_averaged(tmp_path):
    task = tmp_path / "walker-walk"
    task.mkdir()
    for name, scale in {"GA-4-seed0": 1, "GA-4-seed1": 3, "TD3-seed0": 5}.items():
        rows = "".join(f"{step},{step},{scale * step},\n" for step in (10, 20, 30))
        (task / f"{name}.csv").write_text("environment_steps,decisions,return,success\n" + rows)
    curves = read_results(task)
    assert {agent: len(runs) for agent, runs in curves.items()} == {"GA-4": 2, "TD3": 1}
    steps, mean = mean_curve(curves["GA-4"])
    np.testing.assert_array_equal(steps, [10, 20, 30])
    np.testing.assert_array_equal(mean, [20, 40, 60])
    assert draw_results(tmp_path, tmp_path / "p.png") == ["walker-walk"]
    assert (tmp_path / "p.png").stat().st_size > 5_000


def test_a_task_with_success_shows_it_instead_of_the_return(tmp_path):
    task = tmp_path / "collect"
    task.mkdir()
    (task / "GA-4-seed0.csv").write_text(
        "environment_steps,decisions,return,success\n10,2,0.31,0.0\n20,4,0.5,0.75\n"
    )
    np.testing.assert_array_equal(read_results(task)["GA-4"][0][1], [0, 0.75])
    assert has_success(task)
    assert draw_results(tmp_path, tmp_path / "p.png") == ["collect"]


def test_a_shorter_seed_ends_the_mean():
    long = (np.array([10.0, 20, 30]), np.array([1.0, 2, 3]))
    short = (np.array([10.0, 20]), np.array([3.0, 4]))
    steps, mean = mean_curve([long, short])
    np.testing.assert_array_equal(steps, [10, 20])
    np.testing.assert_array_equal(mean, [2, 3])
