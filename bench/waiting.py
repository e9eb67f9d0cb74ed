"""Minutes on one core until a return worth waiting for: GA-4, our TD3, Stable-Baselines3's TD3 with
our networks and random steps, and SBX's SAC, one after the other in the same hours.

    make waiting CORE=0 SEEDS='0 1'    # twelve runs a seed; what is finished is not made again
    make waiting AGENTS='GA-4 TD3'     # six of them
    make waiting TASKS=finger-spin     # four of them

Each run has one core to itself, 100,000 environment steps and an evaluation of ten greedy episodes
every 5,000, which count as part of the time. Writes results/waiting/<task>/<agent>-seed<k>.csv;
`grasp report` makes its table of them.
"""

import argparse
import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path

TASKS = ("walker-walk", "finger-spin", "cartpole-swingup")
RESULTS, RUNS = Path("results"), Path("runs/waiting")
PACE = ("--steps", "100000", "--evaluate-every", "5000")
OURS = ("GA-4", "TD3")
PEERS = {  # whose settings each takes: its own, or those of a result of ours
    "SB3-TD3-like-ours": ("SB3-TD3", "--like", "results/dm_control/{task}/TD3-seed{seed}.json"),
    "SBX-SAC": ("SBX-SAC", "--task", "{task}", "--seed", "{seed}"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--core", type=int, default=0, help="that every run is pinned to")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("--agents", nargs="+", choices=(*OURS, *PEERS), default=(*OURS, *PEERS))
    flags = parser.parse_args()
    os.sched_setaffinity(0, {flags.core})
    os.environ |= {"PJRT_NPROC": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    for seed, task, name in itertools.product(flags.seeds, flags.tasks, flags.agents):
        place = RESULTS / "waiting" / task / f"{name}-seed{seed}.csv"
        if not place.exists():
            print(f"{name} on {task}, seed {seed}", flush=True)
            (ours if name in OURS else peers)(name, task, seed, place)


def ours(agent: str, task: str, seed: int, place: Path) -> None:
    """A run of ours from its beginning to its end: one that is continued has lost its clock."""
    run, exported = RUNS / f"{task}-{agent}-seed{seed}", RUNS / "exported"
    shutil.rmtree(run, ignore_errors=True)
    grasp = (sys.executable, "-m", "grasp")
    train = (*grasp, "train", agent, "--task", task, "--seed", str(seed), *PACE, "--run", run)
    subprocess.run(train, check=True)
    subprocess.run((*grasp, "export", run, "--to", exported, "--replace"), check=True)
    put(exported, place)


def peers(name: str, task: str, seed: int, place: Path) -> None:
    """A peer's run; its file grows evaluation by evaluation, so it is copied when it is whole."""
    told = [word.format(task=task, seed=seed) for word in PEERS[name]]
    elsewhere = RUNS / "peers"
    command = [sys.executable, "bench/peers.py", *told, "--to", str(elsewhere), *PACE[2:]]
    subprocess.run(command, check=True)
    put(elsewhere, place)


def put(results: Path, place: Path) -> None:
    """The files of a finished run, out of another folder of results."""
    place.parent.mkdir(parents=True, exist_ok=True)
    for kind in (".json", ".csv"):  # the table last: it says that the run is finished
        made = (results / "dm_control" / place.parent.name / place.name).with_suffix(kind)
        shutil.copy(made, place.parent)


if __name__ == "__main__":
    main()
