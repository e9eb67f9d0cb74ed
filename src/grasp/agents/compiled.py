"""An agent with its state, compiled: what the loop, the evaluation and `grasp.load` hold.

Each function is compiled once per shape of its input, for all seeds: a seed is an argument, and
keys are made inside the compiled functions from (seed, step), so that a call costs one dispatch.
Where JAX sees several devices, each takes its share of an update's batch; parameters are on all of
them.
"""

import copy
import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, PRNGKeyArray

from grasp.agents.agent import Agent, Decision, ModelAgent, Sizes
from grasp.errors import UsageError
from grasp.planners.plan import Plan
from grasp.randomness import Stream, key, origin
from grasp.replay import Window

Leaves = tuple[Array, ...]  # of an agent's state


def compiled_update(function: Callable[..., Any]) -> Any:
    """`jax.jit` as it is fastest for an update, whose first argument is given away.

    On a CPU, XLA hands chains of layers to YNNPACK; its plain matrix products make an update faster
    by up to a fifth. Decisions, which are for few states, are slower with them
    (docs/performance.md).
    """
    return jax.jit(function, compiler_options=_plain_products(), donate_argnums=0)


@functools.cache
def _plain_products() -> dict[str, str] | None:
    """The option, or None where there is no CPU or this XLA knows no such option."""
    option = {"xla_cpu_experimental_ynn_fusion_type": ""}
    try:
        jax.jit(lambda: jnp.zeros(()), compiler_options=option).lower().compile()
    except jax.errors.JaxRuntimeError:
        return None
    return option if jax.default_backend() == "cpu" else None


def initialiser(agent: Agent, sizes: Sizes) -> tuple[Callable[[PRNGKeyArray], Any], Any]:
    """key -> the arrays of `agent.init`, and the rest of its state. In one compiled call, which
    spares a start two seconds, unless heads of one's own ask for numbers while they are made.
    """

    def arrays(at: PRNGKeyArray) -> Any:
        return eqx.filter(agent.init(sizes, at), eqx.is_array)

    try:
        shapes = eqx.filter_eval_shape(agent.init, sizes, jax.random.key(0))
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError):
        return arrays, eqx.filter(agent.init(sizes, jax.random.key(0)), eqx.is_array, inverse=True)
    _, static = eqx.partition(shapes, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))
    return jax.jit(arrays), static


class CompiledAgent:
    def __init__(self, agent: Agent, sizes: Sizes, seed: int):
        self.agent = agent
        self.sizes = sizes
        self._init, static = initialiser(agent, sizes)
        arrays = self._init(key(origin(seed), Stream.INITIALISE, 0))
        self._structure = structure = jax.tree.structure(arrays)
        self._start(seed, arrays)

        def whole(leaves: Leaves) -> Any:  # it lives on in JAX's caches, so it does not hold self
            return eqx.combine(jax.tree.unflatten(structure, leaves), static)

        def act(leaves: Leaves, of: PRNGKeyArray, observations: Any, goals: Any, step: Any) -> Any:
            at = key(of, Stream.ACT, step)
            return agent.act(whole(leaves), observations, goals, at, step)

        def act_greedily(
            leaves: Leaves, of: PRNGKeyArray, observations: Any, goals: Any, step: Any
        ) -> Any:
            at = key(of, Stream.EVALUATE, step)
            return agent.act_greedily(whole(leaves), observations, goals, at)

        def update(leaves: Leaves, of: PRNGKeyArray, windows: Window, first: Any) -> Any:
            def once(leaves: Leaves, window_and_index: Any) -> tuple[Leaves, dict[str, Any]]:
                window, index = window_and_index
                at = key(of, Stream.UPDATE, first + index)
                state, metrics = agent.update(whole(leaves), window, at)
                return _leaves(eqx.filter(state, eqx.is_array)), metrics

            count = jnp.arange(agent.updates_per_call)
            after, metrics = jax.lax.scan(once, leaves, (windows, count))
            metrics = jax.tree.map(lambda values: values.mean(0), metrics)
            finite = all_finite((after, metrics))
            kept = jax.tree.map(lambda new, old: jnp.where(finite, new, old), after, leaves)
            return kept, metrics, finite

        def q_values(leaves: Leaves, observations: Any, goals: Any, actions: Any) -> Any:
            if not isinstance(agent, ModelAgent):
                raise UsageError(f"{type(agent).__name__} has no model to ask; take GA-4")
            return agent.q_values(whole(leaves), observations, goals, actions)

        self._act = jax.jit(act)
        self._act_greedily = jax.jit(act_greedily)
        self._update = compiled_update(update)
        self._q_values = jax.jit(q_values)
        self._over_devices = over_devices(agent.batch)

    def sibling(self, seed: int) -> "CompiledAgent":
        """The same agent from another seed; what is compiled serves both."""
        other = copy.copy(self)
        other._start(seed, self._init(key(origin(seed), Stream.INITIALISE, 0)))
        return other

    def _start(self, seed: int, arrays: Any) -> None:
        self.seed, self.origin, self.arrays = seed, origin(seed), arrays

    @property
    def arrays(self) -> Any:
        """All that learning changes, in the shape of the agent's state. It is kept as a list of
        arrays: taking the state's modules apart at each call would cost more than a decision.
        """
        return jax.tree.unflatten(self._structure, self._arrays)

    @arrays.setter
    def arrays(self, arrays: Any) -> None:
        self._arrays = _leaves(arrays)

    def act(self, observations: np.ndarray, goals: np.ndarray, decisions: int) -> Decision:
        """Explore, for a batch of observations, after `decisions` decisions of the run."""
        return self._act(self._arrays, self.origin, observations, goals, np.int32(decisions))

    def act_greedily(self, observations: np.ndarray, goals: np.ndarray, step: int = 0) -> Decision:
        return self._act_greedily(self._arrays, self.origin, observations, goals, np.int32(step))

    def plan(self, observations: np.ndarray, goals: np.ndarray) -> Plan:
        plan = self.act_greedily(observations, goals).plan
        if plan is None:
            raise UsageError(
                f"{type(self.agent).__name__} does not plan; ask a GrASP agent, as GA-4"
            )
        return plan

    def q_values(
        self, observations: np.ndarray, goals: np.ndarray, actions: np.ndarray
    ) -> np.ndarray:
        """[B, M]: what the model says of any actions [B, M, action], in [-1, 1]."""
        return np.asarray(self._q_values(self._arrays, observations, goals, actions))

    def update(self, windows: Window, first: int) -> dict[str, Any] | None:
        """`updates_per_call` updates from windows [U, B, ...]; `first` counts those before.

        None where a number came out that is not finite: the agent then stays as it was.
        """
        if self._over_devices is not None:
            windows = jax.device_put(windows, self._over_devices)
        self._arrays, metrics, finite = self._update(
            self._arrays, self.origin, windows, np.int32(first)
        )
        return metrics if finite else None


def _leaves(tree: Any) -> Leaves:
    return tuple(jax.tree.leaves(tree))


def all_finite(tree: Any) -> Any:
    """Whether every number of a pytree is finite."""
    leaves = [leaf for leaf in jax.tree.leaves(tree) if jnp.issubdtype(leaf.dtype, jnp.inexact)]
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in leaves]))


def over_devices(batch: int) -> NamedSharding | None:
    """How windows [U, B, ...] are laid over the devices: B in as many parts as divide it, or None
    where there is one device.
    """
    devices = jax.devices()
    parts = max(count for count in range(1, len(devices) + 1) if batch % count == 0)
    if parts == 1:
        return None
    return NamedSharding(Mesh(devices[:parts], ("batch",)), PartitionSpec(None, "batch"))
