"""How time and memory grow: one plan or one update with one size changed at a time.

python bench/growth.py    prints the rows as JSON
"""

import dataclasses
import json
import resource
import subprocess
import sys
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from measure import take_turns
from plans import parts
from updates import ACTION, OBSERVATION, benchmarked, windows

import grasp
from grasp.agents.agent import Sizes
from grasp.agents.compiled import CompiledAgent
from grasp.planners.plan import plan_batch

GROWTH: dict[str, list[Any]] = {
    "K": [2, 4, 8],
    "depth": [1, 2, 3],
    "trajectories": [10, 20, 40, 80],
    "width": [64, 128, 256],
    "batch": [32, 64, 128, 256],
}


def rows(seconds: float) -> list[dict[str, Any]]:
    """Each size in a process of its own, so that the peak of its memory is its own."""
    found = []
    for name, values in GROWTH.items():
        for value in values:
            program = [sys.executable, __file__, name, str(value), str(seconds)]
            printed = subprocess.run(program, capture_output=True, text=True, check=True)
            found.append(json.loads(printed.stdout.splitlines()[-1]))
    return found


def row(name: str, value: int, seconds: float) -> dict[str, Any]:
    timed = _plan(value, seconds) if name == "trajectories" else _update(name, value, seconds)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"what": name, "value": value, "ms": timed, "peak_memory_mb": round(memory)}


def _plan(trajectories: int, seconds: float) -> float:
    """A UCT plan of depth 5 for 64 roots at width 128, in ms."""
    model, affordances = parts(128)
    key = jax.random.key(0)
    roots = jax.vmap(model.encode)(jax.random.normal(key, (64, OBSERVATION)), jnp.zeros((64, 0)))
    planned = eqx.filter_jit(plan_batch)
    planner = grasp.UCT(trajectories, 5)
    timing = take_turns({"": lambda: planned(planner, model, affordances, roots, key)}, seconds)
    return 1e3 * timing[""].median


def _update(name: str, value: int, seconds: float) -> float:
    """An update at width 128, K 4, D 2, batch 128, one root per window, but for one size; in ms."""
    agent = dataclasses.replace(benchmarked(128), roots_per_window=1.0)
    changes: dict[str, Any] = {
        "K": {"num_affordances": value},
        "depth": {"planner": grasp.CompleteTree(value, 0.5)},
        "width": {"width": value},
        "batch": {"batch": value},
    }[name]
    agent = dataclasses.replace(agent, **changes)
    compiled = CompiledAgent(agent, Sizes(observation=OBSERVATION, goal=0, action=ACTION), seed=0)
    several = windows(agent, agent.updates_per_call).split(agent.updates_per_call)
    timing = take_turns({"": lambda: compiled.update(several, 0)["train/value_loss"]}, seconds)
    return 1e3 * timing[""].median / agent.updates_per_call


if __name__ == "__main__":
    print(json.dumps(row(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))))
