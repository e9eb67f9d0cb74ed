"""Trained agents that ship with the package: grasp release makes one of a run, grasp agents lists
them.

A released agent is a run directory like any other, with one checkpoint, which holds what acting
needs and a card: what was trained, for how long, and the score of the very file that ships.
"""

import dataclasses
import datetime
import json
import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tyro

import grasp
from grasp.command_line import parse, prepare_jax
from grasp.errors import CorruptCheckpoint, UsageError
from grasp.files import Facts, disk
from grasp.runs import RELEASED, Run, default_place, released_names

if TYPE_CHECKING:
    from grasp.evaluation import Episode
    from grasp.session import LoadedAgent

ROWS = 120  # of metrics.jsonl at most, for the curves of the Lens
HEADER = ("agent", "score", "episodes", "steps", "decisions", "hours", "size")


def release(arguments: list[str]) -> int:
    @dataclasses.dataclass(frozen=True)
    class Release:
        """Make a released agent of a run: only what acting needs, at half precision if the score
        holds, with a SHA-256 and a card.
        """

        run: tyro.conf.Positional[Path]  # run directory
        to: Path = RELEASED  # folder of released agents; the package's own unless given
        name: str | None = None  # TASK-LABEL unless given
        episodes: int = 1_000  # to measure the score by
        which: Literal["last", "best"] = "last"  # the last agent, or that of the best evaluation
        replace: bool = False  # write over an agent of the same name

    flags = parse(Release, "grasp release", arguments)
    if flags.episodes < 1:
        raise UsageError(f"--episodes is {flags.episodes}; it must be at least 1")
    run = Run.existing(flags.run)
    config = run.config()
    usual = default_place(config["task"], config["name"], config["seed"]).name.rpartition("-")[0]
    place = flags.to / (flags.name or usual)
    if place.exists() and not flags.replace:
        raise UsageError(f"{place} is there already; give another --name, or --replace")
    prepare_jax()
    card = write_release(run, place, flags.episodes, flags.which)
    print(f"{line(card)}; {size(place):,} bytes in {place}")
    return 0


def agents(arguments: list[str]) -> int:
    @dataclasses.dataclass(frozen=True)
    class Agents:
        """List the trained agents that came with the package, or show the card of one."""

        name: tyro.conf.Positional[str] = ""  # one of them; all unless given
        json: bool = False  # print their cards as one JSON object

    flags = parse(Agents, "grasp agents", arguments)
    if flags.name:
        print(json.dumps(card_of(Run.existing(flags.name)), indent=2))
        return 0
    found = {name: card_of(Run(RELEASED / name)) for name in released_names()}
    if flags.json:
        print(json.dumps(found))
        return 0
    rows = [HEADER, *(row(card, size(RELEASED / name)) for name, card in found.items())]
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for cells in rows:
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)))
    print("grasp evaluate NAME, grasp look NAME, grasp lens NAME; grasp.load(NAME) in Python")
    return 0


def write_release(
    run: Run, place: Path, episodes: int, which: Literal["last", "best"] = "last"
) -> Facts:
    """Write the released agent of a run and return its card.

    Both agents play the same starts. Half precision holds unless it returns less by more than two
    standard errors of the difference.
    """
    from grasp.session import load

    trained = load(run.path, which)
    before = trained.evaluate(episodes)
    card = card_of_run(run, trained, place.name, which) | {"as_trained": scored(before)}
    beside = place.with_name(f".tmp-{place.name}")
    try:
        _write(beside, run, trained, card, half=True)
        after = load(beside).evaluate(episodes)
        half = holds(before, after)
        card |= scored(after if half else before) | {"stored": "float16" if half else "float32"}
        _write(beside, run, trained, card, half=half)
        with disk(place):
            shutil.rmtree(place, ignore_errors=True)
            beside.rename(place)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return card


def card_of_run(run: Run, agent: "LoadedAgent", name: str, which: str) -> Facts:
    """What is known before any episode is played."""
    from grasp.checkpoints import acting_arrays, named_arrays

    config, rows = run.config(), run.metrics()
    if not rows:
        raise UsageError(f"{run.path} has no metrics.jsonl, so nothing is known of its training")
    at = max(run.evaluations(), key=lambda row: row["eval/return"]) if which == "best" else rows[-1]
    kept = acting_arrays(
        named_arrays(agent.compiled.arrays), agent.compiled.agent.acts_with, half=False
    )
    return {
        "name": name,
        "task": config["task"],
        "agent": config["name"],
        "seed": config["seed"],
        "command": config["command"],
        "trained_by": config["version"],
        "released_by": grasp.__version__,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "environment_steps": at["environment_steps"],
        "decisions": at["decisions"],
        "hours": round(at["time/seconds"] / 3600, 3),
        "parameters": sum(array.size for array in kept.values()),
    }


def scored(episodes: "Sequence[Episode]") -> Facts:
    """Greedy episodes as a card says them."""
    from grasp.evaluation import score

    found = score(episodes)
    return {
        "episodes": found.episodes,
        "return": round(found.mean, 4),
        "deviation": round(found.deviation, 4),
        "success": found.success,
    }


def holds(before: "Sequence[Episode]", after: "Sequence[Episode]") -> bool:
    changes = [new.returned - old.returned for old, new in zip(before, after, strict=True)]
    mean, count = math.fsum(changes) / len(changes), len(changes)
    deviation = math.sqrt(math.fsum((change - mean) ** 2 for change in changes) / count)
    return mean >= -2 * deviation / math.sqrt(count)


def card_of(run: Run) -> Facts:
    """The card of a released agent, whose files are checked on the way."""
    checkpoint = run.latest()
    card: Any = checkpoint.facts.get("card") if checkpoint else None
    if not isinstance(card, dict):
        raise CorruptCheckpoint(f"{run.path} is no released agent: it has no card")
    return card


def line(card: Facts) -> str:
    """A card as a sentence."""
    return (
        f"{card['name']}: {_points(card)} in {card['episodes']:,} greedy episodes after "
        f"{card['environment_steps']:,} steps, {card['decisions']:,} decisions and "
        f"{card['hours']:.2f} hours of `{card['command']}`"
    )


def row(card: Facts, bytes_: int) -> tuple[str, ...]:
    """A card as a row under `HEADER`."""
    return (
        card["name"], _points(card), f"{card['episodes']:,}", f"{card['environment_steps']:,}",
        f"{card['decisions']:,}", f"{card['hours']:.2f}", f"{bytes_ / 1e6:.2f} MB",
    )  # fmt: skip


def size(place: Path) -> int:
    """Bytes of all files of a folder."""
    return sum(file.stat().st_size for file in place.rglob("*") if file.is_file())


def _points(card: Facts) -> str:
    won = card["success"]
    return f"return {card['return']:.4g}" if won is None else f"success {won:.1%}"


def _write(place: Path, run: Run, agent: "LoadedAgent", card: Facts, half: bool) -> None:
    from grasp.checkpoints import acting_arrays, named_arrays

    with disk(place):
        shutil.rmtree(place, ignore_errors=True)
    made, arrays = Run(place), named_arrays(agent.compiled.arrays)
    made.claim(run.config())
    for logged in _thinned(run.metrics()):
        made.append(logged)
    kept = acting_arrays(arrays, agent.compiled.agent.acts_with, half=half)
    made.save((card["decisions"], 0), {"agent": kept}, {"card": card})


def _thinned(rows: list[Facts]) -> list[Facts]:
    """Evaluations, some of the rows between them, and of each what a curve shows."""
    moments: dict[int, Facts] = {}  # a run may have logged one twice when it ended
    for row in rows:
        moments[row["environment_steps"]] = moments.get(row["environment_steps"], {}) | row
    every = -(-len(moments) // ROWS)
    kept = [r for i, r in enumerate(moments.values()) if i % every == 0 or "eval/return" in r]
    return [{k: _short(v) for k, v in row.items() if k != "eval/returns"} for row in kept]


def _short(value: Any) -> Any:
    if isinstance(value, list):
        return [_short(part) for part in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value
