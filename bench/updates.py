"""One full update of GrASP: ours, eager PyTorch, and the share of the machine's peak."""

from typing import Any

import equinox as eqx
import jax
import numpy as np
from measure import take_turns
from peak import update_flops

import grasp
from grasp.agents.agent import Sizes
from grasp.agents.compiled import CompiledAgent
from grasp.replay import Window

OBSERVATION, ACTION = 24, 6  # walker-walk


def benchmarked(width: int) -> grasp.Grasp:
    """K 4, D 2, n 5, batch 128, every state of the unroll a root."""
    return grasp.Grasp(
        planner=grasp.CompleteTree(depth=2, temperature=0.5),
        width=width,
        window=5,
        batch=128,
        roots_per_window=6.0,
        normalise_observations=False,
    )


def windows(agent: grasp.Grasp, count: int) -> Window:
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


def compare(width: int, peak: float, seconds: float) -> dict[str, Any]:
    agent = benchmarked(width)
    sizes = Sizes(observation=OBSERVATION, goal=0, action=ACTION)
    ours = CompiledAgent(agent, sizes, seed=0)
    calls = agent.updates_per_call
    several = windows(agent, calls).split(calls)
    contenders = {"ours": lambda: ours.update(several, 0)["train/value_loss"]}
    try:
        import torch
        from torch_grasp import Learner, loaded
    except ImportError:
        learner = None
    else:
        state = agent.init(sizes, jax.random.key(0))
        learner = loaded(Learner(agent, OBSERVATION, ACTION), state.online)
        window = windows(agent, 1)
        tensors = Window(*(torch.from_numpy(np.asarray(leaf)) for leaf in window))
        agreement = _agreement(agent, state, window, learner, tensors)
        contenders["PyTorch"] = lambda: learner.update(tensors, 1.0)
    timings = take_turns(contenders, seconds)
    each = timings["ours"].median / calls
    flops = update_flops(agent, OBSERVATION, ACTION)
    row: dict[str, Any] = {
        "width": width,
        "ours_ms": 1e3 * each,
        "ours_quartiles_ms": [
            1e3 * timings["ours"].low / calls,
            1e3 * timings["ours"].high / calls,
        ],
        "gflop": flops / 1e9,
        "share_of_peak": flops / each / peak,
    }
    if learner is not None:
        theirs = timings["PyTorch"]
        row |= {
            "pytorch_ms": 1e3 * theirs.median,
            "pytorch_quartiles_ms": [1e3 * theirs.low, 1e3 * theirs.high],
            "pytorch_over_ours": theirs.median / each,
            "losses_differ_by": agreement,
        }
    return row


def _agreement(agent: Any, state: Any, window: Window, learner: Any, tensors: Window) -> float:
    """The largest relative difference of the two losses between the two implementations."""
    _, metrics = eqx.filter_jit(agent.update)(state, window, jax.random.key(1))
    parts = ("reward_loss", "value_loss", "termination_loss", "consistency_loss")
    ours = sum(float(metrics[f"train/{part}"]) for part in parts)
    theirs, value = learner.update(tensors, float(state.q_spread))
    pairs = ((ours, theirs), (-float(metrics["planner/value"]), value))
    return max(abs(a - b) / max(abs(a), 1e-6) for a, b in pairs)
