"""Dreamer beside us: sheeprl's, on the same task, image size, action repeat and steps.

    make dreamer TASK=walker-walk STEPS=100000

Runs in a virtual environment of its own (.venv-dreamer), because sheeprl asks for numpy < 2, and
imports nothing of grasp. What it logs becomes results/pixels/<task>/Dreamer-seed<k>.csv and .json,
in the layout of `grasp export`. Its returns are those of training episodes, which are sampled and
not greedy; the .json says so.
"""

import argparse
import csv
import importlib.metadata
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

HEADER = ("environment_steps", "decisions", "return", "success")
RETURNS = "Rewards/rew_avg"  # sheeprl's tag
SIZE = 64
REPEAT = 2


class Logged(NamedTuple):
    decisions: int
    returned: float  # mean of the training episodes since the row before
    seconds: float  # since the first of all that was logged


def command(
    task: str,
    version: str,
    size: str,
    steps: int,
    seed: int,
    folder: Path,
    replay_ratio: float | None = None,
) -> list[str]:
    """What sheeprl is told; its steps are decisions."""
    domain, _, rest = task.rpartition("-")
    told = {
        "exp": f"dreamer_{version}",
        "algo": f"dreamer_{version}_{size}" if version == "v3" else f"dreamer_{version}",
        "env": "dmc",
        # The task is the wrapper's; `env.id` would only name the run.
        "env.wrapper.domain_name": domain,
        "env.wrapper.task_name": rest,
        "env.wrapper.from_vectors": False,
        "env.num_envs": 1,
        "env.action_repeat": REPEAT,
        "env.screen_size": SIZE,
        "env.sync_env": True,
        "env.capture_video": False,
        "algo.total_steps": steps // REPEAT,
        "algo.learning_starts": 1024,
        "algo.cnn_keys.encoder": "[rgb]",
        "algo.cnn_keys.decoder": "[rgb]",
        "algo.mlp_keys.encoder": "[]",
        "algo.mlp_keys.decoder": "[]",
        "algo.run_test": False,
        "buffer.size": steps // REPEAT,
        "buffer.memmap": False,
        "buffer.checkpoint": False,
        "checkpoint.every": steps,
        "fabric.accelerator": "cpu",
        "metric.log_every": 1000,
        "seed": seed,
        "root_dir": str(folder.resolve()),
        "run_name": named(task, seed),
    }
    if replay_ratio is not None:
        told["algo.replay_ratio"] = replay_ratio
    return [sys.executable, "-m", "sheeprl", *(f"{name}={value}" for name, value in told.items())]


def named(task: str, seed: int) -> str:
    """The folder of one run's log."""
    return f"{task}-seed{seed}"


def logged(folder: Path) -> list[Logged]:
    """What became of the training episodes, from the newest TensorBoard file."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    files = sorted(folder.rglob("events.out.tfevents.*"), key=lambda file: file.stat().st_mtime)
    if not files:
        sys.exit(f"dreamer: {folder} has no TensorBoard file; sheeprl did not begin")
    events = EventAccumulator(str(files[-1]))
    events.Reload()
    if RETURNS not in events.Tags()["scalars"]:
        sys.exit(f"dreamer: {files[-1]} has no {RETURNS}; no episode ended yet: give more --steps")
    rows = events.Scalars(RETURNS)
    began = events.FirstEventTimestamp()
    return [Logged(row.step, row.value, row.wall_time - began) for row in rows]


def write(rows: list[Logged], place: Path, facts: dict) -> None:
    """The files of one run, in our layout."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        for row in rows:
            writer.writerow((REPEAT * row.decisions, row.decisions, round(row.returned, 3), ""))
    place.with_suffix(".json").write_text(json.dumps(facts, indent=2) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--task", default="ball_in_cup-catch", help="a suite task, DOMAIN-TASK")
    parser.add_argument("--steps", type=int, default=100_000, help="environment steps")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--version", choices=("v1", "v2", "v3"), default="v3")
    parser.add_argument("--size", default="XS", help="of Dreamer v3: XS, S, M, L or XL")
    parser.add_argument("--replay-ratio", type=float, help="updates per decision; else sheeprl's")
    parser.add_argument("--folder", type=Path, default=Path("runs/dreamer"), help="of its logs")
    parser.add_argument("--to", type=Path, default=Path("results"))
    flags = parser.parse_args()
    told = command(
        flags.task, flags.version, flags.size, flags.steps, flags.seed, flags.folder,
        flags.replay_ratio,
    )  # fmt: skip
    started = time.monotonic()
    code = subprocess.run(told).returncode
    if code:
        sys.exit(f"dreamer: sheeprl ended with code {code}; its own words are above")
    rows = logged(flags.folder / named(flags.task, flags.seed))
    facts = {
        "command": " ".join(["python bench/dreamer.py", *sys.argv[1:]]),
        "version": f"sheeprl {importlib.metadata.version('sheeprl')}, Dreamer {flags.version}",
        "hours": round((time.monotonic() - started) / 3600, 3),
        "seconds": [round(row.seconds) for row in rows],
        "evaluation_episodes": 0,
        "returns": "of training episodes since the row before, sampled",
        "action_repeat": REPEAT,
        "configuration": {"told": [word for word in told[3:] if not word.startswith("root_dir")]},
    }
    place = flags.to / "pixels" / flags.task / f"Dreamer-{flags.version}-seed{flags.seed}.csv"
    write(rows, place, facts)
    print(place)


if __name__ == "__main__":
    main()
