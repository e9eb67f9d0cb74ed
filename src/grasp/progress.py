"""What a person sees of a run: a line that moves in a terminal, plain lines elsewhere."""

import sys
import time
from types import TracebackType
from typing import TypeVar

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from grasp.evaluation import Episode
from grasp.files import Facts
from grasp.sweeps import Progress

PLAIN_SECONDS = 30.0  # between plain lines, where there is no terminal


Shown = TypeVar("Shown", bound="_Shown")


class _Shown:
    """Something that moves where there is a terminal, from its beginning to its end."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._live = Live(console=self._console, auto_refresh=False)

    def __enter__(self: Shown) -> Shown:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()


class ProgressLine(_Shown):
    """Steps, speed, last evaluation, time left, and whether the heads are alive."""

    def __init__(self, steps: int):
        super().__init__()
        self.steps = steps
        self._began: tuple[float, int] | None = None  # time and steps at the first row
        self._evaluations: dict[int | None, str] = {}  # the last of each seed; None of a lone one
        self._heads = ""
        self._printed = -PLAIN_SECONDS

    def __enter__(self) -> "ProgressLine":
        super().__enter__()
        if self._console.is_terminal:
            self._live.update(Text("starting: making environments, compiling ..."), refresh=True)
        else:
            print("starting: making environments, compiling ...", file=sys.stderr, flush=True)
        return self

    def show(self, row: Facts) -> None:
        """Take in one row of the log."""
        now, steps = time.monotonic(), row["environment_steps"]
        if self._began is None:
            self._began = (now, steps)
        if "resumed" in row:
            seed = f"seed {row['seed']}, " if "seed" in row else ""
            self._print(f"{seed}continuing at step {steps:,}")
            for note in row.get("notes", []):
                self._print(f"grasp: {note}")
            return
        if "eval/return" in row:
            score = f"{row['eval/return']:.1f}"
            if "eval/success" in row:
                score = f"{row['eval/success']:.0%} success"
            self._evaluations[row.get("seed")] = f"{score} at {steps:,}"
        if "affordances/head_spread" in row:
            self._heads = (
                f"heads {row['affordances/head_spread']:.2f} apart, "
                f"Q spread {row['planner/q_spread']:.3g}, "
                f"entropy {row['planner/entropy']:.2f}, "
                f"saturated {row['affordances/saturated']:.0%}"
            )
        text = self._text(now, steps)
        if self._console.is_terminal:
            self._live.update(Text(text), refresh=True)
        elif "eval/return" in row or now - self._printed > PLAIN_SECONDS:
            self._printed = now
            self._print(text)

    def _text(self, now: float, steps: int) -> str:
        assert self._began is not None  # set by show
        seconds, done = now - self._began[0], steps - self._began[1]
        speed = done / seconds if seconds > 0 and done else 0.0
        left = _duration((self.steps - steps) / speed) if speed else "?"
        share = steps / self.steps
        said = [
            last if seed is None else f"of seed {seed} {last}"
            for seed, last in sorted(self._evaluations.items(), key=str)
        ]
        return (
            f"{share:4.0%}  {steps:,}/{self.steps:,} steps  {speed:.0f}/s  {left} left  "
            f"evaluation {', '.join(said) or 'none yet'}  {self._heads}"
        )

    def _print(self, text: str) -> None:
        if self._console.is_terminal:
            self._console.print(text)
        else:
            print(text, file=sys.stderr, flush=True)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


class CountLine(_Shown):
    """How many of something are done."""

    def __init__(self, what: str, total: int):
        super().__init__()
        self.what, self.total = what, total
        self._printed = time.monotonic()

    def show(self, done: int) -> None:
        line = f"{done:,} of {self.total:,} {self.what}"
        if self._console.is_terminal:
            self._live.update(Text(line), refresh=True)
        elif time.monotonic() - self._printed > PLAIN_SECONDS:
            self._printed = time.monotonic()
            print(line, file=sys.stderr, flush=True)


def episode_line(episode: Episode) -> None:
    """One line per finished episode."""
    success = "" if episode.success is None else f"  success {episode.success}"
    print(
        f"episode from seed {episode.seed}: return {episode.returned:.1f} "
        f"in {episode.environment_steps} steps{success}",
        file=sys.stderr,
        flush=True,
    )


class SweepTable(_Shown):
    """The runs of a sweep: a table that moves in a terminal, a line per change elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[str, str] = {}
        self._printed = time.monotonic()

    def show(self, rows: list[Progress]) -> None:
        if self._console.is_terminal:
            self._live.update(_table(rows), refresh=True)
            return
        late = time.monotonic() - self._printed > PLAIN_SECONDS
        for row in rows:
            if self._said.get(row.job.run.name) != row.state or (late and row.state == "running"):
                self._said[row.job.run.name] = row.state
                self._printed = time.monotonic()
                print(f"{row.state:<8} {row.job.run.name}  {_far(row)}", file=sys.stderr)


def _far(row: Progress) -> str:
    """How far a run is and what it scores."""
    now = row.standing
    if row.state == "failed":
        return row.problem
    score = "" if now.returned is None else f"  return {now.returned:.4g}"
    if now.success is not None:
        score = f"  success {now.success:.0%}"
    again = f"  start {row.starts}" if row.starts > 1 else ""
    return f"{now.environment_steps:,}/{row.job.steps:,} steps{score}{again}"


def _table(rows: list[Progress]) -> Table:
    """What moves first, then what waits, what is done last; as many as a screen holds."""
    order = {"running": 0, "failed": 1, "waiting": 2, "done": 3}
    counts = {state: sum(row.state == state for row in rows) for state in order}
    said = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    table = Table("run", "state", "progress", title=said)
    for row in sorted(rows, key=lambda row: order[row.state])[:20]:
        table.add_row(row.job.run.name, row.state, _far(row))
    return table
