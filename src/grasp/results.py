"""Finished runs as small files that are committed, and curves read back from files or run
directories.

    results/<suite>/<task>/<agent>-seed<k>.csv   one row per evaluation
    results/<suite>/<task>/<agent>-seed<k>.json  how it was made
"""

import csv
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from grasp.configurations import differences
from grasp.environments import PIXELS, suite_of
from grasp.errors import CorruptCheckpoint, UsageError
from grasp.files import Facts
from grasp.runs import Run
from grasp.statistics import Curve, uneven

HEADER = ("environment_steps", "decisions", "return", "success")


class Record(NamedTuple):
    """The evaluations of one run, wherever they were read."""

    suite: str
    task: str
    label: str  # the agent's
    seed: int
    curve: Curve  # of success where the task has it, else of returns
    has_success: bool
    facts: Facts  # how it was made
    source: Path


def write_results(
    runs: Sequence[Run], folder: Path, *, suite: str | None = None, replace: bool = False
) -> list[Path]:
    """One CSV per run with one row per evaluation, and beside it how it was made; nothing is
    written if two runs share a name or a file holds another run's rows. `suite` is the folder for
    them in place of their tasks' own.
    """
    if suite is not None and (suite != Path(suite).name or suite in ("", "..")):
        raise UsageError(f"suite is {suite!r}; it is the name of one folder, as in settings")
    places: dict[Path, Run] = {}
    for run in runs:
        rows, config = whole_evaluations(run), run.config()
        if not rows:
            raise UsageError(f"{run.path} has no evaluation yet; nothing to export")
        table = _place(config, folder, suite)
        if table in places:
            raise UsageError(
                f"{places[table].path} and {run.path} would both be written to {table}; "
                "export one of them, or train with another --label or --seed"
            )
        if not replace:
            _refuse_other(table, config, run)
        places[table] = run
    for table, run in places.items():
        _write(table, run)
    return list(places)


def _place(config: Facts, folder: Path, suite: str | None) -> Path:
    task = config["task"]
    name = task.rpartition(":")[2].replace("/", "-")
    return folder / (suite or suite_of(task)) / name / f"{config['name']}-seed{config['seed']}.csv"


def _task(suite: str, folder: str) -> str:
    """The task of a folder of results; from pixels it is another one than from features."""
    return f"{PIXELS}{folder}" if suite == "pixels" else folder


def _refuse_other(table: Path, config: Facts, run: Run) -> None:
    """A file that another configuration made stays."""
    beside = table.with_suffix(".json")
    if not table.exists() or not beside.exists():
        return
    if differences(_json(beside).get("configuration", {}), json.loads(json.dumps(config))):
        raise UsageError(
            f"{table} holds a run with the same name and another configuration than {run.path}; "
            "export to another folder, or give --replace"
        )


def _write(table: Path, run: Run) -> None:
    evaluations, config = run.evaluations(), run.config()
    facts = {
        "command": config["command"],
        "version": config["version"],
        "hours": round(evaluations[-1]["time/seconds"] / 3600, 3),
        "seconds": [round(row["time/seconds"]) for row in evaluations],
        "evaluation_episodes": config["evaluation_episodes"],
        "action_repeat": config.get("sight", {}).get("action_repeat", 1),
        "heads": _last_heads(run),
        "configuration": config,
    }
    rows = [
        (row["environment_steps"], row["decisions"], row["eval/return"], row.get("eval/success"))
        for row in evaluations
    ]
    write_table(table, rows, facts)


def write_table(
    table: Path, rows: Sequence[tuple[int, int, float | int, float | int | None]], facts: Facts
) -> None:
    """Evaluations (steps, decisions, return, success if any), and beside them how they were got."""
    table.parent.mkdir(parents=True, exist_ok=True)
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        for steps, decisions, returned, success in rows:
            writer.writerow(
                [steps, decisions, round(returned, 3), "" if success is None else success]
            )
    table.with_suffix(".json").write_text(json.dumps(facts, indent=2) + "\n")


def _last_heads(run: Run) -> Facts:
    """Whether the heads were alive at the end of the run."""
    names = ("affordances/", "planner/")
    rows = [row for row in run.metrics() if "affordances/head_spread" in row]
    return (
        {name: value for name, value in rows[-1].items() if name.startswith(names)} if rows else {}
    )


def whole_evaluations(run: Run) -> list[Facts]:
    """The evaluations of a run; a line cut short is accepted at the end, where a killed process
    leaves it, and refused elsewhere.
    """
    if not run.metrics_file.exists():
        raise UsageError(f"{run.path} has no metrics.jsonl; the run has not begun: train it first")
    lines = run.metrics_file.read_text().splitlines()
    for number, line in enumerate(lines[:-1], 1):
        try:
            json.loads(line)
        except json.JSONDecodeError:
            raise CorruptCheckpoint(
                f"line {number} of {run.metrics_file} is only half there; "
                "repeat the run's command, which mends the file from its checkpoint"
            ) from None
    return run.evaluations()


def read_records(paths: Iterable[Path]) -> list[Record]:
    """All runs under the given paths: run directories, folders of them, or result files."""
    records: list[Record] = []
    for path in paths:
        if not path.exists():
            raise UsageError(f"{path} is not there; give run directories or a results folder")
        found = [_of_run(Run(config.parent)) for config in _configs(path)]
        found += [_of_file(file) for file in _tables(path)]
        if not found and not _histograms(path):
            raise UsageError(
                f"{path} holds no run directory and no <suite>/<task>/<agent>-seed<k>.csv"
            )
        records += found
    seen: dict[tuple[str, str, str, int], Record] = {}
    for record in records:
        key = (record.suite, record.task, record.label, record.seed)
        if key in seen:
            raise UsageError(
                f"{record.label} on {record.task} with seed {record.seed} is there twice: "
                f"{seen[key].source} and {record.source}; give one of them"
            )
        seen[key] = record
    return sorted(records, key=lambda record: (record.suite, record.task, record.label))


def _configs(path: Path) -> list[Path]:
    if (path / "config.json").is_file():
        return [path / "config.json"]
    return sorted(path.glob("*/config.json"))


def _tables(path: Path) -> list[Path]:
    if path.suffix == ".csv":
        return [path]
    return sorted(file for depth in ("", "*/", "*/*/") for file in path.glob(f"{depth}*-seed*.csv"))


def _of_run(run: Run) -> Record:
    rows, config = whole_evaluations(run), run.config()
    if not rows:
        raise UsageError(f"{run.path} has no evaluation yet; train it on, or leave it out")
    success = "eval/success" in rows[-1]
    steps = np.array([float(row["environment_steps"]) for row in rows])
    scores = np.array([float(row["eval/success" if success else "eval/return"]) for row in rows])
    seconds = [row["time/seconds"] for row in rows]
    facts = {"command": config["command"], "hours": seconds[-1] / 3600, "seconds": seconds}
    facts |= {"configuration": config, "evaluation_episodes": config["evaluation_episodes"]}
    place = _place(config, Path(), None)
    return Record(
        place.parts[0], _task(place.parts[0], place.parent.name), config["name"], config["seed"],
        (steps, scores), success, facts, run.path,
    )  # fmt: skip


def _of_file(file: Path) -> Record:
    curve, success = read_curve(file)
    label, _, seed = file.stem.rpartition("-seed")
    if not seed.isdigit():
        raise UsageError(f"{file} does not end in -seed<k>.csv; rename it so")
    beside = file.with_suffix(".json")
    facts = _json(beside) if beside.exists() else {}
    folder = file.resolve().parent
    suite = folder.parent.name
    task = _task(suite, folder.name)
    return Record(suite, task, label, int(seed), curve, success, facts, file)


def read_curve(file: Path) -> tuple[Curve, bool]:
    """The curve of a result file, and whether it is of success."""
    with file.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    try:
        steps = np.array([float(row["environment_steps"]) for row in rows])
        scores = np.array([float(row["success"] or row["return"]) for row in rows])
        if not rows or not np.isfinite([steps, scores]).all():
            raise ValueError("no finite rows")
    except (KeyError, ValueError, TypeError) as problem:
        raise CorruptCheckpoint(
            f"{file} is no whole result file ({problem}); export its run again"
        ) from None
    return (steps, scores), bool(rows[0]["success"])


def read_switching(paths: Iterable[Path]) -> dict[str, dict[int, float]]:
    """Task, then head: the mean of what planning earned beyond that head alone, from the numbers
    beside the histograms of `grasp reproduce switching-histograms`.
    """
    found: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for file in (file for path in paths for file in _histograms(path)):
        with file.open(newline="") as lines:
            for row in csv.DictReader(lines):
                difference = float(row["planned"]) - float(row["alone"])
                found[row["task"]][int(row["head"])].append(difference)
    return {
        task: {head: float(np.mean(values)) for head, values in heads.items()}
        for task, heads in found.items()
    }


def _histograms(path: Path) -> list[Path]:
    return sorted(path.rglob("switching-histograms*.csv"))


def by_task(records: Iterable[Record]) -> dict[str, dict[str, list[Curve]]]:
    """The curves of each agent on each task, one per seed."""
    found: dict[str, dict[str, list[Curve]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        found[record.task][record.label].append(record.curve)
    return {task: dict(agents) for task, agents in found.items()}


def notes(records: Sequence[Record]) -> list[str]:
    """What to know of the curves before reading them: agents whose seeds end at different steps,
    and runs whose last row is left out.
    """
    suites = {record.suite: [r for r in records if r.suite == record.suite] for record in records}
    found = [by_task(of_suite).items() for of_suite in suites.values()]
    lengths = [uneven(agents, task) for tasks in found for task, agents in tasks]
    rows = [Run(record.source).cut_short() for record in records if record.source.is_dir()]
    return [sentence for found in lengths + rows for sentence in found]


def _json(file: Path) -> Facts:
    try:
        return json.loads(file.read_text())
    except json.JSONDecodeError as problem:
        raise CorruptCheckpoint(f"{file} is not JSON: {problem}") from None
