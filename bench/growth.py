"""How time and memory grow: one plan, one update or one step of training with one size changed at
a time. Each size is a process of its own, so that the peak of its memory is its own.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from measure import Row, Timing, Worker, compared, take_turns
from plans import called, parts
from throughput import training
from updates import ACTION, OBSERVATION, benchmarked, windows

UPDATE: dict[str, list[int]] = {
    "num_affordances": [2, 4, 8],
    "depth": [1, 2, 3],
    "width": [64, 128, 256],
    "batch": [32, 64, 128, 256],
}
TRAJECTORIES = [10, 20, 40, 80]
ENVIRONMENTS = [1, 4, 16]
SEEDS = [1, 2, 5]
STEPS = 40  # of training in one turn


def rows(seconds: float) -> list[Row]:
    found = []
    for name, values in UPDATE.items():
        for value in values:
            what = f"growth, update, {name.replace('_', ' ')} {value}"
            timing, memory = alone("growth.update", {"name": name, "value": value}, seconds)
            found.append(Row(what, 1e3 * timing.median, None, "ms", memory_mb=memory))
    for count in TRAJECTORIES:
        timing, memory = alone("growth.plan", {"trajectories": count}, seconds)
        name = f"growth, plan of 64 roots, UCT-{count} D 5"
        found.append(Row(name, 1e3 * timing.median, None, "ms", memory_mb=memory))
    return [*found, *_training_rows(seconds)]


def _training_rows(seconds: float) -> list[Row]:
    """Environments and seeds, against the same number one after the other."""
    found = []
    for name, values in (("num_envs", ENVIRONMENTS), ("seeds", SEEDS)):
        workers = {
            value: Worker("growth.steps", {"num_envs": 1, "seeds": 1} | {name: value})
            for value in values
        }
        memory: dict[int, int] = {}

        def step(value: int, workers: Any = workers, memory: Any = memory) -> float:
            answer = workers[value].run("steps")
            memory[value] = int(answer["memory_mb"])
            return answer["seconds"] / STEPS

        timings = take_turns(
            {str(value): lambda value=value: step(value) for value in values}, seconds
        )
        for value in values:
            bar = 5 / 3 if (name, value) == ("seeds", 5) else None
            what = f"growth, training step, {name.replace('_', ' ')} {value}, one after the other"
            row = compared(what, timings[str(value)], timings["1"].times(value), bar=bar)
            found.append(row._replace(memory_mb=memory[value]))
        for worker in workers.values():
            worker.close()
    return found


def alone(function: str, arguments: dict[str, Any], seconds: float) -> tuple[Timing, int]:
    worker = Worker(function, arguments)
    timing = take_turns({"": lambda: worker.run(worker.names[0])["seconds"]}, seconds)[""]
    memory = int(worker.run(worker.names[0])["memory_mb"])
    worker.close()
    return timing, memory


def plan(trajectories: int) -> dict[str, Callable[[], Any]]:
    """A UCT plan of depth 5 for 64 roots at width 128."""
    import jax
    import jax.numpy as jnp

    import grasp
    from grasp.planners.plan import plan_batch

    both, key = parts(128), jax.random.key(0)
    observations = jax.random.normal(key, (64, OBSERVATION))
    roots = jax.vmap(both[0].encode)(observations, jnp.zeros((64, 0)))
    planned, arrays = called(functools.partial(plan_batch, grasp.UCT(trajectories, 5)), both)
    return {"plan": lambda: planned(arrays, roots, key).value}


def update(name: str, value: int) -> dict[str, Callable[[], Any]]:
    """An update at width 128, K 4, D 2, batch 128, one root per window, but for one size."""
    import grasp
    from grasp.agents.agent import Sizes
    from grasp.agents.compiled import CompiledAgent

    changes = {"planner": grasp.CompleteTree(value, 0.5)} if name == "depth" else {name: value}
    usual = {"roots_per_window": 1.0, "updates_per_call": 1}
    agent = dataclasses.replace(benchmarked(128), **(usual | changes))
    compiled = CompiledAgent(agent, Sizes(observation=OBSERVATION, goal=0, action=ACTION), seed=0)
    window = windows(agent, 1).split(1)
    return {"update": lambda: (compiled.update(window, 0) or {})["train/value_loss"]}


def steps(num_envs: int, seeds: int) -> dict[str, Callable[[], Any]]:
    """Steps of GA-4's training in every environment of every seed."""
    import grasp

    agent = dataclasses.replace(grasp.agent_named("GA-4"), warm_up=200)
    held = training(agent, range(seeds), num_envs)
    trained, done = held.__enter__(), [300 * num_envs]
    trained(done[0])

    def on() -> None:
        done[0] += STEPS * num_envs
        trained(done[0])

    return {"steps": on}
