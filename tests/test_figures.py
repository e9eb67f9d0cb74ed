"""Curves from result files: read, grouped, drawn, and their numbers beside them."""

import csv

import numpy as np
import pytest

from grasp.curves import anchors, draw_curves, draw_values, final_rows, style
from grasp.errors import GraspError
from grasp.results import by_task, read_records

HEADER = "environment_steps,decisions,return,success\n"


@pytest.fixture
def suite(tmp_path):
    task = tmp_path / "dm_control" / "walker-walk"
    task.mkdir(parents=True)
    for name, scale in {"GA-4-seed0": 1, "GA-4-seed1": 3, "TD3-seed0": 5}.items():
        rows = "".join(f"{step},{step},{scale * step},\n" for step in (10, 20, 30))
        (task / f"{name}.csv").write_text(HEADER + rows)
    return tmp_path / "dm_control"


def rows_of(path):
    with path.open() as lines:
        return list(csv.DictReader(lines))


def test_seeds_are_grouped_by_agent_and_averaged(suite, tmp_path):
    tasks = by_task(read_records([suite]))
    assert {agent: len(seeds) for agent, seeds in tasks["walker-walk"].items()} == {
        "GA-4": 2,
        "TD3": 1,
    }
    png, svg, table = draw_curves(tasks, tmp_path / "p.png")
    assert png.stat().st_size > 5_000
    assert svg.read_text().count("<path") > 10
    mine = [row for row in rows_of(table) if row["agent"] == "GA-4"]
    assert [float(row["mean"]) for row in mine] == [20, 40, 60]
    assert [float(row["high"]) for row in mine] == [30, 60, 90]  # the standard error of 10 and 30
    assert mine[0]["seeds"] == "2"
    rows = {row[1]: row for row in final_rows(tasks)}
    assert rows["GA-4"][2:6] == (2, 30, 60.0, 30.0)


def test_interquartile_means_are_drawn_with_their_intervals(suite, tmp_path):
    *_, table = draw_curves(
        by_task(read_records([suite])), tmp_path / "p.png", statistic="interquartile"
    )
    mine = [row for row in rows_of(table) if row["agent"] == "GA-4"]
    assert [float(row["interquartile"]) for row in mine] == [20, 40, 60]
    assert (float(mine[0]["low"]), float(mine[0]["high"])) == (10, 30)


def test_the_same_runs_give_the_same_files(suite, tmp_path):
    tasks = by_task(read_records([suite]))
    first, second = (draw_curves(tasks, tmp_path / name) for name in ("a.png", "b.png"))
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_a_task_with_success_shows_it_instead_of_the_return(tmp_path):
    task = tmp_path / "hierarchical" / "collect"
    task.mkdir(parents=True)
    (task / "GA-4-seed0.csv").write_text(HEADER + "10,2,0.31,0.0\n20,4,0.5,0.75\n")
    (record,) = read_records([tmp_path])
    np.testing.assert_array_equal(record.curve[1], [0, 0.75])
    assert record.has_success
    assert (record.suite, record.task, record.label, record.seed) == (
        "hierarchical", "collect", "GA-4", 0,
    )  # fmt: skip


def test_values_of_a_flag_become_lines(tmp_path):
    task = tmp_path / "dm_control" / "point_mass-easy"
    task.mkdir(parents=True)
    for rate, score in {"1e-4": 5, "3e-3": 7}.items():
        path = task / f"TD3-actor-learning-rate-{rate}-seed0.csv"
        path.write_text(HEADER + f"10,10,{score},\n")
    *_, table = draw_values(by_task(read_records([tmp_path])), tmp_path / "v.png")
    rows = {float(row["value"]): row for row in rows_of(table)}
    assert {value: float(row["mean"]) for value, row in rows.items()} == {1e-4: 5, 3e-3: 7}
    assert rows[1e-4]["agent_and_flag"] == "TD3-actor-learning-rate"


def test_published_scores_name_their_source():
    found = {anchor.method: anchor for anchor in anchors("walker-walk")}
    assert list(found["TD3"].steps) == [100_000, 200_000, 500_000, 1_000_000]
    sources = {"TD3": "tonic_data", "SAC": "pytorch_sac", "TD-MPC2": "tdmpc2"}
    assert {method for method, name in sources.items() if name in found[method].source} == {*found}
    seen = {anchor.method: anchor.means[0] for anchor in anchors("walker-walk", "pixels")}
    assert seen == {"Dreamer": 137.2, "CURL": 403.0, "DrQ-v2": 169.6, "DreamerV3": 638.9}
    assert anchors("collect") == []


@pytest.mark.parametrize(
    "content",
    ["", "environment_steps,decisions,return,success\n", HEADER + "10,10,\n", "a,b\n1,2\n"],
)
def test_a_damaged_result_file_is_named(tmp_path, content):
    (tmp_path / "GA-4-seed0.csv").write_text(content)
    with pytest.raises(GraspError, match=r"GA-4-seed0.csv is no whole result file"):
        read_records([tmp_path])


def test_no_two_lines_of_a_figure_look_the_same():
    shown = ["TD3", "GA-4", "A-8", "GA-1", "UCT-50", "GUMBEL-16", "GUMBEL-50", "SA-3", "GA-6"]
    assert len({style(agent, shown) for agent in shown}) == len(shown)
    assert style("GA-4", shown) == style("GA-4", ["GA-4"])
