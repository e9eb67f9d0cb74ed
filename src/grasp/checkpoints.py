"""What a checkpoint holds: gathered from a run under way, put back into it, and its digest.

    agent     parameters, targets, optimisers, normalisers, the counter to the next target copy
    loop      environments, returns of the episodes under way, where the replay's lanes stand
    segments  rows of the replay, written once and named by each checkpoint that needs them
    facts     counters, finished episodes and last metrics that the next row of the log will show

No generator is in it, because random numbers are a function of (seed, stream, counter), and no
option, because a decision is never interrupted.
"""

import hashlib
import itertools
import json
import os
from typing import Any, NamedTuple

import jax
import numpy as np

from grasp.cores import visible_cores
from grasp.environments.boundary import Boundary
from grasp.errors import CorruptCheckpoint, UsageError
from grasp.files import Arrays, Facts
from grasp.replay import Replay, ring_places
from grasp.runs import Checkpoint, Run

MOST_SEGMENTS = 32  # then all that are not large are written as one
LARGEST = 2**28  # bytes of a segment, about: a ring of images is never copied whole

# Counters that do not depend on how often a run was looked at, or how long it took.
LEARNING = ("decisions", "environment_steps", "updates", "episodes", "faults", "refused")


class Segment(NamedTuple):
    mark: Facts
    until: np.ndarray  # rows of each lane's run that it reaches to


class SavedReplay:
    """The replay on disk: a save writes the rows that are new.

    There are two copies, and saves take turns: a checkpoint and the one before it share no file, so
    that no damage can reach both.
    """

    def __init__(self, run: Run, replay: Replay):
        self.run, self.replay = run, replay
        self.copies: list[list[Segment]] = [[], []]
        self.turn = 0

    def save(self) -> list[Facts]:
        """Write what is new; returns the marks of all segments that hold the ring."""
        replay, segments = self.replay, self.copies[self.turn]
        oldest = replay.begun - replay.filled
        kept = [segment for segment in segments if (segment.until > oldest).any()]
        if len(kept) >= MOST_SEGMENTS:
            kept = list(itertools.takewhile(lambda s: s.mark["bytes"] > LARGEST // 2, kept))
        # The row under the cursor was not finished when it was written, so it comes again.
        until = np.maximum(kept[-1].until - 1 if kept else 0, oldest)
        most = max(LARGEST // replay.bytes_per_row // oldest.size, 1)
        while not kept or (until < replay.begun).any():
            since, until = until, np.minimum(until + most, replay.begun)
            mark = self.run.write_segment(replay.rows_between(since, until), self.turn)
            kept.append(Segment(mark, until))
        self.copies[self.turn] = kept
        marks = [segment.mark for segment in self.copies[self.turn]]
        self.turn = 1 - self.turn
        return marks

    def restore(self, marks: list[Facts], begun: np.ndarray) -> None:
        """Put the ring back; the next save begins the other copy anew."""
        for mark in marks:
            rows = self.run.read_segment(mark)
            self.replay.put_rows(rows)
            self.turn = mark["copy"]
            self.copies[self.turn].append(Segment(mark, rows["first"] + rows["count"]))
        self.turn = 1 - self.turn
        self.replay.stand_at(begun)


def world_arrays(worlds: list[Boundary]) -> Arrays:
    return {
        f"world/{lane}/{name}": value
        for lane, world in enumerate(worlds)
        for name, value in world.state().items()
    }


def put_back(worlds: list[Boundary], arrays: Arrays, replay: Replay) -> list[int]:
    """Put every environment back where it was; returns those for which that is not possible."""
    observations, goals = replay.current()
    return [
        lane
        for lane, world in enumerate(worlds)
        if not world.restore(under(arrays, f"world/{lane}/"), observations[lane], goals[lane])
    ]


def digest(checkpoint: Checkpoint, run: Run) -> str:
    """SHA-256 of all that learning depends on: equal for two runs exactly if they are in the same
    state, however often they were evaluated, logged, saved or interrupted.
    """
    counters = checkpoint.facts["counters"]
    sha = hashlib.sha256()
    for part in (checkpoint.parts["agent"], checkpoint.parts["loop"], ring(checkpoint, run)):
        for name in sorted(part):
            array = np.asarray(part[name])
            sha.update(f"{name} {array.dtype} {array.shape} ".encode())
            sha.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)  # not a copy
    sha.update(json.dumps({name: counters[name] for name in LEARNING}, sort_keys=True).encode())
    return sha.hexdigest()


def ring(checkpoint: Checkpoint, run: Run) -> Arrays:
    """The replay of a checkpoint as [lanes, rows, ...], by its segments."""
    rings: Arrays = {}
    for mark in checkpoint.facts["segments"]:
        rows = run.read_segment(mark)
        first, count = rows.pop("first"), rows.pop("count")
        places = ring_places(first, count, checkpoint.facts["rows"])
        for name, array in rows.items():
            shape = (count.size, checkpoint.facts["rows"], *array.shape[1:])
            empty = np.full(shape, name == "end", array.dtype)  # a row not begun starts nothing
            rings.setdefault(name, empty)[places] = array
    return rings


def machine() -> Facts:
    """What the bits of a run depend on beside its configuration."""
    cores = os.environ.get("PJRT_NPROC") or visible_cores()
    return {"jax": jax.__version__, "numpy": np.__version__, "threads": int(cores)}


def named_arrays(tree: Any) -> Arrays:
    """The arrays of a pytree by their path."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}


def restored_arrays(tree: Any, arrays: Arrays) -> Any:
    """The pytree with the arrays of a file in place of its own; shapes and types must agree."""

    def put(path: Any, leaf: Any) -> Any:
        name = jax.tree_util.keystr(path)
        found = arrays.get(name)
        if found is None or found.shape != leaf.shape or found.dtype != leaf.dtype:
            what = "missing" if found is None else f"{found.shape} of {found.dtype}"
            raise UsageError(
                f"the saved agent does not fit this version: {name} is {what} "
                f"and should be {leaf.shape} of {leaf.dtype}"
            )
        return jax.numpy.asarray(found)

    return jax.tree_util.tree_map_with_path(put, tree)


def agent_arrays(checkpoint: Checkpoint) -> Arrays:
    """The agent of a checkpoint, in today's format or in the first one."""
    if "agent" in checkpoint.parts:
        return checkpoint.parts["agent"]
    return under(checkpoint.parts["arrays"], "agent/")


def acting_arrays(arrays: Arrays, acts_with: tuple[str, ...], *, half: bool) -> Arrays:
    """The part of an agent that decisions depend on; its matrices at half precision if asked."""
    return {
        name: array.astype(np.float16) if half and array.ndim > 1 else array
        for name, array in arrays.items()
        if name.startswith(acts_with)
    }


def completed(start: Arrays, arrays: Arrays, acts_with: tuple[str, ...]) -> Arrays:
    """The inverse: at full precision, and with a fresh agent's arrays for the rest."""
    learning = {name: array for name, array in start.items() if not name.startswith(acts_with)}
    return learning | {
        name: array.astype(np.float32) if array.dtype == np.float16 else array
        for name, array in arrays.items()
    }


def check_resumable(checkpoint: Checkpoint) -> None:
    if not {"agent", "loop"} <= checkpoint.parts.keys():
        raise CorruptCheckpoint(
            f"{checkpoint.folder} is of an earlier format, which can be evaluated but not "
            "continued: give another --run"
        )


def under(arrays: Arrays, prefix: str) -> Arrays:
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
