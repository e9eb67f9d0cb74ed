"""Pretrain the policies of an option space by reinforcement learning (Section 3, "pretrained").

Goal-reaching with TD3 and hindsight: an option costs 1 a step until it is where it says,

    r = 0 and the end where reached(body', option), else -1,

and most sampled decisions are judged by a place that their own episode came to later, so that every
episode teaches how to get somewhere.
"""

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from grasp.agents.agent import Sizes
from grasp.agents.compiled import CompiledAgent
from grasp.agents.td3 import TD3
from grasp.options import Reaching, ReachingOptions
from grasp.randomness import Stream, episode_seed, generator
from grasp.replay import Window

HINDSIGHT = 0.8  # share of sampled decisions that get another option
GOALS = 1_000  # random options that the report is over


@dataclasses.dataclass(frozen=True)
class Pretraining:
    steps: int = 30_000  # primitive steps
    seed: int = 0
    repeat: int = 1  # primitive steps for which an output is held while learning
    random_share: float = 0.2  # of outputs taken at random
    agent: TD3 = TD3(
        width=64,
        discount=0.98,
        actor_learning_rate=1e-3,
        critic_learning_rate=1e-3,
        noise=0.2,
        warm_up=1_000,
        updates_per_call=50,
    )


# A crossing of Point-Mass takes 250 steps of 20 ms; held outputs bring its end within sight.
SETTINGS = {
    "collect": Pretraining(),
    "point-mass": Pretraining(
        steps=400_000, repeat=5, agent=dataclasses.replace(Pretraining.agent, width=128)
    ),
}


class Hindsight:
    """Episodes of bodies and outputs; windows of one decision with options chosen afterwards."""

    def __init__(self, capacity: int, body: int, outputs: int, options: int):
        self.bodies = np.zeros((capacity, body), np.float32)
        self.following = np.zeros((capacity, body), np.float32)
        self.outputs = np.zeros((capacity, outputs), np.float32)
        self.options = np.zeros((capacity, options), np.float32)
        self.last = np.zeros(capacity, np.int64)  # row of the last decision of the same episode
        self.size = 0

    def add(self, episode: list[tuple[np.ndarray, np.ndarray, np.ndarray]], option: Any) -> None:
        first, count = self.size, len(episode)
        rows = slice(first, first + count)
        self.bodies[rows] = [body for body, _, _ in episode]
        self.outputs[rows] = [output for _, output, _ in episode]
        self.following[rows] = [after for _, _, after in episode]
        self.options[rows] = option
        self.last[rows] = first + count - 1
        self.size += count

    def sample(self, batch: int, reaching: Reaching, random: np.random.Generator) -> Window:
        rows = random.integers(self.size, size=batch)
        later = rows + (random.random(batch) * (self.last[rows] - rows + 1)).astype(np.int64)
        relabelled = (random.random(batch) < HINDSIGHT)[:, None]
        came_to = reaching.achieved(self.following[later])
        options = np.where(relabelled, came_to, self.options[rows])
        before = reaching.inputs(self.bodies[rows], options)
        after = reaching.inputs(self.following[rows], options)
        reached = reaching.reached(self.following[rows], options)
        return Window(
            observations=np.stack([before, after], axis=1).astype(np.float32),
            goals=np.zeros((batch, 2, 0), np.float32),
            actions=self.outputs[rows][:, None],
            rewards=np.where(reached, 0, -1).astype(np.float32)[:, None],
            durations=np.ones((batch, 1), np.float32),
            valid=np.ones((batch, 1), bool),
            terminated=reached,
        )


def pretrain(
    reaching: Reaching,
    environment: gymnasium.Env,
    pretraining: Pretraining,
    show: Callable[[int, float], None] = lambda steps, share: None,
) -> tuple[ReachingOptions, dict[str, Any]]:
    """Option policies, and a report on how well they do."""
    began, agent, seed = time.monotonic(), pretraining.agent, pretraining.seed
    body = reaching.body(environment.reset(seed=0)[0])
    inputs = reaching.inputs(body, reaching.space.low)
    compiled = CompiledAgent(agent, Sizes(inputs.size, 0, reaching.outputs), seed)
    memory = Hindsight(
        pretraining.steps + reaching.cap, body.size, reaching.outputs, reaching.space.shape[0]
    )
    steps = updates = episodes = shown = 0
    while steps < pretraining.steps:
        options = ReachingOptions(reaching, layers_of(compiled))
        random = generator(seed, Stream.EXPLORE, episodes)
        at_random = 1.0 if memory.size < agent.warm_up else pretraining.random_share
        start = episode_seed(seed, Stream.EPISODE, episodes)
        steps += _explore(environment, options, memory, start, random, pretraining, at_random)
        episodes += 1
        while memory.size >= agent.warm_up and updates < memory.size - agent.warm_up:
            draw = generator(seed, Stream.SAMPLE, updates)
            window = memory.sample(agent.updates_per_call * agent.batch, reaching, draw)
            compiled.update(window.split(agent.updates_per_call), updates)
            updates += agent.updates_per_call
        if 20 * steps // pretraining.steps > shown:
            shown = 20 * steps // pretraining.steps
            share = reached_share(ReachingOptions(reaching, layers_of(compiled)), environment, 100)
            show(steps, share["reached"])
    options = ReachingOptions(reaching, layers_of(compiled))
    report = {
        "task": reaching.task,
        "primitive_steps": steps,
        "hours": round((time.monotonic() - began) / 3600, 4),
        **reached_share(options, environment, GOALS),
    }
    return options, report


def reached_share(
    options: ReachingOptions, environment: gymnasium.Env, goals: int, seed: int = 1
) -> dict[str, Any]:
    """How many of `goals` random options are reached before the cap, from random starts."""
    reached, steps = 0, []
    for index in range(goals):
        option = _random_option(options.reaching, generator(seed, Stream.EVALUATE, index))
        observation, _ = environment.reset(seed=episode_seed(seed, Stream.EVALUATE, index))
        for step in range(options.cap + 1):
            if options.reaching.reached(options.reaching.body(observation), option):
                reached += 1
                steps.append(step)
                break
            output = options.output(options.reaching.body(observation), option)
            observation = environment.step(options.reaching.primitive(output))[0]
    return {"goals": goals, "reached": reached / goals, "mean_steps": float(np.mean(steps or [0]))}


def layers_of(agent: CompiledAgent) -> list[tuple[np.ndarray, np.ndarray]]:
    """The target actor's weights, which wander less, as the host's policy network wants them."""
    return [
        (np.concatenate([np.asarray(part) for part in layer.weights]), np.asarray(layer.bias))
        for layer in agent.arrays.target.actor.layers
    ]


def _explore(
    environment: gymnasium.Env,
    options: ReachingOptions,
    memory: Hindsight,
    start: int,
    random: np.random.Generator,
    pretraining: Pretraining,
    at_random: float,
) -> int:
    """One option from one start, into the memory; the primitive steps that it took."""
    reaching, noise = options.reaching, pretraining.agent.noise
    observation, _ = environment.reset(seed=start)
    option, episode, steps, ended = _random_option(reaching, random), [], 0, False
    while steps < options.cap and not ended:
        body = reaching.body(observation)
        if reaching.reached(body, option):
            break
        if random.random() < at_random:
            output = random.uniform(-1, 1, reaching.outputs)
        else:
            output = options.output(body, option) + noise * random.normal(size=reaching.outputs)
        output = np.clip(output, -1, 1)
        for _ in range(pretraining.repeat):
            observation, _, terminated, truncated, _ = environment.step(reaching.primitive(output))
            steps += 1
            ended = terminated or truncated
            if ended:
                break
        episode.append((body, output, reaching.body(observation)))
    if episode:
        memory.add(episode, option)
    return steps


def _random_option(reaching: Reaching, random: np.random.Generator) -> np.ndarray:
    return random.uniform(reaching.space.low, reaching.space.high).astype(np.float32)
