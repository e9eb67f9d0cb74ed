"""Replay: a ring of decisions per environment, read as windows of n (Algorithm 1, "sample a
sequence").

Every observation is stored once, of a stack of images only the newest: the others are those of the
rows before it, and the first of the episode where it has no more. An episode of T decisions takes
T + 1 rows of its environment's lane; the last row holds the final observation and starts no
decision (`end`). The row under the cursor is always such a row, so the newest and the oldest data
in the ring never join.

    row      t          t+1        t+2 (end)   | t+3 ...
    holds    x_t a_t r  x_t+1 a r  x_t+2       | first observation of the next episode

A window that runs past its episode's end is padded (choice 10): reward 0, duration 0, the final
observation repeated. After termination the padding is the truth about an absorbing state and counts
(`valid`); after truncation it does not.

A row changes only while it is under the cursor, so a checkpoint writes the rows since the last one
(`rows_between`), and putting those segments back in order gives the ring (`put_rows`). Segments
know their place by the number of rows that a lane had begun before them, over the whole run.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Real

from grasp.errors import CorruptCheckpoint, UsageError


class Window(NamedTuple):
    """B windows of n decisions, of numpy on the host and of JAX in an update."""

    observations: Real[Any, "B states observation"]  # states = n + 1
    goals: Float[Any, "B states goal"]
    actions: Float[Any, "B n action"]
    rewards: Float[Any, "B n"]
    durations: Float[Any, "B n"]  # 0 where padded, so that gamma^0 = 1 passes values through
    valid: Bool[Any, "B n"]
    terminated: Bool[Any, " B"]  # the episode ended for good inside the window: bootstrap with 0

    def beginning(self, count: int) -> "Window":
        """The first decisions of each window."""
        over = (self.durations[:, count:] == 0).all(axis=1)  # [B] the episode ended before
        return Window(
            observations=self.observations[:, : count + 1],
            goals=self.goals[:, : count + 1],
            actions=self.actions[:, :count],
            rewards=self.rewards[:, :count],
            durations=self.durations[:, :count],
            valid=self.valid[:, :count],
            terminated=self.terminated & over,
        )

    def split(self, parts: int) -> "Window":
        """The same windows as [parts, B / parts, ...], for several updates in one call."""
        return Window(*(leaf.reshape(parts, len(leaf) // parts, *leaf.shape[1:]) for leaf in self))


class Replay:
    """Ring buffers of `capacity` rows in all, one lane per environment.

    An observation is a `stack` of frames laid end to end, the oldest first.
    """

    def __init__(
        self,
        *,
        capacity: int,
        lanes: int,
        observation_size: int,
        goal_size: int,
        action_size: int,
        stack: int = 1,
        observation_type: type[np.generic] = np.float32,
    ):
        self.stack = stack
        self.rows = capacity // lanes
        if self.rows < 3:
            raise UsageError(
                f"replay capacity {capacity} for {lanes} environments leaves {self.rows} rows "
                f"each; give at least {3 * lanes}"
            )
        shape = (lanes, self.rows)
        frame = observation_size // stack
        self.observations = np.zeros((*shape, frame), observation_type)  # the newest frames
        self.goals = np.zeros((*shape, goal_size), np.float32)
        self.actions = np.zeros((*shape, action_size), np.float32)
        self.rewards = np.zeros(shape, np.float32)
        self.durations = np.zeros(shape, np.float32)
        self.terminated = np.zeros(shape, bool)
        self.end = np.ones(shape, bool)
        self.begun = np.zeros(lanes, np.int64)  # rows of each lane over the whole run
        self.cursors = np.zeros(lanes, np.int64)  # the row of each lane's current observation
        self.filled = np.zeros(lanes, np.int64)  # rows in use, the cursor's included

    def __len__(self) -> int:
        """Decisions that a window can start from."""
        return int(np.sum(~self.end))

    def begin(self, lane: int, observation: np.ndarray, goal: np.ndarray) -> None:
        """Open an episode with its first observation."""
        if self.filled[lane]:
            self._advance(lane)
        else:
            self.begun[lane] = self.filled[lane] = 1
        self._observe(lane, observation, goal)

    def add(
        self,
        lane: int,
        *,
        action: np.ndarray,
        reward: float,
        duration: int,
        terminated: bool,
        observation: np.ndarray,
        goal: np.ndarray,
    ) -> None:
        """Store the decision taken at the current observation, and what was observed after it."""
        row = self.cursors[lane]
        self.actions[lane, row] = action
        self.rewards[lane, row] = reward
        self.durations[lane, row] = duration
        self.terminated[lane, row] = terminated
        self._advance(lane)
        self._observe(lane, observation, goal)
        self.end[lane, row] = False

    def sample(
        self, batch: int, length: int, random: np.random.Generator, rewarded_share: float = 0.0
    ) -> Window:
        """`batch` windows of `length` decisions: `rewarded_share` of them hold a reward other than
        0, if any is stored, and the others start uniformly over all stored decisions.
        """
        lanes, starts = self._starts(batch, random)
        count = round(batch * rewarded_share)
        if count:
            chosen = random.permutation(batch)[:count]  # an update takes a part of the batch
            found = self._rewarded_starts(count, length, random)
            if found is not None:
                lanes[chosen], starts[chosen] = found
        return self.windows(lanes, starts, length)

    def windows(self, lanes: np.ndarray, starts: np.ndarray, length: int) -> Window:
        columns, at = np.arange(length + 1), lanes[:, None]
        steps = (starts[:, None] + columns) % self.rows  # [B, n+1]
        end = self._of(self.end, at, steps[:, :-1])
        past = np.logical_or.accumulate(end, axis=1)  # [B, n] padded decisions
        taken = length - past.sum(axis=1)  # [B] decisions before the padding
        # Where each column's observation is found: its own row, or the episode's final one.
        rows = (starts[:, None] + np.minimum(columns, taken[:, None])) % self.rows
        before = (starts + np.maximum(taken - 1, 0)) % self.rows
        terminated = self._of(self.terminated, lanes, before)  # [B] an episode's last decision
        decided = steps[:, :-1]  # past the end: whatever rows follow
        return Window(
            observations=self._stacked(at, rows),
            goals=self._of(self.goals, at, rows),
            actions=self._of(self.actions, at, decided),
            rewards=np.where(past, 0, self._of(self.rewards, at, decided)),
            durations=np.where(past, 0, self._of(self.durations, at, decided)),
            valid=~past | terminated[:, None],
            terminated=terminated,
        )

    def current(self) -> tuple[np.ndarray, np.ndarray]:
        """The newest observation and goal of every lane."""
        lanes = np.arange(len(self.cursors))
        return self._stacked(lanes, self.cursors), self.goals[lanes, self.cursors]

    def state(self) -> dict[str, np.ndarray]:
        """All rows in use, and where the lanes stand."""
        used = int(self.filled.max(initial=0))
        rings = {name: array[:, :used] for name, array in self._rings().items()}
        return rings | {"begun": self.begun}

    def rows_between(self, since: np.ndarray, until: np.ndarray) -> dict[str, np.ndarray]:
        """The rows of each lane from its `since`-th of the run up to its `until`-th, or as many of
        them as are still there.
        """
        first = np.maximum(since, self.begun - self.filled)
        count = np.maximum(until - first, 0)
        at = ring_places(first, count, self.rows)
        rows = {name: array[at] for name, array in self._rings().items()}
        return rows | {"first": first, "count": count}

    @property
    def bytes_per_row(self) -> int:
        rings = self._rings().values()
        return sum(ring.nbytes for ring in rings) // (self.begun.size * self.rows)

    def put_rows(self, rows: dict[str, np.ndarray]) -> None:
        """Put back what `rows_between` gave; segments are put back in the order they were made."""
        first, count = rows["first"], rows["count"]
        if not (first.shape == count.shape == self.begun.shape and (count >= 0).all()):
            raise CorruptCheckpoint(f"the saved replay is not of {self.begun.size} environments")
        at = ring_places(first, count, self.rows)
        for name, array in self._rings().items():
            expected = (int(count.sum()), *array.shape[2:])
            if rows[name].shape != expected or rows[name].dtype != array.dtype:
                raise CorruptCheckpoint(
                    f"the saved replay has {name} {rows[name].shape} of {rows[name].dtype}; "
                    f"this run needs {expected} of {array.dtype}"
                )
            array[at] = rows[name]

    def stand_at(self, begun: np.ndarray) -> None:
        """Put the cursors of all lanes where they were after `begun` rows."""
        if begun.shape != self.begun.shape or (begun < 0).any():
            raise CorruptCheckpoint(f"the saved replay is not of {self.begun.size} environments")
        self.begun[:] = begun
        self.cursors[:] = np.maximum(begun - 1, 0) % self.rows
        self.filled[:] = np.minimum(begun, self.rows)

    def _stacked(self, lanes: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The observations at some rows [..., observation]. What the ring has lost of an episode's
        beginning is taken as its first frame that is left.
        """
        if self.stack == 1:
            return self._of(self.observations, lanes, rows)
        back = [np.broadcast_to(rows, np.broadcast_shapes(lanes.shape, rows.shape))]
        for _ in range(self.stack - 1):
            previous = (back[-1] - 1) % self.rows
            back.append(np.where(self._of(self.end, lanes, previous), back[-1], previous))
        frames = self._of(self.observations, lanes[..., None], np.stack(back[::-1], axis=-1))
        return frames.reshape(*frames.shape[:-2], -1)  # [..., stack, frame] end to end

    def _of(self, ring: np.ndarray, lanes: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """ring[lanes, rows], which numpy does faster with one index than with two."""
        end_to_end = ring.reshape(ring.shape[0] * self.rows, *ring.shape[2:])
        return end_to_end.take(lanes * self.rows + rows, axis=0)

    def _rings(self) -> dict[str, np.ndarray]:
        return {
            name: array
            for name, array in vars(self).items()
            if isinstance(array, np.ndarray) and array.ndim > 1
        }

    def _starts(self, batch: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Uniform over decisions: draw rows, and draw again those that start none."""
        total = self.filled.cumsum()
        before = total - self.filled  # rows of the lanes before each
        lanes = np.zeros(batch, np.int64)
        starts = np.zeros(batch, np.int64)
        missing = np.arange(batch)
        while missing.size:
            drawn = random.integers(max(total[-1], 1), size=missing.size)
            lanes[missing] = lane = np.searchsorted(total[:-1], drawn, side="right")
            starts[missing] = start = drawn - before[lane]
            none_here = self._of(self.end, lane, start)
            if none_here.all() and self.end.all():
                raise ValueError("nothing to sample: no decision has been stored yet")
            missing = missing[none_here]
        return lanes, starts

    def _rewarded_starts(
        self, count: int, length: int, random: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Starts from 0 to `length` - 1 decisions before a reward, within its episode."""
        lanes, rows = np.nonzero((self.rewards != 0) & ~self.end)
        if not rows.size:
            return None
        drawn = random.integers(rows.size, size=count)
        lanes, starts = lanes[drawn], rows[drawn]
        before = random.integers(length, size=count)
        for step in range(length - 1):
            previous = (starts - 1) % self.rows
            goes_back = (step < before) & ~self.end[lanes, previous]
            starts = np.where(goes_back, previous, starts)
        return lanes, starts

    def _advance(self, lane: int) -> None:
        self.begun[lane] += 1
        self.cursors[lane] = (self.cursors[lane] + 1) % self.rows
        self.filled[lane] = min(self.filled[lane] + 1, self.rows)

    def _observe(self, lane: int, observation: np.ndarray, goal: np.ndarray) -> None:
        row = self.cursors[lane]
        self.observations[lane, row] = observation[-self.observations.shape[-1] :]
        self.goals[lane, row] = goal
        self.end[lane, row] = True


def ring_places(first: np.ndarray, count: np.ndarray, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Lane and row in rings of `rows` rows of the `count` rows from the `first` of each lane."""
    lanes = np.repeat(np.arange(count.size), count)
    offsets = np.arange(lanes.size) - np.repeat(count.cumsum() - count, count)
    return lanes, (np.repeat(first, count) + offsets) % rows
