"""Sweeps: every run once, whatever is killed, and each what it would have been alone."""

import csv
import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from processes import LOOPBACK, below, kill, listeners

from grasp.__main__ import main
from grasp.errors import UsageError
from grasp.runs import Run
from grasp.sweeps import Job, Standing, digest, finished, product, read_table, run_jobs

TINY = [
    "--steps", "1200", "--evaluate-every", "400", "--evaluation-episodes", "2", "--log-every", "99",
    "--width", "8", "--batch", "8", "--warm-up", "40", "--num-envs", "1",
]  # fmt: skip


def sweep_command(runs, *further):
    return [
        "sweep", "--agents", "GA-1", "--tasks", "collect", "--seeds", "0", "1",
        "--runs", str(runs), *TINY, *further,
    ]  # fmt: skip


def rows_of(runs):
    with (runs / "sweep.csv").open() as lines:
        return list(csv.DictReader(lines))


def refusal(capsys, arguments):
    try:
        code = main(arguments)
    except SystemExit as exit_:  # the parser's own
        code = exit_.code
    error = capsys.readouterr().err
    assert code != 0
    assert "Traceback" not in error
    return error


def test_product_is_agents_by_tasks_by_seeds_by_values(tmp_path):
    flags = {"--width": ["8", "16"], "--steps": ["90"], "--no-layer-norm": []}
    jobs = product(["GA-4", "A-8"], ["walker-walk", "gym:Ant-v5"], [0, 3], flags, tmp_path)
    assert len(jobs) == len({job.run for job in jobs}) == 16
    assert jobs[1].run == tmp_path / "walker-walk-GA-4-width-16-seed0"
    assert jobs[1].label == "GA-4-width-16"
    assert jobs[1].flags == ("--width", "16", "--steps", "90", "--no-layer-norm")
    assert jobs[4].run.name == "gym-Ant-v5-GA-4-width-8-seed0"


def test_two_runs_with_one_name_are_refused(tmp_path):
    with pytest.raises(UsageError, match="two runs of this sweep are named walker-walk-GA-4-seed1"):
        product(["GA-4"], ["walker-walk"], [1, 2, 1], {}, tmp_path)


class Scripted:
    """Stands in for a start: exit codes by job, one after the other."""

    def __init__(self, codes, done):
        self.codes, self.done, self.started = codes, done, []

    def __call__(self, job):
        self.started.append(job.label)
        code = self.codes[job.label].pop(0)
        if code == 0:
            self.done.add(job.label)
        return Ended(code)


class Ended:
    def __init__(self, number):
        self.number = number

    def code(self):
        return self.number

    def said(self):
        return "the last line"

    def stop(self):
        raise AssertionError("nothing is left to stop")


def scripted(monkeypatch, tmp_path, codes, already=()):
    done = set(already)
    monkeypatch.setattr("grasp.sweeps.PATIENCE", 0)
    monkeypatch.setattr(
        "grasp.sweeps.finished",
        lambda job: Standing(5, 5, digest=job.label) if job.label in done else None,
    )
    start = Scripted(codes, done)
    jobs = [Job("GA-4", "walker-walk", 0, tmp_path / name, name) for name in codes]
    table = run_jobs(jobs, start, workers=2, retries=2, table_file=tmp_path / "sweep.csv")
    return start.started, {row.job.label: row for row in table}


def test_what_was_killed_is_started_again_and_what_was_refused_is_not(monkeypatch, tmp_path):
    codes = {"good": [0], "killed": [-9, 143, 0], "refused": [2, 0], "hopeless": [1, 1, 1, 0]}
    started, rows = scripted(monkeypatch, tmp_path, codes)
    assert {label: started.count(label) for label in codes} == {
        "good": 1, "killed": 3, "refused": 1, "hopeless": 3,
    }  # fmt: skip
    states = {label: row.state for label, row in rows.items()}
    assert states == {"good": "done", "killed": "done", "refused": "failed", "hopeless": "failed"}
    assert rows["refused"].problem == "exit code 2: the last line"
    written = {row["run"]: row for row in read_table(tmp_path / "sweep.csv")}
    assert (written["killed"]["state"], written["killed"]["starts"]) == ("done", "3")


def test_what_is_done_is_not_started(monkeypatch, tmp_path):
    started, rows = scripted(monkeypatch, tmp_path, {"a": [], "b": [0]}, already=["a"])
    assert started == ["b"]
    assert rows["a"].standing.digest == "a"


def test_the_table_keeps_the_runs_of_other_sweeps(monkeypatch, tmp_path):
    scripted(monkeypatch, tmp_path, {"a": [0]})
    scripted(monkeypatch, tmp_path, {"b": [0]})
    assert [row["run"] for row in read_table(tmp_path / "sweep.csv")] == ["a", "b"]


def test_an_exit_code_of_zero_without_the_last_step_is_no_success(monkeypatch, tmp_path):
    monkeypatch.setattr("grasp.sweeps.PATIENCE", 0)
    job = Job("GA-4", "walker-walk", 0, tmp_path / "a", "a", steps=10)
    (row,) = run_jobs([job], lambda job: Ended(0), workers=1, retries=1)
    assert (row.state, row.starts) == ("failed", 2)


@pytest.mark.parametrize(
    ("further", "hint"),
    [
        (["--widht", "9"], "--width"),
        (["--batch", "0"], "1 to 10,000"),
        (["--seed", "3"], "set by the sweep"),
        (["--workers", "0"], "--workers is 0"),
        (["--address", "auto"], "needs --on ray"),
        (["--on", "slurm"], "slurm"),
        (["--width", "9"], "given twice"),
    ],
)
def test_a_mistake_is_refused_before_any_run_starts(capsys, tmp_path, further, hint):
    base = sweep_command(tmp_path / "runs")
    if further[0] == "--batch":
        base = base[: base.index("--batch")]
    assert hint in refusal(capsys, [*base, *further])
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["--agents", "GA4", "--tasks", "walker-walk"], "did you mean GA-4"),
        (["--agents", "GA-4", "--tasks", "walker-wakl"], "did you mean walker-walk"),
        (["--agents", "GA-4"], "--tasks"),
        (["--agents", "GA-4", "--tasks", "walker-walk", "--seeds", "0", "0"], "two runs"),
    ],
)
def test_names_are_checked_first(capsys, tmp_path, monkeypatch, arguments, hint):
    monkeypatch.chdir(tmp_path)
    assert hint in refusal(capsys, ["sweep", *arguments])


def test_a_sweep_on_ray_without_ray_is_refused(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("grasp.cluster.importlib.util.find_spec", lambda name: None)
    assert "grasp-rl[ray]" in refusal(capsys, sweep_command(tmp_path / "runs", "--on", "ray"))
    assert not (tmp_path / "runs").exists()


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The same runs one by one, by `grasp train`: their digests and evaluations."""
    folder = tmp_path_factory.mktemp("alone")
    found = {}
    for seed in ("0", "1"):
        run = Run(folder / f"collect-GA-1-seed{seed}")
        command = ["train", "GA-1", "--task", "collect", "--seed", seed, "--run", str(run.path)]
        assert main([*command, *TINY]) == 0
        checkpoint = run.latest()
        assert checkpoint is not None
        found[run.path.name] = digest(checkpoint), evaluated(run)
    assert len({mine for mine, _ in found.values()}) == 2
    return found


def evaluated(run):
    return [(row["environment_steps"], row["eval/returns"]) for row in run.evaluations()]


def begun(command, runs, see=lambda pid: None):
    """Start a sweep and wait until a run has been evaluated and is not done."""
    driver = subprocess.Popen(
        [sys.executable, "-m", "grasp", *command], stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    deadline = time.monotonic() + 300
    while not any("eval/return" in f.read_text() for f in runs.glob("*/metrics.jsonl")):
        assert driver.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    see(driver.pid)
    return driver


def killed_at_once(driver):
    """Kill a driver and every process below it without warning; how many those were."""
    others = below(driver.pid)
    for pid in (driver.pid, *others):
        kill(pid)
    driver.wait()
    return len(others)


@pytest.mark.skipif(not os.path.isdir("/proc/net"), reason="finds processes in /proc")
@pytest.mark.parametrize("on", ["processes", "ray"])
def test_a_sweep_killed_in_the_middle_makes_every_run_once_and_the_same(
    tmp_path, alone, capsys, on
):
    if on == "ray" and importlib.util.find_spec("ray") is None:
        pytest.skip("ray is not installed")
    runs, heard = tmp_path / "runs", set()
    command = sweep_command(runs, "--workers", "2", "--on", on)
    driver = begun(command, runs, lambda pid: heard.update(listeners(pid)))
    assert killed_at_once(driver) >= 1
    assert heard <= LOOPBACK
    assert bool(heard) == (on == "ray")

    again = subprocess.run(
        [sys.executable, "-m", "grasp", *command], capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert (again.returncode, again.stdout) == (0, "2 of 2 runs are done\n"), again.stderr
    rows = rows_of(runs)
    assert {row["run"]: (row["digest"], evaluated(Run(runs / row["run"]))) for row in rows} == alone
    assert all(int(row["environment_steps"]) >= 1200 for row in rows)

    files = [runs / row["run"] / "metrics.jsonl" for row in rows]
    changed = [file.stat().st_mtime for file in files]
    assert main(sweep_command(runs)) == 0  # nothing is left to do, wherever
    assert [file.stat().st_mtime for file in files] == changed
    assert [row["starts"] for row in rows_of(runs)] == ["0"] * 2
    wider = [part if part != "8" else "9" for part in sweep_command(runs)]
    assert "another configuration" in refusal(capsys, wider)
    assert [file.stat().st_mtime for file in files] == changed
    assert finished(Job("GA-1", "collect", 0, runs / rows[0]["run"], "GA-1", steps=9999)) is None


@pytest.mark.skipif(not os.path.isdir("/proc/net"), reason="finds processes in /proc")
def test_runs_stop_when_their_sweep_is_killed(tmp_path):
    runs = tmp_path / "runs"
    long = [part if part != "1200" else "900000" for part in sweep_command(runs)]
    driver = begun([*long, "--workers", "1"], runs)
    (run,) = below(driver.pid)
    driver.kill()
    driver.wait()
    deadline = time.monotonic() + 60
    while Path(f"/proc/{run}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    checkpoint = Run(runs / "collect-GA-1-seed0").latest()
    assert checkpoint is not None  # it saved before it went
    assert "stopped by SIGTERM" in (runs / "collect-GA-1-seed0.log").read_text()
