"""Pretrain the policies of an option space by reinforcement learning (Section 3, "pretrained").

Goal-reaching with TD3 and hindsight: an option costs 1 a step until it is where it says,

    r = 0 and the end where reached(body', option), else -1,

unless the option space has a reward of its own (`Shaped`). Most sampled decisions are judged by a
place that their own episode came to later, so that every episode teaches how to get somewhere.
"""

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from grasp.agents.agent import Sizes
from grasp.agents.compiled import CompiledAgent
from grasp.agents.td3 import TD3
from grasp.checkpoints import named_arrays, restored_arrays, under
from grasp.errors import UsageError
from grasp.files import read_arrays, write_arrays
from grasp.options import Reaching, ReachingOptions, Shaped, Symmetric
from grasp.randomness import Stream, episode_seed, generator
from grasp.replay import Window

HINDSIGHT = 0.8  # share of sampled decisions that get another option
GOALS = 1_000  # random options that the report is over
SAVE_SECONDS = 300  # between checkpoints


@dataclasses.dataclass(frozen=True)
class Pretraining:
    steps: int = 30_000  # primitive steps
    seed: int = 0  # decides all that is random
    repeat: int = 1  # primitive steps for which an output is held while learning
    random_share: float = 0.2  # of outputs that are noise alone
    correlation: float = 0.0  # of the noise of one output with the noise of the next
    greedy_share: float = 0.0  # of options followed without noise, so that being stuck is seen
    chained: int = 1  # options one after the other before the world starts anew
    memory: int = 400_000  # decisions that are remembered
    agent: TD3 = TD3(
        width=64,
        discount=0.98,
        actor_learning_rate=1e-3,
        critic_learning_rate=1e-3,
        noise=0.2,
        warm_up=1_000,
        updates_per_call=50,
    )


# A crossing of Point-Mass takes 250 steps of 20 ms; held outputs bring its end within sight. An ant
# must be able to set out while it walks.
SETTINGS = {
    "collect": Pretraining(),
    "point-mass": Pretraining(
        steps=400_000, repeat=5, agent=dataclasses.replace(Pretraining.agent, width=128)
    ),
    "ant-gather": Pretraining(
        steps=300_000,
        random_share=0.0,
        correlation=0.8,
        greedy_share=0.3,
        chained=4,
        agent=TD3(
            width=256,
            layer_norm=True,
            saturation_penalty=0.01,
            discount=0.98,
            actor_learning_rate=3e-4,
            critic_learning_rate=3e-4,
            noise=0.2,
            warm_up=10_000,
            decisions_per_update=2,
            updates_per_call=50,
        ),
    ),
}


class Hindsight:
    """Episodes of bodies and outputs; windows of one decision with options chosen afterwards.

    When it is full the oldest episodes go.
    """

    def __init__(self, capacity: int, body: int, outputs: int, options: int):
        self.bodies = np.zeros((capacity, body), np.float32)
        self.following = np.zeros((capacity, body), np.float32)
        self.outputs = np.zeros((capacity, outputs), np.float32)
        self.options = np.zeros((capacity, options), np.float32)
        self.left = np.zeros(capacity, np.int64)  # decisions of the same episode that follow
        self.size = 0
        self.cursor = 0

    def add(self, episode: list[tuple[np.ndarray, np.ndarray, np.ndarray]], option: Any) -> None:
        count, capacity = len(episode), len(self.left)
        if self.cursor + count > capacity:  # an episode stays in one piece
            self.size, self.cursor = self.cursor, 0
        rows = slice(self.cursor, self.cursor + count)
        self.bodies[rows] = [body for body, _, _ in episode]
        self.outputs[rows] = [output for _, output, _ in episode]
        self.following[rows] = [after for _, _, after in episode]
        self.options[rows] = option
        self.left[rows] = np.arange(count)[::-1]
        self.cursor += count
        self.size = max(self.size, self.cursor)

    def sample(self, batch: int, reaching: Reaching, random: np.random.Generator) -> Window:
        rows = random.integers(self.size, size=batch)
        later = rows + (random.random(batch) * (self.left[rows] + 1)).astype(np.int64)
        relabelled = (random.random(batch) < HINDSIGHT)[:, None]
        bodies, following = self.bodies[rows], self.following[rows]
        came_to = reaching.achieved(self.following[later])
        options = np.where(relabelled, came_to, self.options[rows])
        before, after = reaching.inputs(bodies, options), reaching.inputs(following, options)
        ended = reached = reaching.reached(following, options)
        if isinstance(reaching, Shaped):
            rewards = reaching.reward(bodies, following, options)
            ended = reached | reaching.failed(following)
        else:
            rewards = np.where(reached, 0, -1)
        outputs = self.outputs[rows]
        if isinstance(reaching, Symmetric):
            outputs = reaching.to_front(bodies, options, outputs)
        return Window(
            observations=np.stack([before, after], axis=1).astype(np.float32),
            goals=np.zeros((batch, 2, 0), np.float32),
            actions=outputs[:, None].astype(np.float32),
            rewards=rewards.astype(np.float32)[:, None],
            durations=np.ones((batch, 1), np.float32),
            valid=np.ones((batch, 1), bool),
            terminated=np.asarray(ended),
        )

    def state(self) -> dict[str, np.ndarray]:
        names = ("bodies", "following", "outputs", "options", "left")
        return {name: getattr(self, name)[: self.size] for name in names}

    def restore(self, state: dict[str, np.ndarray], cursor: int) -> None:
        for name, values in state.items():
            getattr(self, name)[: len(values)] = values
        self.size, self.cursor = len(state["left"]), cursor


class Pretrainer:
    """Pretraining under way; `folder` is where an interrupted one continues."""

    def __init__(
        self,
        reaching: Reaching,
        environment: gymnasium.Env,
        pretraining: Pretraining,
        folder: Path | None = None,
    ):
        self.reaching, self.environment, self.pretraining = reaching, environment, pretraining
        self.folder = folder
        body = reaching.body(environment.reset(seed=0)[0])
        inputs = reaching.inputs(body, reaching.space.low)
        sizes = Sizes(inputs.size, 0, reaching.outputs)
        self.agent = CompiledAgent(pretraining.agent, sizes, pretraining.seed)
        capacity = pretraining.memory + reaching.cap
        self.memory = Hindsight(capacity, body.size, reaching.outputs, reaching.space.shape[0])
        self.steps = self.decisions = self.updates = self.episodes = 0
        self.seconds = 0.0
        self.curve: list[tuple[int, float]] = []  # steps, share reached
        if folder is not None and (folder / "manifest.json").exists():
            self._resume(folder)

    def run(self, show: Callable[[int, float], None]) -> tuple[ReachingOptions, dict[str, Any]]:
        """Option policies, and a report on how well they do."""
        began, spent, saved = time.monotonic(), self.seconds, time.monotonic()
        while self.steps < self.pretraining.steps:
            self._explore()
            self._learn()
            self.seconds = spent + time.monotonic() - began
            if 20 * self.steps // self.pretraining.steps > len(self.curve):
                share = reached_share(self.options(), self.environment, 100)["reached"]
                self.curve.append((self.steps, share))
                show(self.steps, share)
            if time.monotonic() - saved > SAVE_SECONDS:
                self.save()
                saved = time.monotonic()
        self.save()
        return self.options(), {
            "task": self.reaching.task,
            "primitive_steps": self.steps,
            "hours": round(self.seconds / 3600, 4),
            "curve": self.curve,
            **reached_share(self.options(), self.environment, GOALS),
        }

    def options(self) -> ReachingOptions:
        """The policies so far."""
        return ReachingOptions(self.reaching, layers_of(self.agent))

    def save(self) -> None:
        if self.folder is None:
            return
        arrays = {f"agent/{name}": leaf for name, leaf in named_arrays(self.agent.arrays).items()}
        arrays |= {f"memory/{name}": leaf for name, leaf in self.memory.state().items()}
        names = ("steps", "decisions", "updates", "episodes", "seconds", "curve")
        facts = {name: getattr(self, name) for name in names}
        facts |= {"cursor": self.memory.cursor, "settings": self._settings()}
        write_arrays(self.folder, arrays, facts)

    def _settings(self) -> dict[str, Any]:
        """All but the steps, so that a finished one can go on."""
        settings = dataclasses.asdict(self.pretraining) | {"task": self.reaching.task}
        return {name: value for name, value in settings.items() if name != "steps"}

    def _resume(self, folder: Path) -> None:
        arrays, facts = read_arrays(folder)
        if facts["settings"] != self._settings():
            raise UsageError(
                f"{folder} holds a pretraining with other settings; remove it, or give --run a "
                "folder of its own"
            )
        for name in ("steps", "decisions", "updates", "episodes", "seconds"):
            setattr(self, name, facts[name])
        self.curve = [(int(steps), float(share)) for steps, share in facts["curve"]]
        self.agent.arrays = restored_arrays(self.agent.arrays, under(arrays, "agent/"))
        self.memory.restore(under(arrays, "memory/"), facts["cursor"])

    def _explore(self) -> None:
        """Options one after the other from one start, into the memory."""
        pretraining, reaching = self.pretraining, self.reaching
        options = self.options()
        random = generator(pretraining.seed, Stream.EXPLORE, self.episodes)
        at_random = pretraining.random_share
        if self.decisions < pretraining.agent.warm_up:
            at_random = 1.0
        start = episode_seed(pretraining.seed, Stream.EPISODE, self.episodes)
        observation, _ = self.environment.reset(seed=start)
        self.episodes += 1
        for _ in range(pretraining.chained):
            option = random_option(reaching, random)
            observation, ended = self._follow(options, option, observation, random, at_random)
            if ended:
                break

    def _follow(
        self,
        options: ReachingOptions,
        option: np.ndarray,
        observation: Any,
        random: np.random.Generator,
        at_random: float,
    ) -> tuple[Any, bool]:
        """One option with noise; the observation after it, and whether the episode ended."""
        reaching, kept = self.reaching, self.pretraining.correlation
        noise = self.pretraining.agent.noise
        if random.random() < self.pretraining.greedy_share:
            noise = 0.0
        episode, steps, ended = [], 0, False
        sway = random.normal(size=reaching.outputs)
        while steps < options.cap and not ended:
            body = reaching.body(observation)
            if reaching.reached(body, option):
                break
            output = sway
            if random.random() >= at_random:
                output = options.output(body, option) + noise * sway
            output = np.clip(output, -1, 1)
            sway = kept * sway + (1 - kept**2) ** 0.5 * random.normal(size=reaching.outputs)
            for _ in range(self.pretraining.repeat):
                observation, _, terminated, truncated, _ = self.environment.step(
                    reaching.primitive(output)
                )
                steps += 1
                ended = terminated or truncated
                if ended:
                    break
            episode.append((body, output, reaching.body(observation)))
        if episode:
            self.memory.add(episode, option)
        self.steps += steps
        self.decisions += len(episode)
        return observation, ended

    def _learn(self) -> None:
        """The updates that the decisions so far have earned."""
        agent, seed = self.pretraining.agent, self.pretraining.seed
        due = (self.decisions - agent.warm_up) // agent.decisions_per_update
        while self.updates < due:
            draw = generator(seed, Stream.SAMPLE, self.updates)
            window = self.memory.sample(agent.updates_per_call * agent.batch, self.reaching, draw)
            self.agent.update(window.split(agent.updates_per_call), self.updates)
            self.updates += agent.updates_per_call


def pretrain(
    reaching: Reaching,
    environment: gymnasium.Env,
    pretraining: Pretraining,
    show: Callable[[int, float], None] = lambda steps, share: None,
    folder: Path | None = None,
) -> tuple[ReachingOptions, dict[str, Any]]:
    """Option policies, and a report on how well they do; an interrupted one is saved."""
    pretrainer = Pretrainer(reaching, environment, pretraining, folder)
    try:
        return pretrainer.run(show)
    except KeyboardInterrupt:
        pretrainer.save()
        raise


def reached_share(
    options: ReachingOptions, environment: gymnasium.Env, goals: int, seed: int = 1
) -> dict[str, Any]:
    """How many of `goals` random options are reached before the cap, from random starts."""
    reaching = options.reaching
    steps, errors, failed = [], [], 0
    for index in range(goals):
        option = random_option(reaching, generator(seed, Stream.EVALUATE, index))
        observation, _ = environment.reset(seed=episode_seed(seed, Stream.EVALUATE, index))
        for step in range(options.cap + 1):
            body = reaching.body(observation)
            if reaching.reached(body, option):
                steps.append(step)
                errors.append(np.abs(reaching.achieved(body) - option))
                break
            if isinstance(reaching, Shaped) and reaching.failed(body):
                failed += 1
                break
            observation = environment.step(reaching.primitive(options.output(body, option)))[0]
    share, length = len(steps) / goals, float(np.mean(steps or [0]))
    report: dict[str, Any] = {"goals": goals, "reached": share, "mean_steps": length}
    if isinstance(reaching, Shaped):
        report |= {
            "falls_per_1000": 1000 * failed / goals,
            "mean_errors": np.mean(errors, axis=0).round(3).tolist() if errors else None,
        }
    return report


def layers_of(agent: CompiledAgent) -> list[tuple[np.ndarray, np.ndarray]]:
    """The target actor's weights, which wander less, as the host's policy network wants them."""
    return [
        (np.concatenate([np.asarray(part) for part in layer.weights]), np.asarray(layer.bias))
        for layer in agent.arrays.target.actor.layers
    ]


def random_option(reaching: Reaching, random: np.random.Generator) -> np.ndarray:
    return random.uniform(reaching.space.low, reaching.space.high).astype(np.float32)
