"""A peer's agent on one of our tasks, evaluated as ours are and written as ours are.

    python bench/peers.py SB3-TD3 --task walker-walk --steps 100000 --seed 0
    python bench/peers.py SB3-TD3 --like results/dm_control/walker-walk/TD3-seed0.json

By itself it runs at its own defaults and decides at every step. `--like` gives it the task, seed,
steps, networks, batch, replay, warm-up and action repeat of a run of our TD3. TD3 explores with
noise as ours does, because at the defaults of Stable-Baselines3 it would not. Needs what
`make bench` installs. Writes results/<suite>/<task>/<name>-seed<k>.csv.
"""

import argparse
import dataclasses
import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import grasp
from grasp.agents.td3 import TD3
from grasp.environments import suite_of
from grasp.environments.frames import Sight
from grasp.randomness import Stream, episode_seed
from grasp.results import write_table

PEERS = ("SB3-TD3", "SB3-SAC", "SBX-TD3", "SBX-SAC")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("--task", help="needed without --like")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--evaluate-every", type=int, default=10_000)
    parser.add_argument("--episodes", type=int, default=10)
    parser.add_argument("--like", type=Path, help="a result of our TD3, as .json")
    parser.add_argument("--to", type=Path, default=Path("results"))
    flags = parser.parse_args()
    if bool(flags.task) == bool(flags.like):
        parser.error("give --task, or --like a result of our TD3")

    began = time.monotonic()
    name, ours = flags.peer, dataclasses.asdict(TD3())
    settings: dict[str, Any] = {}
    repeat = 1
    if flags.like:
        result = json.loads(flags.like.read_text())
        like, repeat = result["configuration"], result["action_repeat"]
        ours = like["agent"]
        settings = {
            "policy_kwargs": {"net_arch": [ours["width"], ours["width"]]},
            "batch_size": ours["batch"],
            "learning_starts": ours["warm_up"],
            "buffer_size": ours["replay_capacity"],
        }
        flags.task, flags.seed, flags.steps = like["task"], like["seed"], like["steps"]
        name += like["name"].removeprefix("TD3") or "-like-ours"
    table = flags.to / suite_of(flags.task) / flags.task / f"{name}-seed{flags.seed}.csv"
    rows: list[tuple[int, int, float, float | None]] = []
    seconds: list[int] = []
    world = partial(grasp.make, flags.task, sight=Sight(repeat))
    if flags.peer.endswith("TD3"):
        settings["noise"] = ours["noise"]
    learner = made(flags.peer, world(), flags.seed, **settings)
    for steps in range(flags.evaluate_every, flags.steps + 1, flags.evaluate_every):
        decisions = flags.evaluate_every // repeat
        learner.learn(decisions, reset_num_timesteps=steps == flags.evaluate_every)
        returned = evaluated(learner, world(), flags.seed, len(rows), flags.episodes)
        rows.append((steps, steps // repeat, returned, None))
        seconds.append(round(time.monotonic() - began))
        print(f"{name} on {flags.task}: {returned:.1f} at {steps:,}, {seconds[-1]} s", flush=True)
        facts = {
            "command": "python bench/peers.py " + " ".join(sys.argv[1:]),
            "hours": round(seconds[-1] / 3600, 3),
            "seconds": seconds,
            "evaluation_episodes": flags.episodes,
            "action_repeat": repeat,
            "configuration": {"name": name, "task": flags.task, "seed": flags.seed} | settings,
        }
        write_table(table, rows, facts)


def made(peer: str, world: Any, seed: int, *, noise: float | None = None, **settings: Any) -> Any:
    """The learner with its own defaults but for the settings."""
    library, _, kind = peer.partition("-")
    if library == "SB3":
        import stable_baselines3 as home
        import torch

        torch.set_num_threads(1)
    else:
        import sbx as home
    if noise is not None:
        from stable_baselines3.common.noise import NormalActionNoise

        zero = np.zeros(world.action_space.shape)
        settings["action_noise"] = NormalActionNoise(zero, zero + noise)
    return getattr(home, kind)("MlpPolicy", world, seed=seed, **settings)


def evaluated(learner: Any, world: Any, seed: int, number: int, episodes: int) -> float:
    """The mean return of greedy episodes from the starts that our own runs are evaluated on."""
    returns = []
    for index in range(episodes):
        first = episode_seed(seed, Stream.EVALUATE, number * episodes + index)
        observation, _ = world.reset(seed=first)
        returned, ended = 0.0, False
        while not ended:
            action, _ = learner.predict(observation, deterministic=True)
            observation, reward, terminated, truncated, _ = world.step(action)
            returned, ended = returned + float(reward), terminated or truncated
        returns.append(returned)
    return float(np.mean(returns))


if __name__ == "__main__":
    main()
