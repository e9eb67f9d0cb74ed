"""One full update of GrASP: ours, eager PyTorch, and the share of the machine's peak."""

import dataclasses
import types
from collections.abc import Callable
from typing import Any

import numpy as np
from measure import Row, Worker, compared, race
from peak import update_flops

from grasp.replay import Window

OBSERVATION, ACTION = 24, 6  # walker-walk
BARS = {128: (1.6, 0.4), 256: (1.3, None), 512: (1.15, 0.6)}  # over PyTorch, share of the peak


def benchmarked(width: int) -> Any:
    """K 4, D 2, n 5, batch 128, every state of the unroll a root, n-step returns, heads that take
    a step at every update, all losses weighing the same.
    """
    import grasp

    return grasp.Grasp(
        planner=grasp.CompleteTree(depth=2, temperature=0.5),
        width=width,
        window=5,
        batch=128,
        roots_per_window=6.0,
        trace=1.0,
        normalise_layers=False,
        normalise_observations=False,
        learning_rate_end=1.0,
        affordance_period=1,
        centring=0.0,
        consistency=1.0,
        value_weight=1.0,
    )


def windows(agent: Any, count: int) -> Window:
    """Random windows [count * batch, ...] in the middle of episodes."""
    random = np.random.default_rng(0)
    B, n = count * agent.batch, agent.window

    def normal(*shape: int) -> np.ndarray:
        return random.normal(size=shape).astype(np.float32)

    return Window(
        observations=normal(B, n + 1, OBSERVATION),
        goals=np.zeros((B, n + 1, 0), np.float32),
        actions=np.tanh(normal(B, n, ACTION)),
        rewards=normal(B, n),
        durations=np.ones((B, n), np.float32),
        valid=np.ones((B, n), bool),
        terminated=np.zeros(B, bool),
    )


def rows(width: int, peak: float, seconds: float) -> list[Row]:
    """Against PyTorch, against the peak, and how far the two losses are apart."""
    agent = benchmarked(width)
    settings = dataclasses.asdict(agent) | {"roots": agent.roots}
    timings = race(
        [("updates.ours", {"width": width}), ("updates.pytorch", {"settings": settings})], seconds
    )
    ours = timings["ours"].times(1 / agent.updates_per_call)
    gflop = update_flops(agent, OBSERVATION, ACTION) / 1e9
    bar, share = BARS[width]
    speed = gflop / ours.median  # GFLOP/s
    name = f"update, width {width}"
    found = [
        Row(f"{name}, GFLOP/s of the peak", speed, peak / 1e9, "GFLOP/s", speed * 1e9 / peak,
            share, higher_is_better=True)
    ]  # fmt: skip
    if "PyTorch" in timings:
        found.append(compared(f"{name}, eager PyTorch", ours, timings["PyTorch"], bar=bar))
        worker = Worker("updates.agreement", {"width": width})
        differ = worker.run("agreement")["said"]
        worker.close()
        found.append(Row(f"{name}, the two losses differ by", differ, None, "of the loss"))
    return found


def ours(width: int) -> dict[str, Callable[[], Any]]:
    from grasp.agents.agent import Sizes
    from grasp.agents.compiled import CompiledAgent

    agent = benchmarked(width)
    compiled = CompiledAgent(agent, Sizes(observation=OBSERVATION, goal=0, action=ACTION), seed=0)
    several = windows(agent, agent.updates_per_call).split(agent.updates_per_call)
    return {"ours": lambda: (compiled.update(several, 0) or {})["train/value_loss"]}


def pytorch(settings: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    """The peer, in a process without JAX."""
    from torch_grasp import Learner

    agent = types.SimpleNamespace(**settings)
    agent.planner = types.SimpleNamespace(**settings["planner"])
    learner, tensors = Learner(agent, OBSERVATION, ACTION), _tensors(windows(agent, 1))
    return {"PyTorch": lambda: learner.update(tensors, 1.0)}


def agreement(width: int) -> dict[str, Callable[[], float]]:
    """The largest relative difference of the two losses between the two implementations."""
    import equinox as eqx
    import jax
    from torch_grasp import Learner, loaded

    from grasp.agents.agent import Sizes

    agent = benchmarked(width)
    state = agent.init(Sizes(observation=OBSERVATION, goal=0, action=ACTION), jax.random.key(0))
    learner = loaded(Learner(agent, OBSERVATION, ACTION), state.online)
    window = windows(agent, 1)

    def differ() -> float:
        _, metrics = eqx.filter_jit(agent.update)(state, window, jax.random.key(1))
        parts = ("reward_loss", "value_loss", "termination_loss", "consistency_loss")
        loss = sum(float(metrics[f"train/{part}"]) for part in parts)
        theirs, value = learner.update(_tensors(window), float(state.q_spread))
        pairs = ((loss, theirs), (-float(metrics["planner/value"]), value))
        return max(abs(a - b) / max(abs(a), 1e-6) for a, b in pairs)

    return {"agreement": differ}


def _tensors(window: Window) -> Window:
    import torch

    return Window(*(torch.from_numpy(np.asarray(leaf)) for leaf in window))
