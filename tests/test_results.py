"""Run directories and result files as data: what is damaged, missing or there twice is named, and
nothing is overwritten.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from grasp.__main__ import main
from grasp.report import minutes_rows, paper_tasks, settings_table
from grasp.results import Record, notes, read_records, read_switching, write_table
from grasp.runs import Run

CONFIG = {
    "task": "walker-walk", "name": "GA-4", "seed": 0, "agent": {"kind": "Grasp", "width": 8},
    "steps": 20, "evaluation_episodes": 1, "version": "0", "command": "grasp train",
}  # fmt: skip


def made(path, scores=(1.0, 2.0), **other):
    """A run directory with evaluations every 10 steps."""
    run = Run(path)
    run.claim(CONFIG | other)
    for index, score in enumerate(scores, 1):
        run.append({
            "environment_steps": 10 * index, "decisions": 10 * index, "time/seconds": 36.0 * index,
            "eval/return": score,
        })  # fmt: skip
    return path


def refused(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    error = capsys.readouterr().err
    assert code in (2, 5)
    assert error.count("\n") == 1
    assert "Traceback" not in error
    return error


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_runs_and_their_exports_say_the_same(tmp_path, capsys):
    made(tmp_path / "runs" / "a"), made(tmp_path / "runs" / "b", seed=1)
    assert (
        main(["export", *map(str, (tmp_path / "runs").iterdir()), "--to", str(tmp_path / "r")]) == 0
    )
    files, runs = read_records([tmp_path / "r"]), read_records([tmp_path / "runs"])
    assert [record[:4] for record in files] == [record[:4] for record in runs]
    for one, other in zip(files, runs, strict=True):
        assert [part.tolist() for part in one.curve] == [part.tolist() for part in other.curve]
    assert files[0].facts["hours"] == 0.02


def test_runs_go_to_the_suite_that_is_asked_for(tmp_path, capsys):
    made(tmp_path / "a")
    assert main(["export", str(tmp_path / "a"), "--suite", "settings", "--to", str(tmp_path)]) == 0
    assert (tmp_path / "settings" / "walker-walk" / "GA-4-seed0.csv").exists()


@pytest.mark.parametrize("suite", ["", ".", "..", "../up", "a/b", "/tmp"])
def test_a_suite_is_one_folder(tmp_path, capsys, suite):
    made(tmp_path / "a")
    before = contents(tmp_path)
    error = refused(capsys, "export", tmp_path / "a", "--suite", suite, "--to", tmp_path / "r")
    assert "name of one folder" in error
    assert contents(tmp_path) == before


@pytest.mark.parametrize("command", ["export", "report", "figure"])
def test_a_missing_run_is_named(tmp_path, capsys, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    made(tmp_path / "a")
    before = contents(tmp_path)
    assert "nowhere" in refused(capsys, command, tmp_path / "a", tmp_path / "nowhere")
    assert contents(tmp_path) == before


@pytest.mark.parametrize("command", ["export", "report", "figure"])
def test_a_half_written_line_is_accepted_at_the_end_only(tmp_path, capsys, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    run = Run(made(tmp_path / "a"))
    whole = run.metrics_file.read_text()
    run.metrics_file.write_text(whole + '{"decisions": 30, "eval/ret')
    assert main([command, str(run.path)]) == 0
    note = f"note: the last row of {run.metrics_file} is only half there"
    assert capsys.readouterr().err.startswith(note)
    run.metrics_file.write_text(whole)
    assert main([command, str(run.path)]) == 0
    assert capsys.readouterr().err == ""
    run.metrics_file.write_text(whole[:40] + "\n" + whole)
    before = contents(tmp_path)
    assert "line 1 of" in refused(capsys, command, run.path)
    assert contents(tmp_path) == before


def test_two_runs_with_the_same_name_are_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made(tmp_path / "a"), made(tmp_path / "b", scores=(5.0,))
    assert "would both be written to" in refused(capsys, "export", "a", "b")
    assert not (tmp_path / "results").exists()
    assert "is there twice" in refused(capsys, "report", "a", "b")
    assert "is there twice" in refused(capsys, "figure", "a", "b")
    assert not (tmp_path / "report.html").exists()


def test_a_result_of_another_configuration_stays(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made(tmp_path / "a"), made(tmp_path / "b", agent={"kind": "Grasp", "width": 16})
    assert main(["export", "a"]) == 0
    before = contents(tmp_path / "results")
    assert "same name and another configuration" in refused(capsys, "export", "b")
    assert contents(tmp_path / "results") == before
    Run("a").append({"environment_steps": 30, "decisions": 30, "time/seconds": 9, "eval/return": 3})
    assert main(["export", "a"]) == 0  # the same run, gone on
    assert main(["export", "b", "--replace"]) == 0
    facts = json.loads((tmp_path / "results/dm_control/walker-walk/GA-4-seed0.json").read_text())
    assert facts["configuration"]["agent"]["width"] == 16


def test_runs_of_different_step_counts_are_said_in_one_sentence(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made(tmp_path / "runs" / "a"), made(tmp_path / "runs" / "b", (1.0, 2.0, 3.0), seed=1)
    for command in ("figure", "report"):
        assert main([command, "runs"]) == 0
        note = capsys.readouterr().err
        assert note.startswith("note: GA-4 on walker-walk: seeds end at 20 and 30 steps")
    assert note.count("\n") == 1
    last = (tmp_path / "runs" / "curves.csv").read_text().splitlines()[-1]
    assert last.startswith("walker-walk,GA-4,2,20,2.0")
    assert main(["report", "runs"]) == 0
    assert "seeds end at 20 and 30 steps" in (tmp_path / "report.html").read_text()


def test_gains_over_single_heads_are_read_from_the_histograms(tmp_path, capsys):
    table = tmp_path / "below" / "switching-histograms-small.csv"
    table.parent.mkdir()
    table.write_text("task,configuration,planned,head,alone\na,0,5,0,1\na,1,5,0,3\na,0,5,1,6\n")
    assert read_switching([tmp_path]) == {"a": {0: 3.0, 1: -1.0}}
    assert read_switching([table.parent]) == read_switching([tmp_path])
    assert "give their runs as well" in refused(capsys, "report", tmp_path)


def test_a_run_without_an_evaluation_is_refused(tmp_path, capsys):
    made(tmp_path / "a", scores=())
    assert "metrics.jsonl" in refused(capsys, "export", tmp_path / "a")
    Run(tmp_path / "a").append({"environment_steps": 1, "decisions": 1})
    assert "no evaluation yet" in refused(capsys, "export", tmp_path / "a")


def test_minutes_count_until_the_first_evaluation_that_returned_enough():
    def record(label, seed, returns, seconds, suite="dm_control"):
        curve = (np.array([1e4, 2e4, 3e4]), np.array(returns, float))
        facts = {} if seconds is None else {"seconds": seconds}
        return Record(suite, "walker-walk", label, seed, curve, False, facts, Path(label))

    records = [
        record("slow", 0, [0, 0, 800], [60, 600, 1200]),
        record("quick", 0, [0, 900, 700], [60, 120, 180]),
        record("quick", 1, [0, 10, 20], [60, 120, 180]),
        record("never", 0, [0, 10, 20], [60, 120, 180]),
        record("untimed", 0, [900, 900, 900], None),
    ]
    made_for_it = record("slow", 0, [0, 900, 900], [60, 600, 1200], suite="waiting")
    assert minutes_rows([*records, made_for_it]) == [
        ("walker-walk", "slow", "800", "1 of 1", "10.0", "20,000")
    ]
    assert minutes_rows(records) == [
        ("walker-walk", "quick", "800", "1 of 2", "2.0", "20,000"),
        ("walker-walk", "slow", "800", "1 of 1", "20.0", "30,000"),
        ("walker-walk", "never", "800", "0 of 1", "", ""),
    ]


def test_settings_stand_beside_the_default_seed_by_seed():
    def record(suite, task, label, seed, last):
        curve = (np.array([10, 20]), np.array([1000.0, last]))
        return Record(suite, task, label, seed, curve, False, {}, Path())

    names, rows = settings_table(
        [
            record("settings", "walker-walk", "GA-4-no-consistency", 0, 5.0),
            record("settings", "walker-walk", "GA-4", 0, 10.0),
            record("settings", "walker-walk", "GA-4", 1, 20.0),
            record("settings", "cheetah-run", "GA-4", 0, 7.0),
            record("dm_control", "walker-walk", "GA-4", 2, 99.0),  # made for another question
        ]
    )
    assert names == ("setting", "walker-walk", "cheetah-run")
    assert rows == [("GA-4", "15 (10, 20)", "7 (7)"), ("GA-4-no-consistency", "5 (5)", "")]
    assert settings_table([])[1] == []


def test_the_report_is_one_file_that_asks_nothing_of_a_network(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made(tmp_path / "runs" / "a", command="grasp train GA-4 --label '<b>'")
    assert main(["report", "runs", "--to", "out/page.html"]) == 0
    page = (tmp_path / "out" / "page.html").read_text()
    assert page.count("data:image/png;base64,") == 1
    assert "http" not in page
    assert "<b>" not in page
    assert "15 have not enough runs" in page
    assert "&quot;width&quot;: 8" in page
    assert main(["report", "runs", "--to", "page.md"]) == 0
    assert "| walker-walk | GA-4 | 1 | 20 | 2.0 |" in (tmp_path / "page.md").read_text()
    assert ".html or .md" in refused(capsys, "report", "runs", "--to", "page.pdf")
    assert "nothing to report" in refused(capsys, "report")


def test_suites_are_not_mixed_in_what_is_said_of_step_counts(tmp_path):
    for suite, seed, ends in (("dm_control", 0, 100), ("settings", 1, 50)):
        rows = [(end, end, 1.0, None) for end in (10, ends)]
        write_table(tmp_path / suite / "walker-walk" / f"GA-4-seed{seed}.csv", rows, {})
    assert notes(read_records([tmp_path])) == []
    write_table(tmp_path / "settings" / "walker-walk" / "GA-4-seed2.csv", rows[:1], {})
    assert len(notes(read_records([tmp_path]))) == 1


def test_claims_count_the_runs_of_the_papers_figures(tmp_path):
    for label, returned in (("GA-4-hard-targets", 2.0), ("GA-4-soft-targets", 1.0)):
        for suite in ("targets", "ablations"):
            name = f"{label}-seed0.csv"
            table = tmp_path / suite / "point_mass-easy" / name
            write_table(table, [(10, 10, returned, None), (20, 20, returned, None)], {})
    counted = paper_tasks(read_records([tmp_path / "targets"]))
    assert set(counted["point_mass-easy"]) == {"GA-4-hard-targets", "GA-4-soft-targets"}
    assert paper_tasks(read_records([tmp_path / "ablations"])) == {}
