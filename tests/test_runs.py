"""The run directory: whole or not at all, refused when it is another's, read after damage."""

import json
import shutil

import numpy as np
import pytest

from grasp.errors import CorruptCheckpoint, DiskFault, UsageError
from grasp.runs import Run

CONFIG = {"task": "t", "agent": {"kind": "Grasp", "width": 4}, "seed": 0, "steps": 10}
ARRAYS = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "scalar": np.asarray(7, np.int32)}


def made(path, config=CONFIG):
    run = Run(path)
    run.claim(config)
    return run


def save(run, step):
    rows = {"x": np.arange(step, dtype=np.float32)}
    run.save((step, 0), {"agent": ARRAYS, "loop": ARRAYS}, {"segments": [run.write_segment(rows)]})


def step_of(run):
    return run.latest().facts["step"][0]


def test_the_newest_checkpoint_is_chosen_by_step_and_two_are_kept(tmp_path):
    run = made(tmp_path)
    for step in (5, 900, 10_000, 20):
        save(run, step)
    assert step_of(run) == 10_000
    assert len(list(run.checkpoints.glob("step-*"))) == 2
    assert len(list(run.segments.iterdir())) == 2  # only those that a checkpoint names


def test_of_two_checkpoints_of_a_step_the_one_after_more_evaluations_counts(tmp_path):
    run = made(tmp_path)
    for evaluations in (0, 1):
        run.save((7, evaluations), {"agent": ARRAYS}, {})
    assert run.latest().facts["step"] == [7, 1]


@pytest.mark.parametrize(
    "file", ["agent.safetensors", "loop.safetensors", "manifest.json", "segment"]
)
@pytest.mark.parametrize("damage", ["flip", "truncate", "delete", "swap"])
def test_damage_is_noticed_named_and_answered_with_the_checkpoint_before(tmp_path, file, damage):
    run = made(tmp_path)
    save(run, 1)
    old_segment = next(run.segments.iterdir())
    save(run, 2)
    older, newest = sorted(run.checkpoints.glob("step-*"))
    path, other = newest / file, older / file
    if file == "segment":
        path, other = next(p for p in run.segments.iterdir() if p != old_segment), old_segment
    content = bytearray(path.read_bytes())
    if damage == "flip":
        content[len(content) // 2] ^= 4
        path.write_bytes(content)
    elif damage == "truncate":
        path.write_bytes(content[:-5])
    elif damage == "delete":
        path.unlink()
    elif file in ("agent.safetensors", "loop.safetensors"):  # equal in both; take another's
        path.write_bytes(old_segment.read_bytes())
    else:
        shutil.copy(other, path)
    found = run.latest()
    assert found.facts["step"][0] == 1
    assert path.name in found.problems[0] or newest.name in found.problems[0]


def test_a_checkpoint_of_another_run_or_step_is_refused(tmp_path):
    mine, other = made(tmp_path / "mine"), made(tmp_path / "other", CONFIG | {"seed": 1})
    save(mine, 1)
    save(mine, 2)
    save(other, 3)
    shutil.copytree(
        other.checkpoints / "step-000000000003-000000",
        mine.checkpoints / "step-000000000003-000000",
    )
    assert step_of(mine) == 2
    assert "seed is 1 there and 0 here" in mine.latest().problems[0]
    first, second = sorted(mine.checkpoints.glob("step-*"))[:2]
    shutil.rmtree(mine.checkpoints / "step-000000000003-000000")
    second.rename(tmp_path / "aside")
    first.rename(second)
    with pytest.raises(CorruptCheckpoint, match="is the checkpoint of step"):
        mine.latest()


def test_a_changed_configuration_is_noticed(tmp_path):
    run = made(tmp_path)
    save(run, 1)
    run.config_file.write_text(run.config_file.read_text().replace('"width": 4', '"width": 5'))
    with pytest.raises(CorruptCheckpoint, match=r"agent\.width is 4 there and 5 here"):
        run.latest()
    run.config_file.write_text("{")
    with pytest.raises(CorruptCheckpoint, match="is not JSON"):
        run.latest()


def test_when_nothing_is_whole_it_says_so(tmp_path):
    run = made(tmp_path)
    save(run, 1)
    next(run.checkpoints.glob("step-*")).joinpath("manifest.json").unlink()
    with pytest.raises(CorruptCheckpoint, match="no checkpoint"):
        run.latest()


def test_damaged_checkpoints_and_unfinished_files_no_longer_count_when_a_run_goes_on(tmp_path):
    run = made(tmp_path)
    save(run, 1)
    save(run, 2)
    (run.checkpoints / "step-000000000002-000000" / "manifest.json").unlink()
    (run.checkpoints / ".tmp-step-000000000003-000000").mkdir()
    (run.segments / ".tmp-0").write_text("")
    run.set_aside_after(run.latest().folder)
    assert run.latest().problems == []
    save(run, 2)
    assert step_of(run) == 2
    assert not list(tmp_path.rglob(".tmp-*"))


def test_a_run_of_another_configuration_is_refused_by_field(tmp_path):
    made(tmp_path / "r")
    Run(tmp_path / "r").claim(CONFIG | {"steps": 99})  # longer is the same run
    other = CONFIG | {"agent": {"kind": "Grasp", "width": 8}}
    with pytest.raises(UsageError, match=r"agent\.width is 4 there and 8 here"):
        Run(tmp_path / "r").claim(other)
    assert Run(tmp_path / "r").config()["steps"] == 99


def test_a_run_from_before_a_setting_goes_on_where_the_setting_changes_nothing(tmp_path):
    made(tmp_path / "r")
    agent = CONFIG["agent"]
    Run(tmp_path / "r").claim(CONFIG | {"agent": agent | {"learning_rate_end": 1.0}})
    with pytest.raises(UsageError, match=r"learning_rate_end is 1\.0 there and 0\.1 here"):
        Run(tmp_path / "r").claim(CONFIG | {"agent": agent | {"learning_rate_end": 0.1}})


def test_an_agent_from_before_a_setting_is_read_as_what_it_was(tmp_path):
    assert made(tmp_path / "r").config()["agent"]["normalise_layers"] is False
    baseline = {"kind": "TD3", "width": 4}
    assert made(tmp_path / "t", CONFIG | {"agent": baseline}).config()["agent"] == baseline


def test_a_file_or_a_foreign_folder_is_no_place_for_a_run(tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.tex").write_text("mine")
    for name in ("file", "folder", "file/below"):
        with pytest.raises(UsageError, match="another --run"):
            Run(tmp_path / name).claim(CONFIG)
    with pytest.raises(UsageError, match="another --run"), Run(tmp_path / "file").locked():
        pass
    assert (tmp_path / "folder" / "thesis.tex").read_text() == "mine"
    (tmp_path / "killed").mkdir()
    (tmp_path / "killed" / ".tmp-config.json").write_text("{")
    Run(tmp_path / "killed").claim(CONFIG)  # what a kill left is no foreign file


@pytest.mark.parametrize("name", ["a\0b", "x" * 5_000])
def test_a_name_that_no_folder_can_have_is_refused(tmp_path, name):
    run = Run(tmp_path / name)
    run.refuse_if_locked()  # nobody can be there
    with pytest.raises(UsageError, match="give another --run"), run.locked():
        pass


def test_a_second_run_in_one_directory_is_refused_until_the_first_is_gone(tmp_path):
    first, second = Run(tmp_path).locked(), Run(tmp_path).locked()
    with first:
        with pytest.raises(UsageError, match="another process"), second:
            pass
        with pytest.raises(UsageError, match="another process"):
            Run(tmp_path).refuse_if_locked()
    Run(tmp_path).refuse_if_locked()
    Run(tmp_path / "nothing").refuse_if_locked()
    with Run(tmp_path).locked():
        pass


@pytest.mark.parametrize("torn", range(1, 36, 5))
def test_rows_after_a_checkpoint_and_torn_lines_are_dropped_when_a_run_goes_on(tmp_path, torn):
    run = made(tmp_path)
    first = {"decisions": 1, "eval/return": 2.0}
    run.append(first)
    save(run, 1)
    run.append({"decisions": 2})
    with run.metrics_file.open("a") as file:
        file.write(json.dumps({"decisions": 3, "eval/return": 1.25})[:torn])
    assert [row["decisions"] for row in run.metrics()][:2] == [1, 2]
    assert run.cut_metrics(run.latest().facts, 1) == []
    assert run.metrics_file.read_text() == json.dumps(first) + "\n"
    assert len(run.evaluations()) == 1


def test_a_log_that_is_not_what_was_written_is_said_and_its_whole_rows_are_kept(tmp_path):
    run = made(tmp_path)
    for decisions in (1, 2, 3):
        run.append({"decisions": decisions})
    save(run, 3)
    run.metrics_file.write_text(run.metrics_file.read_text().replace('"decisions": 2', '"deci'))
    assert not run.metrics_are(run.latest().facts["metrics"])
    notes = run.cut_metrics(run.latest().facts, 3)
    assert "2 whole rows" in notes[0]
    assert [row["decisions"] for row in run.metrics()] == [1, 3]


def test_no_run_is_refused_in_a_sentence(tmp_path):
    with pytest.raises(UsageError, match="no run directory"):
        Run.existing(tmp_path / "nothing")


def test_a_directory_that_vanishes_is_a_disk_fault(tmp_path):
    run = made(tmp_path / "r")
    shutil.rmtree(tmp_path / "r")
    with pytest.raises(DiskFault, match="cannot write"):
        run.append({"decisions": 1})
