"""`make bench`: every figure a ratio of two things that took turns in the same run.

    python bench [--quick] [--only updates plans throughput replays growth] [--json FILE]

Prints a table and writes the same as JSON. `--quick` takes a fifth of the turns.
"""

import argparse
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

import growth
import plans
import replays
import throughput
import updates
from peak import peak

PARTS = ("updates", "plans", "throughput", "replays", "growth")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python bench", description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path, default=Path("results/bench.json"))
    flags = parser.parse_args()
    seconds = 2.0 if flags.quick else 10.0
    found: dict[str, Any] = json.loads(flags.json.read_text()) if flags.json.exists() else {}
    found["machine"] = {"cores": os.cpu_count(), "processor": platform.machine()}
    best, timings = peak(seconds)
    found["peak_gflops"] = best / 1e9
    say(f"peak of matrix products: {best / 1e9:.0f} GFLOP/s ({', '.join(timings)})")
    run = {
        "updates": lambda: [_updated(width, best, seconds) for width in (128, 256, 512)],
        "plans": lambda: _plans(seconds),
        "throughput": lambda: _throughput(flags.quick),
        "replays": lambda: _replays(seconds),
        "growth": lambda: _growth(seconds / 3),
    }
    for part in flags.only:
        found[part] = run[part]()
        flags.json.parent.mkdir(parents=True, exist_ok=True)
        flags.json.write_text(json.dumps(found, indent=1) + "\n")
    say(f"written to {flags.json}")


def say(line: str) -> None:
    print(line, flush=True)


def _updated(width: int, best: float, seconds: float) -> dict[str, Any]:
    row = updates.compare(width, best, seconds)
    peer = (
        f"{row['pytorch_over_ours']:.2f}x eager PyTorch ({row['pytorch_ms']:.0f} ms)"
        if "pytorch_over_ours" in row
        else "PyTorch not installed"
    )
    say(
        f"update, width {width}: {row['ours_ms']:.0f} ms, {peer}, "
        f"{row['share_of_peak']:.0%} of peak on {row['gflop']:.0f} GFLOP"
    )
    return row


def _plans(seconds: float) -> list[dict[str, Any]]:
    rows = []
    for width, batch in ((128, 1), (512, 1), (512, 64)):
        for row in plans.compare(width, batch, 2 * seconds):
            peers = [f"{v:.2f}x {k[:-10]}" for k, v in row.items() if k.endswith("_over_ours")]
            say(
                f"plan, {row['plan']}, width {width}, batch {batch}: {row['ours_ms']:.2f} ms"
                + "".join(f", {peer}" for peer in peers)
            )
            rows.append(row)
    row = plans.literal_uct(128, seconds)
    say(f"plan, UCT-50 D 3, width 128, batch 1: {row['literal_over_ours']:.0f}x literal Python")
    return [*rows, row]


def _throughput(quick: bool) -> dict[str, Any]:
    found = throughput.compare(steps=500 if quick else 2_000, rounds=1 if quick else 3)
    for name, speed in found["steps_per_second"].items():
        say(f"training, {name}: {speed:.0f} environment steps/s")
    for name, ratio in found["ratios"].items():
        say(f"training, {name}: {ratio:.2f}x")
    return found


def _replays(seconds: float) -> dict[str, Any]:
    found = replays.compare(seconds) | {"world": replays.world()}
    for name, value in found["microseconds"].items():
        say(f"replay, 256 of 200,000, {name}: {value:.0f} us")
    say(f"world alone, {found['world']['task']}: {found['world']['steps_per_second']:.0f} steps/s")
    return found


def _growth(seconds: float) -> list[dict[str, Any]]:
    rows = growth.rows(seconds)
    for row in rows:
        say(f"growth, {row['what']} {row['value']}: {row['ms']:.1f} ms, {row['peak_memory_mb']} MB")
    return rows


if __name__ == "__main__":
    sys.exit(main())
