"""The run directory, and the only file that knows its layout.

    config.json                task, agent, every hyper-parameter, version, command
    metrics.jsonl              the ground truth: one JSON object per logged moment
    events.out.tfevents.*      the same for TensorBoard
    checkpoints/step-D-E/      all that a run needs to go on after D decisions and E evaluations:
                               agent.safetensors, loop.safetensors, manifest.json
    checkpoints/replay/SHA-C   rows of the replay, named by their digest, in two copies C
    best/step-D-E/             the agent of the best evaluation
    curve.png                  return over environment steps

A checkpoint exists whole or not at all (`files.py`), is chosen by its step and never by a clock,
and the one before it is kept to fall back to. It names the configuration that it belongs to, the
replay segments that it needs and how far metrics.jsonl was written.
"""

import contextlib
import difflib
import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from grasp.configurations import completed, differences, lasting
from grasp.errors import CorruptCheckpoint, UsageError
from grasp.files import (
    Arrays,
    Facts,
    disk,
    packed,
    read_arrays,
    read_folder,
    read_manifest,
    read_stamped,
    stamp,
    unpacked,
    write_folder,
    write_whole,
)

RELEASED = Path(__file__).parent / "released"  # one folder per agent, made by `grasp release`
KEPT = 2  # checkpoints: the newest and the one to fall back to
_STEP = re.compile(r"step-(\d{12})(?:-(\d{6}))?")  # without evaluations in the first format


class Checkpoint(NamedTuple):
    folder: Path
    parts: dict[str, Arrays]
    facts: Facts
    problems: list[str]  # what is wrong with newer ones, which were passed over


class Run:
    """One run directory."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.config_file = self.path / "config.json"
        self.metrics_file = self.path / "metrics.jsonl"
        self.checkpoints = self.path / "checkpoints"
        self.segments = self.checkpoints / "replay"
        self.best = self.path / "best"
        self.curve = self.path / "curve.png"

    @classmethod
    def existing(cls, path: str | Path) -> "Run":
        """A run to read, or the released agent of a name; one sentence where there is none."""
        run, released = cls(path), released_names()
        if run.config_file.is_file():
            return run
        if str(path) in released:
            return cls(RELEASED / path)
        near = difflib.get_close_matches(str(path), released, n=1, cutoff=0.7)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UsageError(
            f"{run.path} is no run directory (it has no config.json) and no released agent; {hint}"
            "give the directory that `grasp train` printed, or a name that `grasp agents` lists"
        )

    @property
    def released(self) -> bool:
        """Whether it ships with the package, where nothing should be written."""
        return self.path.parent == RELEASED

    def config(self) -> Facts:
        try:
            config = json.loads(self.config_file.read_text())
        except (ValueError, OSError, RecursionError) as problem:
            raise CorruptCheckpoint(f"{self.config_file} is not JSON: {problem}") from None
        if not isinstance(config, dict):
            raise CorruptCheckpoint(f"{self.config_file} holds no configuration")
        return completed(config)

    def claim(self, config: Facts) -> None:
        """Write the configuration of a new run, or check that the run here has the same."""
        self._check_place()
        config = json.loads(json.dumps(config))
        if not self.config_file.exists():
            if any(not entry.name.startswith(".") for entry in self.path.glob("*")):
                raise UsageError(f"{self.path} holds other files; give another --run")
            with disk(self.path):
                self.path.mkdir(parents=True, exist_ok=True)
            write_whole(self.config_file, json.dumps(config, indent=2).encode())
            return
        there = self.config()
        other = differences(there, config)
        if other:
            raise UsageError(
                f"{self.path} belongs to another configuration ({'; '.join(other)}); "
                "repeat the first command to continue it, or give another --run"
            )
        if there | config != there:
            write_whole(self.config_file, json.dumps(there | config, indent=2).encode())

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the directory; a second run in it is refused at once, and a killed one leaves no
        lock behind, because the kernel holds it.
        """
        self._check_place()
        with disk(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            lock = (self.path / ".lock").open("a")
        with lock:
            self._take(lock.fileno())
            yield

    def refuse_if_locked(self) -> None:
        """The same refusal before anything is imported or made; a place where nothing can be holds
        no lock.
        """
        try:
            descriptor = os.open(self.path / ".lock", os.O_RDONLY)
        except (OSError, ValueError):
            return
        try:
            self._take(descriptor)
        finally:
            os.close(descriptor)

    def save(self, step: tuple[int, int], parts: dict[str, Arrays], facts: Facts) -> None:
        """Write the checkpoint of a step; the one before stays to fall back to."""
        facts = facts | {"step": list(step), "metrics": self._metrics_stamp()}
        facts["config"] = lasting(self.config())
        write_folder(self.checkpoints / _name(step), parts, facts)
        self._tidy()

    def save_best(self, step: tuple[int, int], arrays: Arrays, facts: Facts) -> None:
        facts = facts | {"step": list(step), "config": lasting(self.config())}
        write_folder(self.best / _name(step), {"agent": arrays}, facts)
        with disk(self.best):
            for old in _steps(self.best)[:-KEPT]:
                shutil.rmtree(old)

    def write_segment(self, rows: Arrays, copy: int = 0) -> Facts:
        """Keep rows of the replay; returns the mark that a checkpoint names them by. Copies of the
        same rows are files of their own.
        """
        content = packed(rows)
        mark = stamp(content) | {"copy": copy}
        path = self._segment(mark)
        with disk(path):
            self.segments.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
        return mark

    def read_segment(self, mark: Any) -> Arrays:
        path = self._segment(mark)
        return unpacked(path, read_stamped(path, {k: mark.get(k) for k in ("bytes", "sha256")}))

    def _segment(self, mark: Any) -> Path:
        digest = mark.get("sha256") if isinstance(mark, dict) else None
        if not re.fullmatch("[0-9a-f]{64}", str(digest)) or mark.get("copy") not in (0, 1):
            raise CorruptCheckpoint(f"{self.checkpoints}: {mark!r} is no segment of the replay")
        return self.segments / f"{digest}-{mark['copy']}"

    def latest(self) -> Checkpoint | None:
        """The newest checkpoint that is whole with all that it names, or None at the start."""
        return self._newest(self.checkpoints)

    def latest_best(self) -> Checkpoint | None:
        if (self.best / "manifest.json").exists():  # the first format
            arrays, facts = read_arrays(self.best)
            return Checkpoint(self.best, {"agent": arrays}, facts, [])
        return self._newest(self.best)

    def read(self, folder: Path) -> Checkpoint:
        """One checkpoint, refused if it is not what was written, or not of this run and step."""
        if (folder / "arrays.safetensors").exists():  # the first format
            arrays, facts = read_arrays(folder)
            return Checkpoint(folder, {"arrays": arrays}, facts, [])
        parts, facts = read_folder(folder)
        step = facts.get("step")
        if folder.name != (_name(step) if isinstance(step, list) and len(step) == 2 else None):
            raise CorruptCheckpoint(f"{folder} is the checkpoint of step {step}")
        other = differences(facts.get("config", {}), self.config())
        if other:
            raise CorruptCheckpoint(f"{folder} is not of {self.config_file}: {'; '.join(other)}")
        for mark in facts.get("segments", []):
            self.read_segment(mark)
        return Checkpoint(folder, parts, facts, [])

    def set_aside_after(self, folder: Path | None) -> None:
        """Before going on from a checkpoint, or from the start: newer ones, which are damaged, no
        longer count, and what a killed process was writing is removed.
        """
        with disk(self.checkpoints):
            for place in (self.path, self.checkpoints, self.segments, self.best):
                for left in place.glob(".tmp-*"):
                    shutil.rmtree(left) if left.is_dir() else left.unlink()
            for other in _steps(self.checkpoints):
                if folder is None or other.name > folder.name:
                    aside = other.with_name(f"damaged-{other.name}")
                    shutil.rmtree(aside, ignore_errors=True)
                    other.rename(aside)

    def append(self, row: Facts) -> None:
        with disk(self.metrics_file), self.metrics_file.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def metrics(self) -> list[Facts]:
        """All whole rows; a torn last line, as a killed process leaves it, is left out."""
        if not self.metrics_file.exists():
            return []
        rows = []
        for line in self.metrics_file.read_text(errors="replace").splitlines():
            with contextlib.suppress(json.JSONDecodeError):
                rows.append(json.loads(line))
        return [row for row in rows if isinstance(row, dict) and "decisions" in row]

    def cut_short(self) -> list[str]:
        """One sentence where metrics.jsonl ends in half a row, else none."""
        there = self.metrics_file.read_bytes() if self.metrics_file.exists() else b""
        if not there or there.endswith(b"\n"):
            return []
        return [
            f"the last row of {self.metrics_file} is only half there and is left out; repeat the "
            "run's command, which writes it anew"
        ]

    def metrics_are(self, mark: Any) -> bool:
        """Whether metrics.jsonl begins with what a checkpoint saw of it."""
        there = self.metrics_file.read_bytes() if self.metrics_file.exists() else b""
        return isinstance(mark, dict) and stamp(there[: mark["bytes"]]) == mark

    def cut_metrics(self, facts: Facts, decisions: int) -> list[str]:
        """Drop what was logged after the checkpoint that the run continues from; says so where the
        rows before it are not what was written.
        """
        if not self.metrics_file.exists() and not facts.get("metrics", {}).get("bytes"):
            return []
        if self.metrics_are(facts.get("metrics")):
            size = facts["metrics"]["bytes"]
            write_whole(self.metrics_file, self.metrics_file.read_bytes()[:size])
            return []
        rows = [row for row in self.metrics() if row["decisions"] <= decisions]
        write_whole(self.metrics_file, "".join(json.dumps(row) + "\n" for row in rows).encode())
        return [f"{self.metrics_file} is not what was written; {len(rows)} whole rows are kept"]

    def evaluations(self) -> list[Facts]:
        return [row for row in self.metrics() if "eval/return" in row]

    def folders(self) -> list[Path]:
        """All checkpoints and best agents, oldest first."""
        return _steps(self.checkpoints) + _steps(self.best)

    def _newest(self, place: Path) -> Checkpoint | None:
        problems: list[str] = []
        for folder in reversed(_steps(place)):
            try:
                return self.read(folder)._replace(problems=problems)
            except CorruptCheckpoint as problem:
                problems.append(str(problem))
        if problems:
            raise CorruptCheckpoint(f"no checkpoint of {self.path} is whole: {'; '.join(problems)}")
        return None

    def _tidy(self) -> None:
        """Keep the last checkpoints and the segments that they name."""
        with disk(self.checkpoints):
            for old in _steps(self.checkpoints)[:-KEPT]:
                shutil.rmtree(old)
            named = set()
            for folder in _steps(self.checkpoints):
                try:
                    marks = read_manifest(folder)["facts"].get("segments", [])
                except CorruptCheckpoint:
                    return  # what it names is not known, so nothing is removed
                named |= {self._segment(mark).name for mark in marks}
            for segment in self.segments.glob("*"):
                if segment.name not in named:
                    segment.unlink()

    def _metrics_stamp(self) -> Facts:
        if not self.metrics_file.exists():
            return stamp(b"")
        with disk(self.metrics_file), self.metrics_file.open("rb") as file:
            os.fsync(file.fileno())
            return stamp(file.read())

    def _check_place(self) -> None:
        if "\0" in str(self.path):
            raise UsageError(f"{str(self.path)!r} is no name for a folder; give another --run")
        for place in (self.path, *self.path.parents):
            try:
                is_file = place.exists() and not place.is_dir()
            except OSError as problem:  # a name too long, a folder that may not be entered
                raise UsageError(f"{place}: {problem.strerror}; give another --run") from None
            if is_file:
                raise UsageError(f"{place} is a file; give another --run")

    def _take(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(
                f"another process is running in {self.path}; wait for it or give another --run"
            ) from None


def released_names() -> list[str]:
    """The agents that ship with the package."""
    return sorted(file.parent.name for file in RELEASED.glob("[!.]*/config.json"))


def default_place(task: str, name: str, seed: int | str, runs: Path = Path("runs")) -> Path:
    """Where a run goes unless told otherwise, under a folder of runs."""
    return runs / f"{task}-{name}-seed{seed}".replace(":", "-").replace("/", "-")


def _name(step: Any) -> str:
    decisions, evaluations = step
    return f"step-{decisions:012d}-{evaluations:06d}"


def _steps(place: Path) -> list[Path]:
    """Checkpoints by step, oldest first."""
    return sorted(entry for entry in place.glob("step-*") if _STEP.fullmatch(entry.name))
