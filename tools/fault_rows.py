"""What the fault suites share: a row of results, and a run small enough to be killed often."""

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import grasp.session
from grasp.agents.agent import Decision
from grasp.agents.grasp import Grasp
from grasp.runs import Run


class Row(NamedTuple):
    """One promise: how often it was put to the test and how often it held."""

    promise: str
    tried: int
    held: int
    bar: str
    note: str = ""  # where the faults fell, and what else was seen


class DriftState(NamedTuple):
    weights: Any
    moments: Any
    updates: Any


@dataclasses.dataclass(frozen=True)
class Drift:
    """An agent that compiles in no time: what it does next depends on all that it ever saw."""

    discount: float = 0.99
    replay_capacity: int = 400
    batch: int = 8
    window: int = 2
    rewarded_share: float = 0.1
    warm_up: int = 50
    decisions_per_update: int = 2
    updates_per_call: int = 2

    def init(self, sizes: Any, key: Any) -> DriftState:
        shape = (sizes.observation + sizes.goal, sizes.action)
        return DriftState(jax.random.normal(key, shape), jnp.zeros(shape), jnp.zeros((), jnp.int32))

    def act(self, state: DriftState, observations: Any, goals: Any, key: Any, decisions: Any):
        decision = self.act_greedily(state, observations, goals, key)
        noise = jax.random.normal(key, decision.actions.shape)
        return decision._replace(actions=jnp.clip(decision.actions + noise, -1, 1))

    def act_greedily(self, state: DriftState, observations: Any, goals: Any, key: Any) -> Decision:
        seen = jnp.concatenate([observations, goals], axis=-1)
        actions = jnp.tanh(seen @ state.weights)
        return Decision(actions, jnp.zeros(len(actions), jnp.int32), None)

    def update(self, state: DriftState, window: Any, key: Any) -> tuple[DriftState, dict[str, Any]]:
        seen = jnp.concatenate([window.observations, window.goals], axis=-1)
        advantage = (window.rewards * window.valid).sum(1) - window.terminated
        pull = jnp.tanh(seen[:, 0].T @ (window.actions[:, 0] * advantage[:, None]))
        moments = 0.9 * state.moments + 0.1 * (pull + jax.random.normal(key, pull.shape))
        updates = state.updates + 1
        weights = state.weights + 0.01 * moments / jnp.sqrt(updates)
        return DriftState(weights, moments, updates), {"train/pull": jnp.mean(pull)}


AGENTS = {
    "GA-2": Grasp(
        num_affordances=2, width=8, batch=8, window=2, warm_up=50, replay_capacity=400,
        updates_per_call=2, decisions_per_update=2,
    ),
    "drift": Drift(),
}  # fmt: skip


def train_small(path: Path, task: Any, agent: str, **settings: Any) -> None:
    """A run of seconds that does all that a long one does: hundreds of decisions on any task."""
    steps = 6_000 if task == "collect" else 600
    usual: dict[str, Any] = {
        "steps": steps, "num_envs": 1, "evaluate_every": steps // 2, "evaluation_episodes": 1,
        "log_every": 50, "save_seconds": 0.02, "deterministic": True,
    }  # fmt: skip
    grasp.session.train(AGENTS[agent], task, run=path, label=agent, **(usual | settings))


def in_child(work: Callable[[], None]) -> int:
    """Fork, so that a start costs no imports; returns the child's process id. The child's exit code
    is that of the command.
    """
    child = os.fork()
    if child:
        return child
    try:
        from grasp.errors import GraspError

        try:
            work()
        except GraspError as problem:
            print(f"grasp: {problem}", flush=True)
            os._exit(problem.exit_code)
        os._exit(0)
    finally:
        os._exit(1)


def ending(path: Path) -> tuple[str, list[dict[str, Any]]]:
    """Digest and log, the latter without its time fields."""
    from grasp.checkpoints import digest

    run = Run(path)
    checkpoint = run.latest()
    assert checkpoint is not None, f"{path} has no checkpoint"
    rows = [
        {name: value for name, value in row.items() if not name.startswith("time/")}
        for row in run.metrics()
    ]
    return digest(checkpoint, run), rows
