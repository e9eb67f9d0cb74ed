"""One plan: ours, eager PyTorch, mctx on the same model, and UCT as literal Python."""

import functools
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measure import Row, compared, race
from updates import ACTION, OBSERVATION

K = 4
PEERS = {
    "tree D 1": "PyTorch D 1",
    "tree D 2": "PyTorch D 2",
    "tree D 3": "PyTorch D 3",
    "UCT-50 D 3": "mctx 50",
    "UCT-50 D 5": "mctx 50",
    "Gumbel-16": "mctx 16",
}
BARS = {(128, 1, "tree D 2"): 3.0, (128, 64, "UCT-50 D 3"): 1.0, (512, 64, "UCT-50 D 3"): 1.0}


def rows(width: int, batch: int, seconds: float) -> list[Row]:
    """A row per planner."""
    sizes = {"width": width, "batch": batch}
    timings = race([("plans.ours", sizes), ("plans.pytorch", sizes)], seconds)
    return [
        compared(
            f"plan, {name}, width {width}, batch {batch}, {peer}",
            timings[name],
            timings[peer],
            bar=BARS.get((width, batch, name)),
        )
        for name, peer in PEERS.items()
        if peer in timings
    ]


def literal_rows(width: int, seconds: float) -> list[Row]:
    timings = race([("plans.literal", {"width": width})], seconds)
    name = f"plan, UCT-50 D 3, width {width}, batch 1, literal Python"
    return [compared(name, timings["ours"], timings["literal"], bar=20.0)] if timings else []


def parts(width: int) -> tuple[Any, Any]:
    import jax

    import grasp
    from grasp.agents.agent import Sizes

    sizes = Sizes(observation=OBSERVATION, goal=0, action=ACTION)
    agent = grasp.Grasp(num_affordances=K, width=width, normalise_layers=False)
    online = agent.init(sizes, jax.random.key(0)).online
    return online.model, online.affordances


def ours(width: int, batch: int) -> dict[str, Callable[[], Any]]:
    """Our planners, and mctx as it comes on the same model."""
    import jax
    import jax.numpy as jnp

    import grasp
    from grasp.planners.plan import plan_batch

    both = parts(width)
    key = jax.random.key(1)
    observations = jax.random.normal(key, (batch, OBSERVATION))
    roots = jax.vmap(both[0].encode)(observations, jnp.zeros((batch, 0)))

    def contender(plan: Callable[..., Any]) -> Callable[[], Any]:
        """Compiled as an agent's decisions are."""
        planned, arrays = called(plan, both)
        return lambda: jax.block_until_ready(planned(arrays, roots, key))

    planners = {f"tree D {depth}": grasp.CompleteTree(depth, 0.5) for depth in (1, 2, 3)}
    planners |= {f"UCT-50 D {depth}": grasp.UCT(50, depth) for depth in (3, 5)}
    planners["Gumbel-16"] = grasp.Gumbel(16)
    contenders = {
        name: contender(functools.partial(plan_batch, planner))
        for name, planner in planners.items()
    }
    return contenders | {
        f"mctx {count}": contender(grasp.Gumbel(count).search) for count in (16, 50)
    }


def called(function: Callable[..., Any], parts: Any) -> tuple[Callable[..., Any], Any]:
    """`function(*parts, ...)` as `CompiledAgent` compiles decisions, and the arrays to call it
    with.
    """
    import equinox as eqx
    import jax

    arrays, static = eqx.partition(parts, eqx.is_array)
    leaves, structure = jax.tree.flatten(arrays)

    def whole(leaves: Any, *rest: Any) -> Any:
        return function(*eqx.combine(jax.tree.unflatten(structure, leaves), static), *rest)

    return jax.jit(whole), tuple(leaves)


def pytorch(width: int, batch: int) -> dict[str, Callable[[], Any]]:
    import torch
    from torch_grasp import Affordances, Model, plan

    model, affordances = Model(OBSERVATION, ACTION, width, 0.99), Affordances(ACTION, K, width)
    states = torch.randn(batch, width)

    def planned(depth: int) -> Any:
        with torch.no_grad():
            return plan(model, affordances, states, depth, 0.5)[2].numpy()

    return {f"PyTorch D {depth}": lambda depth=depth: planned(depth) for depth in (1, 2, 3)}


def literal(width: int) -> dict[str, Callable[[], Any]]:
    """Our UCT-50, and the dictionary tree that is its oracle in the tests, for one root."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    import grasp

    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    from planners.test_uct import literal as searched

    both = model, affordances = parts(width)
    key, planner = jax.random.key(1), grasp.UCT(50, 3)
    root = model.encode(jnp.ones(OBSERVATION), jnp.zeros(0))
    compiled = types.SimpleNamespace(
        step=eqx.filter_jit(model.step), value=eqx.filter_jit(model.value)
    )
    proposed = eqx.filter_jit(affordances)
    planned, arrays = called(planner, both)
    return {
        "ours": lambda: planned(arrays, root, key).value,
        "literal": lambda: searched(compiled, proposed, root, planner, key),
    }
