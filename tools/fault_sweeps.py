"""Sweeps on a Ray of two workers, driver and workers killed: every run once and the same."""

import random
import subprocess
import sys
import time
from pathlib import Path

from fault_rows import Row, ending
from processes import LOOPBACK, below, command_of, kill, listeners, parents

from grasp.sweeps import read_table

SMALL = [
    "--steps", "12000", "--evaluate-every", "3000", "--evaluation-episodes", "2",
    "--log-every", "200", "--save-seconds", "0.5", "--width", "8", "--batch", "8",
    "--warm-up", "40", "--num-envs", "1",
]  # fmt: skip
PATIENCE = 300  # seconds until a run must have begun


def sweep_on_ray(place: Path, count: int, drivers: int, workers: int, seed: int = 0) -> list[Row]:
    """Digest and log of each of `count` runs, against the same run by itself."""
    seeds = [str(number) for number in range(count)]
    for number in seeds:
        command = ["train", "GA-1", "--task", "collect", "--seed", number]
        alone = place / "alone" / f"collect-GA-1-seed{number}"
        assert _started([*command, "--run", str(alone), *SMALL]).wait() == 0
    runs = place / "swept"
    sweep = ["sweep", "--agents", "GA-1", "--tasks", "collect", "--seeds", *seeds, "--on", "ray"]
    sweep += ["--workers", "2", "--runs", str(runs), "--retries", str(workers), *SMALL]

    draw = random.Random(seed)
    plan = ["driver"] * drivers + ["run", "worker"] * (workers // 2)
    draw.shuffle(plan)
    heard: set[str] = set()
    driver = _started(sweep)
    for victim in plan:
        under_way = _runs_below(driver)
        time.sleep(draw.uniform(0, 3))
        heard |= listeners(driver.pid)
        if victim == "driver":
            driver.kill()
            driver.wait()
            driver = _started(sweep)
        else:
            run, worker = draw.choice(under_way)
            kill(run if victim == "run" else worker)
    finished = driver.wait() == 0

    table = read_table(runs / "sweep.csv")
    whole = [alone.name for alone in sorted((place / "alone").iterdir()) if alone.is_dir()]
    same = sum(ending(place / "alone" / name) == ending(runs / name) for name in whole)
    fell = f"driver killed {drivers} times, runs and their workers {2 * (workers // 2)} times"
    inside = heard <= LOOPBACK and bool(heard)
    return [
        Row("sweep on Ray: one row for each run, all done", count,
            len(table) * (finished and len(table) == count), "all", fell),
        Row("sweep on Ray: digest and log of the run by itself", count, same, "all"),
        Row("sweep on Ray: nothing listens outside loopback", 1, int(inside), "all",
            f"{len(heard)} addresses seen over {len(plan)} looks"),
    ]  # fmt: skip


def _started(command: list[str]) -> subprocess.Popen[bytes]:
    quiet = subprocess.DEVNULL
    return subprocess.Popen([sys.executable, "-m", "grasp", *command], stdout=quiet, stderr=quiet)


def _runs_below(driver: subprocess.Popen[bytes]) -> list[tuple[int, int]]:
    """The processes of runs that have saved already, each with its worker's; waits for one."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        assert driver.poll() is None, "the sweep ended before all kills: give it longer runs"
        found = [pid for pid in below(driver.pid) if _has_saved(command_of(pid))]
        above = parents()
        if pairs := [(pid, above[pid]) for pid in found if pid in above]:
            return pairs
        time.sleep(0.05)
    raise AssertionError(f"no run began within {PATIENCE} s")


def _has_saved(command: list[str]) -> bool:
    if "train" not in command:
        return False
    run = Path(command[command.index("--run") + 1])
    return any(run.glob("checkpoints/step-*"))
