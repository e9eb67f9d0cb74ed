"""A peer's agent on one of our tasks, evaluated as ours are and written as ours are.

    python bench/peers.py SB3-TD3 --task walker-walk --steps 100000 --seed 0 [--like-ours]

`--like-ours` gives it the networks, batch, replay and warm-up of our TD3, and decides as often;
otherwise it runs at its own defaults and decides at every step. TD3 explores with noise as ours
does, because at the defaults of Stable-Baselines3 it would not. Needs what `make bench` installs.
Writes results/<suite>/<task>/<name>-seed<k>.csv.
"""

import argparse
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import grasp
from grasp.environments import suite_of, usual_sight
from grasp.environments.frames import Sight
from grasp.randomness import Stream, episode_seed
from grasp.results import write_table

PEERS = ("SB3-TD3", "SB3-SAC", "SBX-TD3", "SBX-SAC")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("--task", required=True)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--evaluate-every", type=int, default=10_000)
    parser.add_argument("--episodes", type=int, default=10)
    parser.add_argument("--like-ours", action="store_true")
    parser.add_argument("--action-repeat", type=int, help="1, or with --like-ours as ours")
    parser.add_argument("--to", type=Path, default=Path("results"))
    flags = parser.parse_args()

    began = time.monotonic()
    name = flags.peer + ("-like-ours" if flags.like_ours else "")
    table = flags.to / suite_of(flags.task) / flags.task / f"{name}-seed{flags.seed}.csv"
    rows: list[tuple[int, int, float, float | None]] = []
    seconds: list[int] = []
    usual = usual_sight(flags.task) if flags.like_ours else Sight()
    repeat = flags.action_repeat or usual.action_repeat
    world = partial(grasp.make, flags.task, sight=Sight(repeat))
    learner, settings = made(flags.peer, world(), flags.seed, flags.like_ours)
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


def made(peer: str, world: Any, seed: int, like_ours: bool) -> tuple[Any, dict[str, Any]]:
    """The learner, and its settings where they are not its defaults."""
    ours: Any = grasp.agent_named("TD3")
    library, _, kind = peer.partition("-")
    if library == "SB3":
        import stable_baselines3 as home
        import torch

        torch.set_num_threads(1)
    else:
        import sbx as home
    settings: dict[str, Any] = {}
    if like_ours:
        settings = {
            "policy_kwargs": {"net_arch": [ours.width, ours.width]},
            "batch_size": ours.batch,
            "learning_starts": ours.warm_up,
            "buffer_size": ours.replay_capacity,
        }
    noise = None
    if kind == "TD3":
        from stable_baselines3.common.noise import NormalActionNoise

        zero = np.zeros(world.action_space.shape)
        noise = NormalActionNoise(zero, zero + ours.noise)
    learner = getattr(home, kind)("MlpPolicy", world, seed=seed, action_noise=noise, **settings)
    return learner, settings | ({} if noise is None else {"noise": ours.noise})


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
