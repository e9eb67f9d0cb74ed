"""What the machine can do at best: float32 matrix products, by whichever library does them fastest
here, and the operations that an update cannot do without.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from measure import Timing, take_turns


def peak(seconds: float = 6.0) -> tuple[float, dict[str, Timing]]:
    """FLOP/s of the fastest square product of size 1024 to 2048, and how long each took."""
    contenders: dict[str, Callable[[], Any]] = {}
    operations = {}
    product = jax.jit(lambda a, b: a @ b)
    for size in (1024, 2048):
        host = np.random.default_rng(0).normal(size=(size, size)).astype(np.float32)
        device = jnp.asarray(host)
        contenders[f"JAX {size}"] = lambda a=device: product(a, a)
        contenders[f"NumPy {size}"] = lambda a=host: a @ a
        operations |= {f"{library} {size}": 2 * size**3 for library in ("JAX", "NumPy", "PyTorch")}
        try:
            import torch
        except ImportError:
            continue
        tensor = torch.from_numpy(host)
        contenders[f"PyTorch {size}"] = lambda a=tensor: a @ a
    timings = take_turns(contenders, seconds)
    return max(operations[name] / timings[name].median for name in timings), timings


@dataclasses.dataclass(frozen=True)
class Network:
    """Multiply-adds of one row through an MLP, as it is and with the state's part of the first
    layer left out (it is shared by the K children of a state).
    """

    layers: tuple[tuple[int, int], ...]
    shared: int = 0  # inputs of the first layer that all children share

    def row(self) -> int:
        return sum(a * b for a, b in self.layers)

    def child(self) -> int:
        return self.row() - self.shared * self.layers[0][1]

    def state(self) -> int:
        return self.shared * self.layers[0][1]


def update_flops(agent: Any, observation: int, action: int) -> int:
    """FLOPs of the matrix products of one update with nothing computed twice.

    A product forward is 2 operations a multiply-add; backward it is as many again for what flows to
    its input and as many for its weights. Only what a gradient is asked for is counted: the
    affordance loss needs no gradient of the model's weights.
    """
    W, K, D, n, B = (
        agent.width,
        agent.num_affordances,
        agent.planner.depth,
        agent.window,
        agent.batch,
    )
    square = (W, W)
    encoder = Network(((observation, W), square, square))
    embedding = Network(((W + action, W), square), shared=W)
    dynamics = Network((square, square))
    judge = Network(((2 * W, W), (W, 1)))  # reward, continuation
    value = Network((square, square, (W, 1)))
    heads = Network((square, square, (W, K * action)))
    step = embedding.child() + dynamics.row() + 2 * judge.row()

    nodes = [K**level for level in range(D)]  # that are expanded, from one root
    tree_model = sum(nodes) * (embedding.state() + K * step) + K**D * value.row()
    tree_heads = sum(nodes) * heads.row()
    unrolled = encoder.row() + n * (embedding.state() + step) + (n + 1) * value.row()
    roots = round(agent.roots_per_window)

    targets = tree_model + tree_heads + (1 + n) * encoder.row()  # forward only
    learning = 3 * unrolled - (observation + 0) * W  # no gradient flows to the observation
    affordances = roots * (2 * tree_model + 3 * tree_heads)
    return 2 * B * (targets + learning + affordances)
