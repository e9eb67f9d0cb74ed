"""What the fault suites share: a row of results, and a run small enough to be killed often."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from grasp.runs import Run


class Row(NamedTuple):
    """One promise: how often it was put to the test and how often it held."""

    promise: str
    tried: int
    held: int
    bar: str
    note: str = ""  # where the faults fell, and what else was seen


def train_small(path: Path, task: Any, **settings: Any) -> None:
    """A run of seconds that does all that a long one does."""
    import grasp
    from grasp.agents.grasp import Grasp

    agent = Grasp(
        num_affordances=2, width=8, batch=8, window=2, warm_up=50, replay_capacity=400,
        updates_per_call=2, decisions_per_update=2,
    )  # fmt: skip
    usual = {
        "steps": 600, "num_envs": 1, "evaluate_every": 300, "evaluation_episodes": 1,
        "log_every": 50, "save_seconds": 0.1, "deterministic": True,
    }  # fmt: skip
    grasp.train(agent, task, run=path, label="GA-2", **(usual | settings))


def in_child(work: Callable[[], None]) -> int:
    """Fork, so that a start costs no imports; returns the child's process id. The child's exit code
    is that of the command.
    """
    child = os.fork()
    if child:
        return child
    try:
        from grasp.errors import GraspError

        try:
            work()
        except GraspError as problem:
            print(f"grasp: {problem}", flush=True)
            os._exit(problem.exit_code)
        os._exit(0)
    finally:
        os._exit(1)


def ending(path: Path) -> tuple[str, list[dict[str, Any]]]:
    """Digest and log, the latter without its time fields."""
    from grasp.checkpoints import digest

    run = Run(path)
    checkpoint = run.latest()
    assert checkpoint is not None, f"{path} has no checkpoint"
    rows = [
        {name: value for name, value in row.items() if not name.startswith("time/")}
        for row in run.metrics()
    ]
    return digest(checkpoint, run), rows
