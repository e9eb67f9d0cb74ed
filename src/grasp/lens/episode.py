"""An episode that can be stepped, scrubbed, and played again under other rules.

An episode is a function of its `Spec`: the start, the goal, and from which decision on which heads
are off or one is forced. Asking for a moment plays as far as needed; a spec that differs only later
takes over what was played before.
"""

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from grasp.agents.compiled import CompiledAgent
from grasp.environments.boundary import Boundary
from grasp.lens.scenes import Layout, arrange
from grasp.planners.plan import Plan
from grasp.randomness import fresh_start

LONGEST = 10_000  # decisions; an environment may have no end of its own


class Rule(NamedTuple):
    """Which heads may be chosen."""

    off: frozenset[int] = frozenset()
    force: int | None = None

    def chosen(self, policy: Sequence[float] | Any) -> int:
        """The forced head, or the most probable of those that are on."""
        if self.force is not None:
            return self.force
        allowed = [head not in self.off for head in range(len(policy))]
        return int(np.where(allowed, policy, -1).argmax())


class Spec(NamedTuple):
    start: int = 0  # number of the episode, as `grasp evaluate` counts them
    order: tuple[int, ...] | None = None  # the goal, where it can be chosen
    scene: Layout | None = None  # a start arranged by hand
    rules: tuple[tuple[int, Rule], ...] = ((0, Rule()),)  # each from its decision on

    def rule_at(self, decision: int) -> Rule:
        return [rule for since, rule in self.rules if since <= decision][-1]


class Moment(NamedTuple):
    """The world before a decision."""

    observation: np.ndarray
    goal: np.ndarray
    state: dict[str, Any]  # empty where the environment cannot give it
    plan: Plan  # of numpy arrays
    returned: float  # so far
    steps: int  # of the environment, so far


class Choice(NamedTuple):
    head: int
    action: np.ndarray  # in [-1, 1]
    reward: float
    duration: int


class Episode:
    def __init__(self, agent: CompiledAgent, world: Boundary, spec: Spec):
        self.agent, self.world, self.spec = agent, world, spec
        self.moments: list[Moment] = []
        self.choices: list[Choice] = []
        self.ended = False
        self.success: bool | None = None
        self._arrive(*begin(world, spec), 0.0, 0)

    def take_over(self, earlier: "Episode") -> None:
        """Take over what an episode of the same start played under the same rules."""
        shared = 0
        while shared < len(earlier.choices) and (
            self.spec.rule_at(shared) == earlier.spec.rule_at(shared)
        ):
            shared += 1
        self.choices = earlier.choices[:shared]
        self.moments = earlier.moments[: shared + 1]
        if shared == len(earlier.choices):
            self.ended, self.success = earlier.ended, earlier.success
        self._return_to(shared)

    def reach(self, decision: int) -> int:
        """Play up to a decision or the end (-1 means the end); returns where it stands."""
        while not self.ended and (decision < 0 or len(self.choices) < decision):
            self._advance()
        last = len(self.moments) - 1
        return last if decision < 0 else min(decision, last)

    @property
    def returned(self) -> float:
        return self.moments[-1].returned

    def frame(self, at: int) -> np.ndarray | None:
        """The picture [height, width, 3] of a moment, where the environment can draw it."""
        latest = at == len(self.moments) - 1
        if not latest and not self.moments[at].state:
            return None
        if not latest:
            self._put(self.moments[at])
        picture: Any = self.world.environment.render()
        if not latest:
            self.stand_at_the_end()
        return picture if isinstance(picture, np.ndarray) and picture.ndim == 3 else None

    def stand_at_the_end(self) -> None:
        """Put the world back where the episode stands."""
        self._return_to(len(self.moments) - 1)

    def _advance(self) -> None:
        now = self.moments[-1]
        head = self.spec.rule_at(len(self.choices)).chosen(now.plan.policy)
        action = np.asarray(now.plan.actions)[head]
        outcome = self.world.step(action)
        self.choices.append(Choice(head, action, outcome.reward, outcome.duration))
        self.ended = outcome.ended or len(self.choices) >= LONGEST
        self.success = outcome.success
        returned = now.returned + outcome.earned
        self._arrive(outcome.observation, outcome.goal, returned, now.steps + outcome.steps)

    def _arrive(
        self, observation: np.ndarray, goal: np.ndarray, returned: float | int, steps: int
    ) -> None:
        state = copy.deepcopy(self.world.state())  # an environment may hand out its own arrays
        plan = one_plan(self.agent, observation, goal)
        self.moments.append(Moment(observation, goal, state, plan, float(returned), steps))

    def _return_to(self, at: int) -> None:
        """Put the world where it stood at a moment: by its state, or by the same actions again."""
        if self._put(self.moments[at]):
            return
        begin(self.world, self.spec)
        for choice in self.choices[:at]:
            self.world.step(choice.action)

    def _put(self, moment: Moment) -> bool:
        return self.world.restore(moment.state, moment.observation, moment.goal)


def one_plan(agent: CompiledAgent, observation: np.ndarray, goal: np.ndarray) -> Plan:
    """The plan for one observation: what `LoadedAgent.plan` says of it."""
    return jax.tree.map(lambda part: np.asarray(part)[0], agent.plan(observation[None], goal[None]))


class Result(NamedTuple):
    """How an episode ended under a rule."""

    rule: Rule
    returned: float
    success: bool | None
    decisions: int
    steps: int


def compare(
    agent: CompiledAgent, worlds: Sequence[Boundary], spec: Spec, rules: Sequence[Rule]
) -> list[Result]:
    """The same start played to its end under each rule, side by side: one compiled call decides for
    all of them.
    """
    seen = [begin(world, spec) for world in worlds]
    results = [Result(rule, 0.0, None, 0, 0) for rule in rules]
    going = list(range(len(rules)))
    while going:
        observations, goals = (np.stack(parts) for parts in zip(*seen, strict=True))
        plan = agent.plan(observations, goals)
        policy, actions = np.asarray(plan.policy), np.asarray(plan.actions)
        for lane in list(going):
            before = results[lane]
            outcome = worlds[lane].step(actions[lane, rules[lane].chosen(policy[lane])])
            seen[lane] = (outcome.observation, outcome.goal)
            results[lane] = Result(
                rule=before.rule,
                returned=before.returned + outcome.earned,
                success=outcome.success,
                decisions=before.decisions + 1,
                steps=before.steps + outcome.steps,
            )
            if outcome.ended or before.decisions + 1 >= LONGEST:
                going.remove(lane)
    return results


def begin(world: Boundary, spec: Spec) -> tuple[np.ndarray, np.ndarray]:
    """Reset a world to the start of a spec; returns its observation and goal."""
    # The starts of `LoadedAgent.evaluate` with its own seed 0.
    seed = fresh_start(0, spec.start)
    fixed = None if spec.order is None else {"order": spec.order}
    observation, _ = world.environment.reset(seed=seed, options=fixed)
    return world.arrays(observation) if spec.scene is None else arrange(world, spec.scene)
