"""An agent with its state, compiled: what the loop, the evaluation and `grasp.load` hold.

Each function is compiled once per shape of its input, for all seeds: a seed is an argument, and
keys are made inside the compiled functions from (seed, step), so that a call costs one dispatch.
Where JAX sees several devices, each takes its share of an update's batch; parameters are on all of
them.
"""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import PRNGKeyArray

from grasp.agents.agent import Agent, Decision, ModelAgent, Sizes
from grasp.errors import UsageError
from grasp.planners.plan import Plan
from grasp.randomness import Stream, key, origin
from grasp.replay import Window


class Functions(NamedTuple):
    """What is compiled: each takes the arrays of an agent and the origin of its seed's keys."""

    act: Callable[..., Decision]
    act_greedily: Callable[..., Decision]
    update: Callable[..., tuple[Any, dict[str, Any], Any]]


def functions(agent: Agent, static: Any) -> Functions:
    """The functions of an agent over the arrays of its state; `static` is the rest of it."""

    def act(arrays: Any, of: PRNGKeyArray, observations: Any, goals: Any, step: Any) -> Decision:
        at = key(of, Stream.ACT, step)
        return agent.act(eqx.combine(arrays, static), observations, goals, at, step)

    def act_greedily(
        arrays: Any, of: PRNGKeyArray, observations: Any, goals: Any, step: Any
    ) -> Decision:
        at = key(of, Stream.EVALUATE, step)
        return agent.act_greedily(eqx.combine(arrays, static), observations, goals, at)

    def update(
        arrays: Any, of: PRNGKeyArray, windows: Window, first: Any
    ) -> tuple[Any, dict[str, Any], Any]:
        def once(arrays: Any, window_and_index: Any) -> tuple[Any, dict[str, Any]]:
            window, index = window_and_index
            at = key(of, Stream.UPDATE, first + index)
            state, metrics = agent.update(eqx.combine(arrays, static), window, at)
            return eqx.filter(state, eqx.is_array), metrics

        count = jnp.arange(agent.updates_per_call)
        after, metrics = jax.lax.scan(once, arrays, (windows, count))
        metrics = jax.tree.map(lambda values: values.mean(0), metrics)
        finite = all_finite((after, metrics))
        return chosen(finite, after, arrays), metrics, finite

    return Functions(act, act_greedily, update)


class CompiledAgent:
    def __init__(self, agent: Agent, sizes: Sizes, seed: int):
        self.agent = agent
        self.sizes = sizes
        state = agent.init(sizes, key(origin(seed), Stream.INITIALISE, 0))
        _, static = eqx.partition(state, eqx.is_array)
        self._start(seed, state)

        def q_values(arrays: Any, observations: Any, goals: Any, actions: Any) -> Any:
            if not isinstance(agent, ModelAgent):
                raise UsageError(f"{type(agent).__name__} has no model to ask; take GA-4")
            return agent.q_values(eqx.combine(arrays, static), observations, goals, actions)

        self.functions = functions(agent, static)
        self._act = jax.jit(self.functions.act)
        self._act_greedily = jax.jit(self.functions.act_greedily)
        self._update = jax.jit(self.functions.update, donate_argnums=0)
        self._q_values = jax.jit(q_values)
        self._over_devices = over_devices(agent.batch, axis=1)

    def sibling(self, seed: int) -> "CompiledAgent":
        """The same agent from another seed; what is compiled serves both."""
        other = copy.copy(self)
        other._start(seed, self.agent.init(self.sizes, key(origin(seed), Stream.INITIALISE, 0)))
        return other

    def _start(self, seed: int, state: Any) -> None:
        self.seed, self.origin = seed, origin(seed)
        self._arrays = eqx.filter(state, eqx.is_array)
        self._share: Callable[[], Any] | None = None

    @property
    def arrays(self) -> Any:
        """All that learning changes."""
        if self._arrays is None and self._share is not None:
            self._arrays = self._share()
        return self._arrays

    @arrays.setter
    def arrays(self, arrays: Any) -> None:
        if self._share is not None:
            raise RuntimeError("this agent learns together with other seeds; it has no own arrays")
        self._arrays = arrays

    def belong(self, share: Callable[[], Any]) -> None:
        """From now on `share` gives the arrays: they have moved, or were changed there."""
        self._arrays, self._share = None, share

    def act(self, observations: np.ndarray, goals: np.ndarray, decisions: int) -> Decision:
        """Explore, for a batch of observations, after `decisions` decisions of the run."""
        return self._act(self.arrays, self.origin, observations, goals, np.int32(decisions))

    def act_greedily(self, observations: np.ndarray, goals: np.ndarray, step: int = 0) -> Decision:
        return self._act_greedily(self.arrays, self.origin, observations, goals, np.int32(step))

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
        return np.asarray(self._q_values(self.arrays, observations, goals, actions))

    def update(self, windows: Window, first: int) -> dict[str, Any] | None:
        """`updates_per_call` updates from windows [U, B, ...]; `first` counts those before.

        None where a number came out that is not finite: the agent then stays as it was.
        """
        if self._over_devices is not None:
            windows = jax.device_put(windows, self._over_devices)
        self.arrays, metrics, finite = self._update(
            self.arrays, self.origin, windows, np.int32(first)
        )
        return metrics if finite else None


def all_finite(tree: Any) -> Any:
    """Whether every number of a pytree is finite."""
    leaves = [leaf for leaf in jax.tree.leaves(tree) if jnp.issubdtype(leaf.dtype, jnp.inexact)]
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in leaves]))


def chosen(whether: Any, new: Any, old: Any) -> Any:
    """One of two pytrees."""
    return jax.tree.map(lambda a, b: jnp.where(whether, a, b), new, old)


def over_devices(batch: int, axis: int) -> NamedSharding | None:
    """How windows are laid over the devices: the axis of the batch in as many parts as divide it,
    or None where there is one device.
    """
    devices = jax.devices()
    parts = max(count for count in range(1, len(devices) + 1) if batch % count == 0)
    if parts == 1:
        return None
    return NamedSharding(Mesh(devices[:parts], ("batch",)), PartitionSpec(*[None] * axis, "batch"))
