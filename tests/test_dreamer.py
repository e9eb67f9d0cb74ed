"""Dreamer's log in our layout, read back as any other run; sheeprl itself is not needed."""

import importlib.util
from pathlib import Path

import numpy as np

from grasp.results import HEADER, read_records

PLACE = Path(__file__).parents[1] / "bench" / "dreamer.py"
spec = importlib.util.spec_from_file_location("dreamer", PLACE)
dreamer = importlib.util.module_from_spec(spec)
spec.loader.exec_module(dreamer)


def test_its_rows_are_read_as_results(tmp_path):
    place = tmp_path / "pixels" / "walker-walk" / "Dreamer-v3-seed2.csv"
    rows = [dreamer.Logged(500, 31.25, 9.0), dreamer.Logged(1000, 40.0, 18.0)]
    dreamer.write(rows, place, {"hours": 1.5})
    assert tuple(dreamer.HEADER) == HEADER
    (record,) = read_records([tmp_path])
    assert (record.suite, record.task) == ("pixels", "pixels:walker-walk")
    assert (record.label, record.seed) == ("Dreamer-v3", 2)
    np.testing.assert_array_equal(record.curve[0], [1000, 2000])  # environment steps
    np.testing.assert_array_equal(record.curve[1], [31.25, 40.0])


def test_it_is_told_the_same_task_size_repeat_and_steps():
    told = dreamer.command("ball_in_cup-catch", "v3", "XS", 100_000, 3, Path("logs"))
    for expected in (
        "env.wrapper.domain_name=ball_in_cup", "env.wrapper.task_name=catch",
        "env.action_repeat=2", "env.screen_size=64", "algo.total_steps=50000", "seed=3",
        "fabric.accelerator=cpu",
    ):  # fmt: skip
        assert expected in told
    assert not any(word.startswith("algo.replay_ratio") for word in told)
    slower = dreamer.command("ball_in_cup-catch", "v3", "XS", 100, 3, Path("logs"), 0.1)
    assert "algo.replay_ratio=0.1" in slower
