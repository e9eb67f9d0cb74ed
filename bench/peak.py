"""What the machine can do at best: float32 matrix products, by whichever library does them fastest
here, and the operations that an update cannot do without.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from measure import Timing, race

SIZES = (1024, 2048)


def peak(seconds: float) -> tuple[float, dict[str, Timing]]:
    """FLOP/s of the fastest square product, and how long each took."""
    timings = race([("peak.jax", {}), ("peak.numpy", {}), ("peak.pytorch", {})], seconds)
    speeds = [2 * int(name.split()[1]) ** 3 / timing.median for name, timing in timings.items()]
    return max(speeds), timings


def numpy() -> dict[str, Callable[[], Any]]:
    return {f"NumPy {size}": lambda a=square: a @ a for size, square in _squares().items()}


def jax() -> dict[str, Callable[[], Any]]:
    from jax import jit
    from jax.numpy import asarray

    product = jit(lambda a: a @ a)
    squares = {size: asarray(square) for size, square in _squares().items()}
    return {f"JAX {size}": lambda a=square: product(a) for size, square in squares.items()}


def pytorch() -> dict[str, Callable[[], Any]]:
    import torch

    squares = {size: torch.from_numpy(square) for size, square in _squares().items()}
    return {f"PyTorch {size}": lambda a=square: a @ a for size, square in squares.items()}


def _squares() -> dict[int, np.ndarray]:
    random = np.random.default_rng(0)
    return {size: random.normal(size=(size, size)).astype(np.float32) for size in SIZES}


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
    W, K, D = agent.width, agent.num_affordances, agent.planner.depth
    n, B = agent.window, agent.batch
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
    learning = 3 * unrolled - observation * W  # no gradient flows to the observation
    affordances = roots * (2 * tree_model + 3 * tree_heads)
    return 2 * B * (targets + learning + affordances)
