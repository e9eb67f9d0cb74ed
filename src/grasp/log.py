"""Where a run's numbers go: metrics.jsonl (the ground truth), TensorBoard, W&B if asked for, and a
progress line.
"""

import importlib.util
import time
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np

from grasp.errors import UsageError
from grasp.files import Facts, disk
from grasp.runs import Run


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
        self.run = run
        self._events = Events(run)
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
        self._events.add(_scalars(row), progress.environment_steps)
        if self._wandb is not None:
            self._wandb.log(_scalars(row), step=progress.environment_steps)
        self._show(row)

    def resumed(self, progress: Progress, notes: list[str]) -> None:
        """Say that a run goes on, and what was not as it should be."""
        self._events.forget_after(progress.environment_steps)
        self._show(
            {"resumed": True, "environment_steps": progress.environment_steps, "notes": notes}
        )

    def close(self) -> None:
        self._events.close()
        if self._wandb is not None:
            self._wandb.finish()


class Events:
    """TensorBoard's file, written row by row in this thread, so that a full disk is noticed."""

    def __init__(self, run: Run):
        from tensorboardX.event_file_writer import EventsWriter
        from tensorboardX.proto import event_pb2

        messages: Any = event_pb2  # generated, without types
        self._event, self._path = messages.Event, run.path
        with disk(self._path):
            self._writer = EventsWriter(str(run.path / "events"))

    def add(self, scalars: dict[str, float], step: int) -> None:
        values = [{"tag": tag, "simple_value": value} for tag, value in scalars.items()]
        self._write(step=step, summary={"value": values})

    def forget_after(self, step: int) -> None:
        """What a killed process logged after the checkpoint no longer counts."""
        self._write(step=step, file_version="brain.Event:2")
        self._write(step=step + 1, session_log={"status": "START"})

    def close(self) -> None:
        with disk(self._path):
            self._writer.close()

    def _write(self, **fields: Any) -> None:
        with disk(self._path):
            self._writer.write_event(self._event(wall_time=time.time(), **fields))
            self._writer.flush()


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
