"""The run directory, and the only file that knows its layout.

    config.json            task, agent, every hyper-parameter, version, command
    metrics.jsonl          the ground truth: one JSON object per logged moment
    events.out.tfevents.*  the same for TensorBoard
    checkpoints/step-N/    everything a run needs to go on: arrays.safetensors, manifest.json
    best/                  the agent of the best evaluation, same files without the replay
    curve.png              return over environment steps

A checkpoint is written beside its place, flushed to disk and renamed, so it exists whole or not at
all; the manifest carries the SHA-256 of its arrays, and nothing is ever unpickled. Checkpoints are
chosen by their step.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from grasp.errors import CorruptCheckpoint, UsageError

Arrays = dict[str, np.ndarray]
Facts = dict[str, Any]  # what JSON can hold

MAY_CHANGE = ("command", "version", "steps", "log_every", "wandb")  # between starts of one run


class Run:
    """One run directory."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.config_file = self.path / "config.json"
        self.metrics_file = self.path / "metrics.jsonl"
        self.best = self.path / "best"
        self.curve = self.path / "curve.png"

    @classmethod
    def existing(cls, path: str | Path) -> "Run":
        """A run to read; refused in one sentence where there is none."""
        run = cls(path)
        if not run.config_file.is_file():
            raise UsageError(
                f"{run.path} is no run directory (it has no config.json); "
                "give the directory that `grasp train` printed"
            )
        return run

    def config(self) -> Facts:
        try:
            return json.loads(self.config_file.read_text())
        except json.JSONDecodeError as problem:
            raise CorruptCheckpoint(f"{self.config_file} is not JSON: {problem}") from None

    def claim(self, config: Facts) -> None:
        """Write the configuration of a new run, or check that the run here has the same."""
        if self.path.exists() and not self.path.is_dir():
            raise UsageError(f"{self.path} is a file; give another --run")
        if not self.config_file.exists():
            if any(entry.name != ".lock" for entry in self.path.glob("*")):
                raise UsageError(f"{self.path} holds other files; give another --run")
            self.path.mkdir(parents=True, exist_ok=True)
            _write_whole(self.config_file, json.dumps(config, indent=2).encode())
            return
        there = self.config()
        flat_there, flat_here = _flat(there), _flat(json.loads(json.dumps(config)))
        other = [
            f"{name} is {flat_there.get(name)!r} there and {flat_here.get(name)!r} here"
            for name in sorted(flat_there.keys() | flat_here.keys())
            if name not in MAY_CHANGE and flat_there.get(name) != flat_here.get(name)
        ]
        if other:
            raise UsageError(
                f"{self.path} belongs to another configuration ({'; '.join(other)}); "
                "repeat the first command to continue it, or give another --run"
            )
        _write_whole(self.config_file, json.dumps(there | config, indent=2).encode())

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the directory; a second run in it is refused at once, and a killed one leaves no
        lock behind.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise UsageError(
                    f"another process is running in {self.path}; wait for it or give another --run"
                ) from None
            yield

    def save(self, step: int, arrays: Arrays, facts: Facts) -> None:
        """Write the checkpoint of a step; the one before stays as a fallback."""
        write_arrays(self.path / "checkpoints" / f"step-{step:012d}", arrays, facts)
        for old in self._checkpoints()[:-2]:
            shutil.rmtree(old)

    def latest(self) -> tuple[Arrays, Facts] | None:
        """The newest checkpoint that is whole, or None at the start."""
        problems = []
        for folder in reversed(self._checkpoints()):
            try:
                return read_arrays(folder)
            except CorruptCheckpoint as problem:
                problems.append(str(problem))
        if problems:
            raise CorruptCheckpoint(f"no checkpoint of {self.path} is whole: {'; '.join(problems)}")
        return None

    def append(self, row: Facts) -> None:
        with self.metrics_file.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def metrics(self) -> list[Facts]:
        """All whole rows; a torn last line, as a killed process leaves it, is left out."""
        if not self.metrics_file.exists():
            return []
        rows = []
        for line in self.metrics_file.read_text().splitlines():
            with contextlib.suppress(json.JSONDecodeError):
                rows.append(json.loads(line))
        return rows

    def forget_after(self, decisions: int) -> None:
        """Drop what was logged after the checkpoint that the run continues from."""
        rows = [row for row in self.metrics() if row["decisions"] <= decisions]
        _write_whole(self.metrics_file, "".join(json.dumps(row) + "\n" for row in rows).encode())

    def evaluations(self) -> list[Facts]:
        return [row for row in self.metrics() if "eval/return" in row]

    def _checkpoints(self) -> list[Path]:
        return sorted((self.path / "checkpoints").glob("step-*"))


def write_arrays(folder: Path, arrays: Arrays, facts: Facts) -> None:
    """Arrays and facts as one directory that appears whole."""
    beside = folder.with_name(f".tmp-{folder.name}-{os.getpid()}")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    content = save_arrays({name: np.asarray(array, order="C") for name, array in arrays.items()})
    _write(beside / "arrays.safetensors", content)
    manifest = {"sha256": hashlib.sha256(content).hexdigest(), "facts": facts}
    _write(beside / "manifest.json", json.dumps(manifest).encode())
    _flush_directory(beside)
    if folder.exists():
        shutil.rmtree(folder)
    beside.rename(folder)
    _flush_directory(folder.parent)


def read_arrays(folder: Path) -> tuple[Arrays, Facts]:
    try:
        manifest = json.loads((folder / "manifest.json").read_text())
        content = (folder / "arrays.safetensors").read_bytes()
        if hashlib.sha256(content).hexdigest() != manifest["sha256"]:
            raise CorruptCheckpoint(f"{folder} is damaged: arrays.safetensors has another SHA-256")
        return load_arrays(content), manifest["facts"]
    except (OSError, ValueError, KeyError) as problem:
        raise CorruptCheckpoint(f"{folder} cannot be read: {problem}") from None


def _flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _write_whole(path: Path, content: bytes) -> None:
    beside = path.with_name(f".tmp-{path.name}-{os.getpid()}")
    _write(beside, content)
    beside.rename(path)
    _flush_directory(path.parent)


def _flush_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
