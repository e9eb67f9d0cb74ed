"""Environment steps per second of training, update included: ours beside Stable-Baselines3 and SBX,
on walker-walk, each in a process of its own, taking turns.

    python bench/throughput.py NAME STEPS    prints the seconds of STEPS steps after a warm start
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

NETWORK = {"width": 256, "batch": 256}  # equal for all TD3s
TASK = "walker-walk"
WARM = 1_500  # steps before the clock starts: random actions, compilation, first updates
CONTENDERS = ("ours TD3", "SB3 TD3", "SBX TD3", "ours GA-4", "SB3 TD3 defaults")


def compare(steps: int, rounds: int) -> dict[str, Any]:
    """Median steps per second of each, and the ratios that count."""
    speeds: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    for _ in range(rounds):
        for name in CONTENDERS:
            printed = subprocess.run(
                [sys.executable, __file__, name, str(steps)], capture_output=True, text=True
            )
            if printed.returncode:
                print(f"{name} did not run: {printed.stderr.strip().splitlines()[-1]}")
                continue
            speeds[name].append(json.loads(printed.stdout.splitlines()[-1])["steps_per_second"])
    median = {name: statistics.median(values) for name, values in speeds.items() if values}
    ratios = {
        "TD3 over SB3": ("ours TD3", "SB3 TD3"),
        "TD3 over SBX": ("ours TD3", "SBX TD3"),
        "GA-4 over SB3 TD3 at its defaults": ("ours GA-4", "SB3 TD3 defaults"),
    }
    return {
        "steps_per_second": median,
        "all": speeds,
        "ratios": {
            name: median[ours] / median[theirs]
            for name, (ours, theirs) in ratios.items()
            if ours in median and theirs in median
        },
    }


def run(name: str, steps: int) -> float:
    """Environment steps per second."""
    if name.startswith("ours"):
        return _ours(name.split()[1], steps)
    return _theirs(name, steps)


def _ours(name: str, steps: int) -> float:
    import dataclasses

    import grasp
    from grasp.environments import make
    from grasp.environments.boundary import Boundary
    from grasp.log import Log
    from grasp.runs import Run
    from grasp.training import Loop, Schedule, Training

    agent: Any = grasp.agent_named(name)
    if name == "TD3":
        agent = dataclasses.replace(agent, **NETWORK, warm_up=1_000)
    else:
        agent = dataclasses.replace(agent, warm_up=1_000)
    far = 10**9

    def trained(loop: Loop, until: int) -> None:
        while loop.counters.environment_steps < until:
            loop._decide()
            loop._learn()

    with tempfile.TemporaryDirectory() as folder:
        schedule = Schedule(steps=far, evaluate_every=far, log_every=far)
        training = Training(task=TASK, name=name, agent=agent, schedule=schedule)
        run = Run(Path(folder) / "run")
        loop = Loop(training, run, lambda: Boundary(make(TASK, agent.discount), TASK), Log(run))
        for lane in range(len(loop.worlds)):
            loop._begin(lane)
        trained(loop, WARM)
        begun = time.perf_counter()
        trained(loop, WARM + steps)
        return steps / (time.perf_counter() - begun)


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
    environment = grasp.make(TASK)
    clock = Clock()
    TD3("MlpPolicy", environment, buffer_size=200_000, device="cpu", **settings).learn(
        WARM + steps, callback=clock
    )
    return steps / (time.perf_counter() - clock.begun)


if __name__ == "__main__":
    print(json.dumps({"steps_per_second": run(sys.argv[1], int(sys.argv[2]))}))
