"""The fault suite: what the library promises about runs, put to the test (docs/reliability.md).

    python tools/faults.py [--quick] [--only WORD] [--to results]

Writes faults.json, one row per promise {"promise", "tried", "held", "bar", "note"}, and faults.md.
Needs Linux; the full-disk rows need the right to mount a small disk and are left out without it.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("PJRT_NPROC", "1")  # the same bits on any number of cores

import fault_clocks
import fault_files
import fault_kills
import fault_sweeps
import fault_worlds
from fault_rows import Row

HEAD = """\
# Faults

What was done to runs on purpose, how often, and how often the promise held. `make faults` repeats
all of it and writes this page and `faults.json`; `make faults ONLY=kill` repeats the suites whose
name holds that word, and `.venv/bin/python tools/faults.py --quick --to FOLDER` is a form of
minutes. Seeds are fixed, the moments of kills are not. `docs/reliability.md` says what is promised.

| promise | tried | held | seen |
|---|---|---|---|
"""


def can_mount() -> bool:
    with tempfile.TemporaryDirectory() as place:
        mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place]
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            return False
        subprocess.run(["umount", place], check=True)
        return True


def suites(place: Path, quick: bool) -> dict[str, Callable[[], list[Row]]]:
    """Each suite by name; those that fork come before anything starts JAX's threads."""

    def count(full: int, short: int) -> int:
        return short if quick else full

    def kills(task: str, trials: int, agent: str) -> list[Row]:
        return fault_kills.kill_and_resume(place, task, trials, agent)

    disk = {
        "full-disk": lambda: [
            fault_files.full_disk(place, count(50, 5)), fault_files.read_only(place)
        ],
    }  # fmt: skip
    return {
        "saving": lambda: [fault_files.kills_while_saving(place, count(1_000, 30))],
        "damage": lambda: fault_files.damage(place, count(10_000, 300), count(1_000, 50)),
        **(disk if can_mount() else {}),
        "two-runs": lambda: fault_files.two_runs(place, count(100, 3)),
        "kill-many": lambda: kills("collect", count(100, 3), "drift"),
        "kill-state": lambda: kills("cartpole-swingup", count(10, 1), "drift"),
        "kill-actions": lambda: kills("gym:Pendulum-v1", count(10, 1), "drift"),
        "kill-options": lambda: kills("collect", count(10, 1), "GA-2"),
        "kill-goal": lambda: kills("reacher-easy", count(10, 1), "GA-2"),
        "sweep": lambda: fault_sweeps.sweep_on_ray(place, count(12, 3), count(5, 1), count(10, 2)),
        "clock": lambda: [fault_clocks.clock_jumps(place)],
        "bits": lambda: [fault_clocks.same_bits(place)],
        "signals": lambda: [fault_kills.signals(place, "cartpole-swingup", count(20, 2))],
        "numbers": lambda: [fault_worlds.bad_numbers(place, count(1_000, 70))],
        "raising": lambda: fault_worlds.raising(place, count(100_000, 3_000)),
        "items-options": lambda: fault_worlds.each_item_removed(place / "a", "collect"),
        "items-actions": lambda: fault_worlds.each_item_removed(place / "b", "gym:Pendulum-v1"),
        "lost": lambda: [fault_clocks.work_lost(place, count(300, 30))],
        "cost-checkpoints": lambda: [fault_clocks.saving_cost(place, count(10, 2))],
        "cost-deterministic": lambda: [fault_clocks.deterministic_cost(place, count(3, 1))],
        "fuzz": lambda: [fault_worlds.fuzzed_commands(count(10_000, 100))],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--to", type=Path, default=Path("results"))
    flags = parser.parse_args()
    table = flags.to / "faults.json"
    kept = json.loads(table.read_text()) if flags.only and table.exists() else []
    rows: dict[str, Row] = {row["promise"]: Row(**row) for row in kept}
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        named = suites(Path(folder), flags.quick)
        chosen = {name: suite for name, suite in named.items() if flags.only in name}
        if not chosen:
            parser.error(f"no part has {flags.only!r} in its name; parts: {', '.join(named)}")
        for name, suite in chosen.items():
            began = time.monotonic()
            for row in suite():
                rows[row.promise] = row
                failed |= row.held != row.tried
                print(f"{name}: {row.held}/{row.tried} {row.promise} ({row.note})", flush=True)
            print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)
            write(flags.to, list(rows.values()))
    return int(failed)


def write(folder: Path, rows: list[Row]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "faults.json").write_text(json.dumps([r._asdict() for r in rows], indent=2) + "\n")
    lines = [f"| {r.promise} | {r.tried:,} | {r.held:,} | {r.note} |\n" for r in rows]
    (folder / "faults.md").write_text(HEAD + "".join(lines))


if __name__ == "__main__":
    sys.exit(main())
