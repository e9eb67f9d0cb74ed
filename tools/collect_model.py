"""Can the model of an agent tell the right object of Collect from the others and from a random
option? Learns from random decisions only, with the affordances frozen: the cheapest place to see
whether a change of the model or of its losses helps where rewards are rare.

    python tools/collect_model.py --agent.rewarded-share 0.1 --agent.discount 0.95
"""

import dataclasses
from typing import Any, cast

import numpy as np
import tyro

from grasp.agents.compiled import CompiledAgent
from grasp.agents.grasp import Grasp
from grasp.environments import make
from grasp.environments.boundary import Boundary
from grasp.evaluation import options_to_judge
from grasp.randomness import Stream, generator
from grasp.replay import Replay

LANES, STARTS = 64, 500


@dataclasses.dataclass(frozen=True)
class Settings:
    decisions: int = 40_000
    updates: int = 6_000
    agent: Grasp = Grasp(
        affordance_learning_rate=0.0, model_learning_rate=1e-3, updates_per_call=25
    )


def random_decisions(count: int, world: Boundary) -> Replay:
    """Episodes of random options, one lane after the other."""
    sizes = world.sizes
    replay = Replay(
        capacity=2 * count, lanes=LANES, observation_size=sizes.observation,
        goal_size=sizes.goal, action_size=sizes.action,
    )  # fmt: skip
    random, episode = np.random.default_rng(0), 0
    for lane in range(LANES):
        replay.begin(lane, *world.reset(episode))
        for _ in range(count // LANES):
            action = random.uniform(-1, 1, sizes.action).astype(np.float32)
            outcome = world.step(action)
            replay.add(
                lane, action=action, reward=outcome.reward, duration=outcome.duration,
                terminated=outcome.terminated, observation=outcome.observation, goal=outcome.goal,
            )  # fmt: skip
            if outcome.ended:
                episode += 1
                replay.begin(lane, *world.reset(episode))
        episode += 1
    return replay


def questions(world: Boundary, collected: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Starts with some objects already collected, and the options to judge there."""
    random, task = np.random.default_rng(1), cast(Any, world.environment.unwrapped)
    rows = []
    for seed in range(STARTS):
        world.reset(10_000 + seed)
        left = np.ones(3, bool)
        left[list(task.order[:collected])] = False
        observation = task.set_state(task.get_state() | {"left": left})
        rows.append((*world.arrays(observation), options_to_judge(world, random)))
    observations, goals, options = (np.stack(parts) for parts in zip(*rows, strict=True))
    return observations, goals, options


def main(settings: Settings) -> None:
    agent = settings.agent
    world = Boundary(make("collect", agent.discount), "collect")
    replay = random_decisions(settings.decisions, world)
    compiled = CompiledAgent(agent, world.sizes, 0)
    asked = [questions(world, collected) for collected in range(3)]
    for update in range(0, settings.updates, agent.updates_per_call):
        windows = replay.sample(
            agent.updates_per_call * agent.batch, agent.window,
            generator(0, Stream.SAMPLE, update), agent.rewarded_share,
        )  # fmt: skip
        compiled.update(windows.split(agent.updates_per_call), update)
        done = update + agent.updates_per_call
        if done % 1_500 < agent.updates_per_call:
            found = []
            for collected, question in enumerate(asked):
                q_values = compiled.q_values(*question)  # [STARTS, 3 + 8]
                best = (q_values[:, :3].argmax(1) == collected).mean()
                above = (q_values[:, collected, None] > q_values[:, 3:]).mean()
                found.append(f"{collected} collected: best {best:.2f}, above random {above:.2f}")
            print(f"{done} updates; {'; '.join(found)}", flush=True)


if __name__ == "__main__":
    main(tyro.cli(Settings, config=(tyro.conf.AvoidSubcommands,)))
