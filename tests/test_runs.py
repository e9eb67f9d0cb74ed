"""The run directory: whole or not at all, refused when it is another's, read after damage."""

import json

import numpy as np
import pytest

from grasp.errors import CorruptCheckpoint, UsageError
from grasp.runs import Run, read_arrays, write_arrays

CONFIG = {"task": "t", "agent": {"kind": "Grasp", "width": 4}, "seed": 0, "steps": 10}
ARRAYS = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "scalar": np.asarray(7, np.int32)}


def test_arrays_come_back_with_shape_and_type(tmp_path):
    write_arrays(tmp_path / "x", ARRAYS, {"step": 3})
    arrays, facts = read_arrays(tmp_path / "x")
    assert facts == {"step": 3}
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype
        assert arrays[name].shape == array.shape


def test_the_newest_checkpoint_is_chosen_by_step_and_two_are_kept(tmp_path):
    run = Run(tmp_path)
    for step in (5, 900, 10_000, 20):
        run.save(step, ARRAYS, {"step": step})
    assert run.latest()[1] == {"step": 10_000}
    assert len(list((tmp_path / "checkpoints").iterdir())) == 2


@pytest.mark.parametrize("damage", ["flip", "truncate", "delete", "manifest"])
def test_a_damaged_checkpoint_is_noticed_and_the_one_before_is_used(tmp_path, damage):
    run = Run(tmp_path)
    run.save(1, ARRAYS, {"step": 1})
    run.save(2, ARRAYS, {"step": 2})
    newest = sorted((tmp_path / "checkpoints").iterdir())[-1]
    file = newest / "arrays.safetensors"
    content = bytearray(file.read_bytes())
    if damage == "flip":
        content[-3] ^= 1
        file.write_bytes(content)
    elif damage == "truncate":
        file.write_bytes(content[:-5])
    elif damage == "delete":
        file.unlink()
    else:
        (newest / "manifest.json").write_text("{")
    with pytest.raises(CorruptCheckpoint, match="step-000000000002"):
        read_arrays(newest)
    assert run.latest()[1] == {"step": 1}


def test_when_nothing_is_whole_it_says_so(tmp_path):
    run = Run(tmp_path)
    run.save(1, ARRAYS, {})
    next((tmp_path / "checkpoints").iterdir()).joinpath("manifest.json").unlink()
    with pytest.raises(CorruptCheckpoint, match="no checkpoint"):
        run.latest()


def test_a_run_of_another_configuration_is_refused_by_field(tmp_path):
    Run(tmp_path / "r").claim(CONFIG)
    Run(tmp_path / "r").claim(CONFIG | {"steps": 99})  # longer is the same run
    other = CONFIG | {"agent": {"kind": "Grasp", "width": 8}}
    with pytest.raises(UsageError, match=r"agent\.width is 4 there and 8 here"):
        Run(tmp_path / "r").claim(other)
    assert Run(tmp_path / "r").config()["steps"] == 99


def test_a_file_or_a_foreign_folder_is_no_place_for_a_run(tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.tex").write_text("mine")
    for name in ("file", "folder"):
        with pytest.raises(UsageError, match="another --run"):
            Run(tmp_path / name).claim(CONFIG)
    assert (tmp_path / "folder" / "thesis.tex").read_text() == "mine"


def test_a_second_run_in_one_directory_is_refused_until_the_first_is_gone(tmp_path):
    first, second = Run(tmp_path).locked(), Run(tmp_path).locked()
    with first, pytest.raises(UsageError, match="another process"), second:
        pass
    with Run(tmp_path).locked():
        pass


def test_a_torn_line_of_the_log_is_left_out(tmp_path):
    run = Run(tmp_path)
    run.append({"decisions": 1, "eval/return": 2.0})
    run.append({"decisions": 2})
    with run.metrics_file.open("a") as file:
        file.write('{"decisions": 3, "ev')
    assert [row["decisions"] for row in run.metrics()] == [1, 2]
    run.forget_after(1)
    assert run.metrics_file.read_text() == json.dumps({"decisions": 1, "eval/return": 2.0}) + "\n"
    assert len(run.evaluations()) == 1


def test_no_run_is_refused_in_a_sentence(tmp_path):
    with pytest.raises(UsageError, match="no run directory"):
        Run.existing(tmp_path / "nothing")
