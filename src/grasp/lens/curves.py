"""The curves of a run, thinned for a page; the run may still be going on."""

import math
import time
from typing import Any

from grasp.runs import Facts, Run

Points = list[list[float | int]]  # environment steps, and one number or one per head

MOST_POINTS = 600
SCALARS = (
    "eval/return",
    "eval/success",
    "rollout/return",
    "rollout/success",
    "affordances/head_spread",
    "affordances/saturated",
    "planner/q_spread",
    "planner/entropy",
    "planner/value",
    "train/value_loss",
    "train/reward_loss",
)


def curves(run: Run) -> dict[str, Any]:
    """Each curve as [environment steps, number] pairs, `chosen` with one number per head."""
    rows = run.metrics()
    found = {name: _thinned(_pairs(rows, name)) for name in SCALARS}
    chosen = [
        [row["environment_steps"], *row["affordances/chosen"]]
        for row in rows
        if row.get("affordances/chosen")
    ]
    last = rows[-1] if rows else {}
    age = time.time() - run.metrics_file.stat().st_mtime if run.metrics_file.exists() else None
    return {
        "curves": {name: pairs for name, pairs in found.items() if pairs},
        "chosen": _thinned(chosen),
        "environment_steps": last.get("environment_steps", 0),
        "decisions": last.get("decisions", 0),
        "steps": run.config().get("steps"),
        "age": age,  # seconds since the last row
    }


def _pairs(rows: list[Facts], name: str) -> Points:
    return [
        [row["environment_steps"], row[name]]
        for row in rows
        if isinstance(row.get(name), int | float) and math.isfinite(row[name])
    ]


def _thinned(points: Points) -> Points:
    """At most `MOST_POINTS` of the points, the last among them."""
    every = -(-len(points) // MOST_POINTS) or 1
    return points[::-1][::every][::-1]
