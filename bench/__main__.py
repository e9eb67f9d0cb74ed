"""`make bench`: every figure a ratio of two things that took turns in the same run.

    python bench [--quick] [--only PART ...] [--json FILE]

Prints a line per row as it is measured and writes all of them as JSON. `--quick` takes a fifth of
the turns; with `--only` the rows of the other parts stay in the file as they were.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import growth
import images
import plans
import replays
import starts
import throughput
import updates
from measure import Row
from peak import peak

PARTS = ("updates", "plans", "throughput", "replays", "images", "growth", "starts")
LATEST = Path(__file__).with_name("latest.json")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python bench", description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path, default=LATEST)
    flags = parser.parse_args()
    rows: dict[str, Row] = {}
    if flags.json.exists() and set(flags.only) != set(PARTS):
        rows = {row["name"]: Row(**row) for row in json.loads(flags.json.read_text())}
    for part in flags.only:
        for row in measured(part, flags.quick):
            print(row, flush=True)
            rows[row.name] = row
            everything = [row._asdict() for row in rows.values()]
            flags.json.write_text(json.dumps(everything, indent=1) + "\n")
    print(f"written to {flags.json}")


def measured(part: str, quick: bool) -> Iterator[Row]:
    """The rows of one part, as they come."""
    seconds = 2.0 if quick else 10.0
    parts: dict[str, Callable[[], list[Row]]] = {
        "throughput": lambda: throughput.rows(500 if quick else 2_000, 2 if quick else 3),
        "replays": lambda: replays.rows(seconds),
        "images": lambda: images.rows(seconds),
        "growth": lambda: growth.rows(seconds / 3),
        "starts": starts.rows,
    }
    if part == "updates":
        best, timings = peak(seconds)
        for name, timing in timings.items():
            speed = 2e-9 * int(name.split()[1]) ** 3 / timing.median
            yield Row(f"matrix product, {name}", speed, None, "GFLOP/s", higher_is_better=True)
        for width in updates.BARS:
            yield from updates.rows(width, best, seconds)
    elif part == "plans":
        for width, batch in ((128, 1), (128, 64), (512, 1), (512, 64)):
            yield from plans.rows(width, batch, 2 * seconds)
        yield from plans.literal_rows(128, seconds)
    else:
        yield from parts[part]()


if __name__ == "__main__":
    main()
