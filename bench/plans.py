"""One plan: ours, eager PyTorch, mctx on the same model, and UCT as literal Python."""

import sys
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from measure import Timing, take_turns
from updates import ACTION, OBSERVATION

import grasp
from grasp.agents.agent import Sizes
from grasp.planners.plan import plan_batch

K = 4
PLANNERS = {
    "tree D 1": grasp.CompleteTree(1, 0.5),
    "tree D 2": grasp.CompleteTree(2, 0.5),
    "tree D 3": grasp.CompleteTree(3, 0.5),
    "UCT-50 D 3": grasp.UCT(50, 3),
    "UCT-50 D 5": grasp.UCT(50, 5),
    "Gumbel-16": grasp.Gumbel(16),
}


def parts(width: int) -> tuple[grasp.ValueEquivalentModel, grasp.AffordanceModule]:
    sizes = Sizes(observation=OBSERVATION, goal=0, action=ACTION)
    online = grasp.Grasp(num_affordances=K, width=width).init(sizes, jax.random.key(0)).online
    return online.model, online.affordances


def compare(width: int, batch: int, seconds: float) -> list[dict[str, Any]]:
    """A row per planner, with how many times longer the others take."""
    model, affordances = parts(width)
    key = jax.random.key(1)
    observations = jax.random.normal(key, (batch, OBSERVATION))
    roots = jax.vmap(model.encode)(observations, jnp.zeros((batch, 0)))
    planned = eqx.filter_jit(plan_batch)
    searched = eqx.filter_jit(lambda planner: planner.search(model, affordances, roots, key))
    contenders: dict[str, Any] = {
        name: lambda planner=planner: planned(planner, model, affordances, roots, key)
        for name, planner in PLANNERS.items()
    }
    contenders["mctx 50"] = lambda: searched(grasp.Gumbel(50))
    contenders["mctx 16"] = lambda: searched(grasp.Gumbel(16))
    contenders |= _pytorch(model, affordances, roots)
    timings = take_turns(contenders, seconds)
    peers = {
        "tree D 1": ["PyTorch D 1"],
        "tree D 2": ["PyTorch D 2"],
        "tree D 3": ["PyTorch D 3"],
        "UCT-50 D 3": ["mctx 50"],
        "UCT-50 D 5": ["mctx 50"],
        "Gumbel-16": ["mctx 16"],
    }
    return [
        {
            "plan": name,
            "width": width,
            "batch": batch,
            "ours_ms": 1e3 * timings[name].median,
            "ours_quartiles_ms": [1e3 * timings[name].low, 1e3 * timings[name].high],
        }
        | {
            f"{peer}_over_ours": timings[peer].median / timings[name].median
            for peer in peers[name]
            if peer in timings
        }
        for name in PLANNERS
    ]


def literal_uct(width: int, seconds: float) -> dict[str, Any]:
    """Our UCT-50 against the dictionary tree that is its oracle in the tests, one root."""
    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    from planners.test_uct import literal

    model, affordances = parts(width)
    key, planner = jax.random.key(1), grasp.UCT(50, 3)
    root = model.encode(jnp.ones(OBSERVATION), jnp.zeros(0))
    compiled = type(
        "Compiled", (), {"step": eqx.filter_jit(model.step), "value": eqx.filter_jit(model.value)}
    )
    proposed = eqx.filter_jit(affordances)
    planned = eqx.filter_jit(lambda root: planner(model, affordances, root, key))
    timings: dict[str, Timing] = take_turns(
        {
            "ours": lambda: planned(root),
            "literal": lambda: literal(compiled, proposed, root, planner, key) and None,
        },
        seconds,
    )
    return {
        "plan": "UCT-50 D 3",
        "width": width,
        "batch": 1,
        "ours_ms": 1e3 * timings["ours"].median,
        "literal_over_ours": timings["literal"].median / timings["ours"].median,
    }


def _pytorch(model: Any, affordances: Any, roots: Any) -> dict[str, Any]:
    try:
        import torch
        from torch_grasp import Learner, loaded, plan
    except ImportError:
        return {}
    agent = grasp.Grasp(width=model.encoder.layers[0].bias.size)
    parameters = type("Parameters", (), {"model": model, "affordances": affordances})
    learner = loaded(Learner(agent, OBSERVATION, ACTION), parameters)
    states = torch.from_numpy(np.array(roots.features))

    def planned(depth: int) -> Any:
        with torch.no_grad():
            return plan(learner.model, learner.affordances, states, depth, 0.5)[2].numpy()

    return {f"PyTorch D {depth}": lambda depth=depth: planned(depth) for depth in (1, 2, 3)}
