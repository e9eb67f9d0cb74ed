"""Agents trained on probe environments, from decisions taken at random."""

import numpy as np

from grasp.agents.compiled import CompiledAgent
from grasp.environments.boundary import Boundary
from grasp.randomness import Stream, generator
from grasp.replay import Replay
from worlds import Probe


def replayed(kind, decisions=600):
    """The sizes of a probe environment and a replay of decisions taken in it at random."""
    world = Boundary(Probe(kind), kind)
    sizes = world.sizes
    replay = Replay(
        capacity=2_000,
        lanes=1,
        observation_size=sizes.observation,
        goal_size=sizes.goal,
        action_size=1,
    )
    random = np.random.default_rng(0)
    replay.begin(0, *world.reset(0))
    for step in range(decisions):
        action = random.uniform(-1, 1, 1).astype(np.float32)
        outcome = world.step(action)
        replay.add(
            0,
            action=action,
            reward=outcome.reward,
            duration=1,
            terminated=outcome.terminated,
            observation=outcome.observation,
            goal=outcome.goal,
        )
        if outcome.ended:
            replay.begin(0, *world.reset(step + 1))
    return sizes, replay


def sampled(replay, agent, call):
    """What one call of the update learns from."""
    random = generator(0, Stream.SAMPLE, call)
    parts = agent.updates_per_call
    return replay.sample(parts * agent.batch, agent.window, random).split(parts)


def learned(kind, agent, calls=60):
    """An agent after `calls` calls of its update on random decisions in a probe environment."""
    sizes, replay = replayed(kind)
    compiled = CompiledAgent(agent, sizes, seed=0)
    for call in range(calls):
        compiled.update(sampled(replay, agent, call), agent.updates_per_call * call)
    return compiled


def greedy(agent, observation, goal=()):
    decision = agent.act_greedily(
        np.array([[observation]], np.float32), np.array(goal, np.float32).reshape(1, -1)
    )
    return float(decision.actions[0, 0])
