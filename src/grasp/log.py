"""Where a run's numbers go: metrics.jsonl (the ground truth), TensorBoard, W&B if asked for, and a
progress line.
"""

import importlib.util
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np

from grasp.errors import UsageError
from grasp.runs import Facts, Run


@runtime_checkable
class Progress(Protocol):
    decisions: int
    environment_steps: int
    updates: int
    seconds: float


class Log:
    """One row of numbers at a time, to every place."""

    def __init__(
        self,
        run: Run,
        *,
        wandb: bool = False,
        show: Callable[[Facts], None] = lambda row: None,
    ):
        from tensorboardX import SummaryWriter

        self.run = run
        self._events = SummaryWriter(str(run.path), flush_secs=10)
        self._wandb = _start_wandb(run) if wandb else None
        self._show = show

    def add(self, progress: Progress, row: Facts) -> None:
        row = {
            "decisions": progress.decisions,
            "environment_steps": progress.environment_steps,
            "updates": progress.updates,
            "time/seconds": round(progress.seconds, 3),
            "time/steps_per_second": round(
                progress.environment_steps / max(progress.seconds, 1e-9), 2
            ),
        } | row
        self.run.append(row)
        for name, value in _scalars(row).items():
            self._events.add_scalar(name, value, progress.environment_steps)
        if self._wandb is not None:
            self._wandb.log(_scalars(row), step=progress.environment_steps)
        self._show(row)

    def resumed(self, progress: Progress) -> None:
        self._show({"resumed": True, "environment_steps": progress.environment_steps})

    def close(self) -> None:
        self._events.close()
        if self._wandb is not None:
            self._wandb.finish()


def _scalars(row: Facts) -> dict[str, float]:
    """Plain numbers by tag; a list or dictionary becomes one tag per entry."""
    scalars: dict[str, float] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            scalars |= {f"{name}/{key}": part for key, part in value.items()}
        elif isinstance(value, list):
            scalars |= {f"{name}/{index}": part for index, part in enumerate(value)}
        elif np.isscalar(value) and "/" in name:
            scalars[name] = float(value)  # type: ignore[arg-type]  # a number, by isscalar
    return scalars


def check_wandb() -> None:
    """Refuse before anything is written."""
    if importlib.util.find_spec("wandb") is None:
        raise UsageError(
            "--wandb needs the package wandb; install it with pip install 'grasp-rl[wandb]'"
        )


def _start_wandb(run: Run) -> Any:
    import wandb  # type: ignore[import-not-found]  # optional

    return wandb.init(project="grasp", name=run.path.name, config=run.config(), resume="allow")
