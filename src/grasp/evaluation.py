"""Episodes played without learning: returns, success, and which head was chosen when.

Several episodes run side by side so that one compiled call decides for all of them.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from grasp.agents.compiled import CompiledAgent
from grasp.environments.boundary import Boundary


class Episode(NamedTuple):
    seed: int
    returned: float  # undiscounted sum of rewards
    decisions: int
    environment_steps: int
    success: bool | None
    heads: list[int]  # the affordance chosen at each decision


def play(
    agent: CompiledAgent,
    worlds: Sequence[Boundary],
    seeds: Sequence[int],
    progress: Callable[[Episode], None] = lambda episode: None,
) -> list[Episode]:
    """One greedy episode per seed, in their order; as many at once as there are worlds."""
    waiting = list(enumerate(seeds))[::-1]
    finished: dict[int, Episode] = {}
    lanes = [_Lane(world, agent.sizes.observation, agent.sizes.goal) for world in worlds]
    step = 0
    while len(finished) < len(seeds):
        for lane in lanes:
            if lane.episode is None and waiting:
                lane.start(*waiting.pop())
        observations = np.stack([lane.observation for lane in lanes])
        goals = np.stack([lane.goal for lane in lanes])
        decision = agent.act_greedily(observations, goals, step)
        actions, heads = np.asarray(decision.actions), np.asarray(decision.heads)
        for index, lane in enumerate(lanes):
            if lane.episode is not None and lane.advance(actions[index], int(heads[index])):
                finished[lane.episode] = lane.result()
                progress(finished[lane.episode])
                lane.episode = None
        step += 1
    return [finished[index] for index in range(len(seeds))]


class _Lane:
    """One world and the episode under way in it."""

    def __init__(self, world: Boundary, observation_size: int, goal_size: int):
        self.world = world
        self.episode: int | None = None
        self.observation = np.zeros(observation_size, np.float32)
        self.goal = np.zeros(goal_size, np.float32)

    def start(self, episode: int, seed: int) -> None:
        self.episode, self.seed = episode, seed
        self.observation, self.goal = self.world.reset(seed)
        self.returned, self.steps, self.heads = 0.0, 0, []
        self.success: bool | None = None

    def advance(self, action: np.ndarray, head: int) -> bool:
        outcome = self.world.step(action)
        self.observation, self.goal = outcome.observation, outcome.goal
        self.returned += outcome.reward
        self.steps += outcome.duration
        self.heads.append(head)
        self.success = outcome.success
        return outcome.ended

    def result(self) -> Episode:
        return Episode(
            seed=self.seed,
            returned=self.returned,
            decisions=len(self.heads),
            environment_steps=self.steps,
            success=self.success,
            heads=self.heads,
        )
