"""Environment steps per second of training, update included: ours beside Stable-Baselines3 and SBX,
on walker-walk, each in a process of its own, taking turns. All TD3s decide at every step, GA-4 at
every second one, as its default preset does.

    python bench/throughput.py NAME STEPS    prints the steps per second after a warm start
"""

import contextlib
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from measure import Row, Timing, best_waiting, compared

from grasp.environments.frames import Sight

NETWORK = {"width": 256, "batch": 256}  # equal for all TD3s
TASK = "walker-walk"
WARM = 1_500  # steps before the clock starts: random actions, compilation, first updates
EVERY_STEP = Sight(action_repeat=1)
CONTENDERS = ("ours TD3", "SB3 TD3", "SBX TD3", "ours GA-4", "SB3 TD3 defaults")
RATIOS = (
    ("ours TD3", "SB3 TD3", 3.0),
    ("ours TD3", "SBX TD3", 1.0),
    ("ours GA-4", "SB3 TD3 defaults", 1.0),
)


def rows(steps: int, rounds: int) -> list[Row]:
    """Seconds of `steps` steps, ours and the peer's."""
    turns: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    waiting = best_waiting("throughput.pytorch") or "passive"
    for _ in range(rounds):
        for name in CONTENDERS:
            printed = subprocess.run(
                [sys.executable, __file__, name, str(steps)],
                capture_output=True,
                text=True,
                env=os.environ | ({} if name.startswith("ours") else {"OMP_WAIT_POLICY": waiting}),
            )
            if printed.returncode:
                print(f"{name} did not run: {printed.stderr.strip().splitlines()[-1]}")
                continue
            speed = json.loads(printed.stdout.splitlines()[-1])["steps_per_second"]
            turns[name].append(steps / speed)
    timings = {name: Timing(tuple(v)) for name, v in turns.items() if len(v) == rounds}
    return [
        compared(f"{steps} steps of training on {TASK}, {ours}, {peer}", timings[ours],
                 timings[peer], "s", bar)
        for ours, peer, bar in RATIOS
        if ours in timings and peer in timings
    ]  # fmt: skip


def run(name: str, steps: int) -> float:
    """Environment steps per second."""
    if name.startswith("ours"):
        return _ours(name.split()[1], steps)
    return _theirs(name, steps)


def _ours(name: str, steps: int) -> float:
    import grasp

    agent: Any = dataclasses.replace(grasp.agent_named(name), warm_up=1_000)
    if name == "TD3":
        agent = dataclasses.replace(agent, **NETWORK)
    with training(agent, sight=EVERY_STEP if name == "TD3" else None) as trained:
        trained(WARM)
        begun = time.perf_counter()
        trained(WARM + steps)
        return steps / (time.perf_counter() - begun)


@contextlib.contextmanager
def training(
    agent: Any, seeds: Sequence[int] = (0,), num_envs: int = 1, sight: Sight | None = None
) -> Iterator[Callable[[int], None]]:
    """A function that trains on, without evaluations, to a number of environment steps per seed."""
    from grasp.environments import make
    from grasp.environments.boundary import Boundary
    from grasp.log import Log
    from grasp.runs import Run
    from grasp.schedule import Schedule, Training
    from grasp.training import Loop
    from grasp.turns import go

    far = 10**9
    usual = Schedule(
        steps=far, evaluate_every=far, log_every=far, save_seconds=far, num_envs=num_envs,
        evaluation_episodes=1,
    )  # fmt: skip
    loops: list[Loop] = []

    def made() -> Boundary:
        return Boundary(make(TASK, sight=sight), TASK)

    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            told = Training(TASK, "bench", agent, dataclasses.replace(usual, seed=seed))
            run = Run(Path(folder) / f"seed{seed}")
            run.path.mkdir()
            sibling = loops[0].agent if loops else None
            loops.append(Loop(told, run, made, Log(run), sibling))
            loops[-1].start()
        yield lambda until: go(loops, lambda loop: loop.counters.environment_steps < until)


def _theirs(name: str, steps: int) -> float:
    from stable_baselines3.common.callbacks import BaseCallback

    import grasp

    if name.startswith("SBX"):
        from sbx import TD3
    else:
        from stable_baselines3 import TD3

    class Clock(BaseCallback):
        begun = 0.0

        def _on_step(self) -> bool:
            if self.num_timesteps == WARM:
                self.begun = time.perf_counter()
            return True

    settings: dict[str, Any] = {"learning_starts": 1_000, "train_freq": 1, "gradient_steps": 1}
    if not name.endswith("defaults"):
        width = NETWORK["width"]
        settings |= {"batch_size": NETWORK["batch"], "policy_kwargs": {"net_arch": [width, width]}}
    environment = grasp.make(TASK, sight=EVERY_STEP)
    clock = Clock()
    TD3("MlpPolicy", environment, buffer_size=200_000, device="cpu", **settings).learn(
        WARM + steps, callback=clock
    )
    return steps / (time.perf_counter() - clock.begun)


if __name__ == "__main__":
    print(json.dumps({"steps_per_second": run(sys.argv[1], int(sys.argv[2]))}))
