"""Finished runs as small files that are committed: results/<suite>/<task>/<agent>-seed<k>.csv and
.json.
"""

import csv
import json
from pathlib import Path

from grasp.environments import suite_of
from grasp.errors import UsageError
from grasp.files import Facts
from grasp.runs import Run

HEADER = ("environment_steps", "decisions", "return", "success")


def write_results(run: Run, folder: Path) -> Path:
    """One row per evaluation, and beside it how it was made; returns the CSV's path."""
    evaluations, config = run.evaluations(), run.config()
    if not evaluations:
        raise UsageError(f"{run.path} has no evaluation yet; nothing to export")
    task = config["task"]
    place = folder / suite_of(task) / task.partition(":")[2 if ":" in task else 0].replace("/", "-")
    place.mkdir(parents=True, exist_ok=True)
    table = place / f"{config['name']}-seed{config['seed']}.csv"
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        for row in evaluations:
            success = row.get("eval/success", "")
            writer.writerow(
                [row["environment_steps"], row["decisions"], round(row["eval/return"], 3), success]
            )
    facts = {
        "command": config["command"],
        "version": config["version"],
        "hours": round(evaluations[-1]["time/seconds"] / 3600, 3),
        "evaluation_episodes": config["evaluation_episodes"],
        "action_repeat": 1,
        "heads": _last_heads(run),
        "configuration": config,
    }
    table.with_suffix(".json").write_text(json.dumps(facts, indent=2) + "\n")
    return table


def _last_heads(run: Run) -> Facts:
    """Whether the heads were alive at the end of the run."""
    names = ("affordances/", "planner/")
    rows = [row for row in run.metrics() if "affordances/head_spread" in row]
    return (
        {name: value for name, value in rows[-1].items() if name.startswith(names)} if rows else {}
    )
