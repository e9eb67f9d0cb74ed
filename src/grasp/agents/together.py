"""Several seeds of one agent that learn side by side: arrays and windows stacked along a first
axis, and one compiled call that decides, or learns, for all of them.

A seed that has nothing to ask takes part with another's question, and its answer is thrown away: so
there is one shape, compiled once, however many seeds still run.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from grasp.agents.compiled import CompiledAgent, chosen, over_devices
from grasp.replay import Window


class Question(NamedTuple):
    """What is to be decided in one run."""

    observations: np.ndarray  # [lanes, observation]
    goals: np.ndarray  # [lanes, goal]
    decisions: int  # before this one


class Lesson(NamedTuple):
    """What one run is to learn from."""

    windows: Window  # [U, B, ...]
    first: int  # updates before these


class Together:
    """Agents that differ in their seed alone. One by itself is called as it is."""

    def __init__(self, agents: Sequence[CompiledAgent]):
        self.agents = agents
        self._arrays: Any = None  # stacked, from the first call on
        self._origins = jnp.stack([agent.origin for agent in agents])
        self._over_devices = over_devices(agents[0].agent.batch, axis=2)
        one = agents[0].functions

        def update(arrays: Any, of: Any, windows: Window, first: Any, asked: Any) -> Any:
            after, metrics, finite = one.update(arrays, of, windows, first)
            return chosen(asked, after, arrays), metrics, finite

        self._act = jax.jit(jax.vmap(one.act))
        self._update = jax.jit(jax.vmap(update), donate_argnums=0)
        self._part = jax.jit(lambda arrays, index: jax.tree.map(lambda leaf: leaf[index], arrays))

    def act(self, questions: Mapping[CompiledAgent, Question]) -> dict[CompiledAgent, np.ndarray]:
        """The actions [lanes, action] for each agent that is asked."""
        if len(self.agents) == 1:
            return {one: np.asarray(one.act(*asked).actions) for one, asked in questions.items()}
        self._gather()
        observations, goals, decisions = self._stacked(questions)
        decision = self._act(self._arrays, self._origins, observations, goals, np.int32(decisions))
        actions = np.asarray(decision.actions)  # [seeds, lanes, action]
        return {one: actions[self.agents.index(one)] for one in questions}

    def update(
        self, lessons: Mapping[CompiledAgent, Lesson]
    ) -> dict[CompiledAgent, dict[str, Any] | None]:
        """The metrics of each agent that learns; None where a number came out that is not finite:
        that agent then stays as it was.
        """
        if len(self.agents) == 1:
            return {one: one.update(*lesson) for one, lesson in lessons.items()}
        self._gather()
        windows, first = self._stacked(lessons)
        if self._over_devices is not None:
            windows = jax.device_put(windows, self._over_devices)
        learns = np.array([one in lessons for one in self.agents])
        self._arrays, *found = self._update(
            self._arrays, self._origins, windows, np.int32(first), learns
        )
        metrics, finite = jax.device_get(found)
        answers = {}
        for index, one in enumerate(self.agents):
            self._belongs(index)
            if one in lessons:
                own = {name: values[index] for name, values in metrics.items()}
                answers[one] = own if finite[index] else None
        return answers

    def _gather(self) -> None:
        if self._arrays is None:
            self._arrays = jax.tree.map(
                lambda *leaves: jnp.stack(leaves), *(agent.arrays for agent in self.agents)
            )
            for index in range(len(self.agents)):
                self._belongs(index)

    def _belongs(self, index: int) -> None:
        self.agents[index].belong(lambda: self._part(self._arrays, index))

    def _stacked(self, asked: Mapping[CompiledAgent, Any]) -> Any:
        """What is asked, along a first axis of all agents; the absent ask what another asks."""
        another = next(iter(asked.values()))
        rows = [asked.get(agent, another) for agent in self.agents]
        return jax.tree.map(lambda *leaves: np.stack(leaves), *rows)
