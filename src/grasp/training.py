"""The loop of Algorithm 1: act, store, update, evaluate, save.

One turn takes a decision in each environment and then makes the updates that are due. All that a
turn depends on is in the loop's counters, the agent's arrays, the replay and the environments, and
all of that is in a checkpoint; random numbers are a function of (seed, stream, counter).
Evaluating, logging and saving change none of it.
"""

import dataclasses
import math
import signal
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from grasp.agents import description
from grasp.agents.agent import Agent
from grasp.agents.compiled import CompiledAgent, named_arrays, restored_arrays
from grasp.environments.boundary import Boundary
from grasp.errors import Diverged, check_range
from grasp.evaluation import play
from grasp.log import Log
from grasp.randomness import Stream, episode_seed, generator
from grasp.replay import Replay
from grasp.runs import Arrays, Facts, Run, write_arrays

SAVE_SECONDS = 60.0  # the most work that a killed process loses


@dataclasses.dataclass(frozen=True)
class Schedule:
    """How long to train, and when to look."""

    steps: int = 150_000  # environment steps in all
    seed: int = 0
    num_envs: int = 1  # environments stepped side by side
    evaluate_every: int = 10_000  # environment steps between evaluations
    evaluation_episodes: int = 10  # greedy, from fresh starts
    log_every: int = 1_000  # environment steps between rows of the log

    def __post_init__(self) -> None:
        counts = [field.name for field in dataclasses.fields(self) if field.name != "seed"]
        check_range(self, counts, 1, math.inf, "at least 1")
        check_range(self, ["seed"], 0, math.inf, "at least 0")


def usual_schedule(options: bool) -> Schedule:
    """Where decisions are options a run is longer, its episodes short and its environments many."""
    if not options:
        return Schedule()
    return Schedule(
        steps=2_000_000,
        num_envs=64,
        evaluate_every=100_000,
        evaluation_episodes=100,
        log_every=10_000,
    )


@dataclasses.dataclass(frozen=True)
class Training:
    """What is trained on what."""

    task: str
    name: str  # the agent's, as in GA-4
    agent: Agent
    schedule: Schedule

    def described(self) -> Facts:
        facts = {"task": self.task, "name": self.name, "agent": description(self.agent)}
        return facts | dataclasses.asdict(self.schedule)


@dataclasses.dataclass
class Counters:
    """How far the run is; saved with it."""

    decisions: int = 0
    environment_steps: int = 0
    updates: int = 0
    episodes: int = 0
    evaluations: int = 0
    seconds: float = 0.0  # spent in all starts of the run
    best: float | None = None  # evaluation return


class Loop:
    """A run under way."""

    def __init__(self, training: Training, run: Run, make: Callable[[], Boundary], log: Log):
        self.training, self.run, self.log = training, run, log
        self.worlds = [make() for _ in range(training.schedule.num_envs)]
        self.evaluation_worlds = [
            make() for _ in range(min(training.schedule.evaluation_episodes, 10))
        ]
        sizes = self.worlds[0].sizes
        self.agent = CompiledAgent(training.agent, sizes, training.schedule.seed)
        self.replay = Replay(
            capacity=training.agent.replay_capacity,
            lanes=training.schedule.num_envs,
            observation_size=sizes.observation,
            goal_size=sizes.goal,
            action_size=sizes.action,
        )
        self.counters = Counters()
        self.returns = np.zeros(training.schedule.num_envs)  # of the episodes under way
        self.metrics: dict[str, Any] = {}  # of the last update
        self.episodes: list[tuple[float, bool | None]] = []  # return, success since the last log
        self.stop: signal.Signals | None = None  # set by a signal handler

    def train(self) -> None:
        """From the last checkpoint, or the start, to the last step, or a signal."""
        if not self._resume():
            for lane in range(len(self.worlds)):
                self._begin(lane)
        started, spent = time.monotonic(), self.counters.seconds
        saved = started
        while not self._finished() and self.stop is None:
            before = self.counters.environment_steps
            self._decide()
            self._learn()
            now = time.monotonic()
            self.counters.seconds = spent + now - started
            if self._crossed(before, self.training.schedule.log_every):
                self._log()
            if self._crossed(before, self.training.schedule.evaluate_every) or self._finished():
                self._evaluate()
                self._save()
                saved = time.monotonic()
            elif now - saved > SAVE_SECONDS:
                self._save()
                saved = time.monotonic()
        if self.stop is not None:
            self._save()

    def _decide(self) -> None:
        """One decision in each environment, stored."""
        actions = self._actions()
        for lane, world in enumerate(self.worlds):
            outcome = world.step(actions[lane])
            self.replay.add(
                lane,
                action=actions[lane],
                reward=outcome.reward,
                duration=outcome.duration,
                terminated=outcome.terminated,
                observation=outcome.observation,
                goal=outcome.goal,
            )
            self.counters.decisions += 1
            self.counters.environment_steps += outcome.duration
            self.returns[lane] += outcome.reward
            if outcome.ended:
                self.episodes.append((float(self.returns[lane]), outcome.success))
                self._begin(lane)

    def _actions(self) -> np.ndarray:
        """[lanes, action]: uniformly random during warm-up, then the agent's."""
        counters, training = self.counters, self.training
        if counters.decisions < training.agent.warm_up:
            random = generator(training.schedule.seed, Stream.EXPLORE, counters.decisions)
            shape = (len(self.worlds), self.agent.sizes.action)
            return random.uniform(-1, 1, shape).astype(np.float32)
        observations, goals = self.replay.current()
        return np.asarray(self.agent.act(observations, goals, counters.decisions).actions)

    def _learn(self) -> None:
        """The updates that the decisions so far have earned and that were not made yet."""
        agent, counters = self.training.agent, self.counters
        calls = agent.updates_per_call
        due = (counters.decisions - agent.warm_up) // agent.decisions_per_update
        while counters.updates + calls <= due:
            random = generator(self.training.schedule.seed, Stream.SAMPLE, counters.updates)
            windows = self.replay.sample(
                calls * agent.batch, agent.window, random, agent.rewarded_share
            )
            self.metrics = self.agent.update(windows.split(calls), counters.updates)
            counters.updates += calls

    def _begin(self, lane: int) -> None:
        seed = episode_seed(self.training.schedule.seed, Stream.EPISODE, self.counters.episodes)
        self.counters.episodes += 1
        self.returns[lane] = 0
        self.replay.begin(lane, *self.worlds[lane].reset(seed))

    def _crossed(self, before: int, every: int) -> bool:
        return before // every < self.counters.environment_steps // every

    def _finished(self) -> bool:
        return self.counters.environment_steps >= self.training.schedule.steps

    def _log(self) -> None:
        metrics = {name: np.asarray(value).tolist() for name, value in self.metrics.items()}
        for name, value in metrics.items():
            if not np.isfinite(value).all():
                raise Diverged(
                    f"{name} is {value} after {self.counters.updates} updates; "
                    f"the last checkpoint of {self.run.path} is good: "
                    "lower --model-learning-rate or check the scale of the rewards"
                )
        row = metrics | {"rollout/episodes": self.counters.episodes}
        row |= outcomes("rollout", self.episodes)
        self.episodes = []
        self.log.add(self.counters, row)

    def _evaluate(self) -> None:
        """Greedy episodes from fresh starts; the best agent so far is kept beside the last."""
        count, counters = self.training.schedule.evaluation_episodes, self.counters
        first = counters.evaluations * count
        seeds = [
            episode_seed(self.training.schedule.seed, Stream.EVALUATE, first + index)
            for index in range(count)
        ]
        episodes = play(self.agent, self.evaluation_worlds, seeds)
        counters.evaluations += 1
        row = outcomes("eval", [(episode.returned, episode.success) for episode in episodes])
        row["eval/returns"] = [episode.returned for episode in episodes]
        row["eval/heads"] = head_use([episode.heads for episode in episodes])
        returned = row["eval/return"]
        self.log.add(counters, row)
        if counters.best is None or returned > counters.best:
            counters.best = returned
            facts = {"environment_steps": counters.environment_steps, "return": returned}
            write_arrays(self.run.best, named_arrays(self.agent.arrays), facts)

    def _save(self) -> None:
        arrays = {f"agent/{name}": value for name, value in named_arrays(self.agent.arrays).items()}
        arrays |= {f"replay/{name}": value for name, value in self.replay.state().items()}
        for lane, world in enumerate(self.worlds):
            for name, value in world.state().items():
                arrays[f"world/{lane}/{name}"] = np.asarray(value)
        arrays["returns"] = self.returns
        self.run.save(self.counters.decisions, arrays, dataclasses.asdict(self.counters))

    def _resume(self) -> bool:
        """Continue from the newest checkpoint, if there is one."""
        checkpoint = self.run.latest()
        if checkpoint is None:
            return False
        arrays, facts = checkpoint
        self.counters = Counters(**facts)
        self.run.forget_after(self.counters.decisions)
        self.agent.arrays = restored_arrays(self.agent.arrays, _under(arrays, "agent/"))
        self.replay.restore(_under(arrays, "replay/"))
        self.returns = arrays["returns"].copy()
        for lane, world in enumerate(self.worlds):
            state = _under(arrays, f"world/{lane}/")
            if state:
                world.restore(state)
            else:  # the environment cannot be put back: a new episode, not joined to the old one
                self._begin(lane)
        self.log.resumed(self.counters)
        return True


def outcomes(prefix: str, episodes: Sequence[tuple[float, bool | None]]) -> Facts:
    """The mean return of episodes, and the share that succeeded where the task says so."""
    successes = [success for _, success in episodes if success is not None]
    row: Facts = {}
    if episodes:
        row[f"{prefix}/return"] = float(np.mean([returned for returned, _ in episodes]))
    if successes:
        row[f"{prefix}/success"] = float(np.mean(successes))
    return row


def head_use(heads: Sequence[Sequence[int]]) -> dict[str, float]:
    """The share of decisions that each head took."""
    flat = np.concatenate([np.asarray(h) for h in heads])
    return {str(head): float(np.mean(flat == head)) for head in np.unique(flat)}


def _under(arrays: Arrays, prefix: str) -> Arrays:
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
