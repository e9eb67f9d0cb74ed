"""The loop of Algorithm 1: act, store, update, evaluate, save.

One turn takes a decision in each environment and then makes the updates that are due. All that a
turn depends on is in the loop's counters, the agent's arrays, the replay and the environments, and
all of that is in a checkpoint (`checkpoints.py`); random numbers are a function of (seed, stream,
counter). Evaluating, logging and saving change none of it. What is due, a row of the log or an
evaluation, follows from the counters, so a run that ends before it is done does it when it goes on.
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
from grasp.agents.compiled import CompiledAgent
from grasp.checkpoints import (
    SavedReplay,
    check_resumable,
    machine,
    named_arrays,
    put_back,
    restored_arrays,
    world_arrays,
)
from grasp.environments.boundary import Boundary, Outcome
from grasp.environments.frames import Sight
from grasp.errors import Diverged, EnvironmentFault, EnvironmentRaised, check_range
from grasp.evaluation import Stopped, play
from grasp.files import Facts, stamp
from grasp.log import Log
from grasp.randomness import Stream, episode_seed, generator
from grasp.replay import Replay
from grasp.runs import Run

MOST_RAISED = 20  # errors of the environments without a step between them
MOST_REFUSED = 5  # updates in a row that were not finite


@dataclasses.dataclass(frozen=True)
class Schedule:
    """How long to train, and when to look."""

    steps: int = 150_000  # environment steps in all
    seed: int = 0
    num_envs: int = 1  # environments stepped side by side
    evaluate_every: int = 10_000  # environment steps between evaluations
    evaluation_episodes: int = 10  # greedy, from fresh starts
    log_every: int = 1_000  # environment steps between rows of the log
    save_seconds: float = 45.0  # between checkpoints: the most work that a killed process loses
    patience: float = 120.0  # seconds that an environment may take for a step before it is stopped
    deterministic: bool = False  # one thread: the same bits on any number of cores, but slower

    def __post_init__(self) -> None:
        counts = ["steps", "num_envs", "evaluate_every", "evaluation_episodes", "log_every"]
        check_range(self, counts, 1, math.inf, "at least 1")
        check_range(self, ["seed", "save_seconds"], 0, 2**63 - 1, "at least 0")
        check_range(self, ["patience"], 1e-3, math.inf, "above 0")


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
    sight: Sight = Sight()  # how the task is seen and acted on

    def described(self) -> Facts:
        """The configuration; a sight that is not there is the plain one."""
        facts = {"task": self.task, "name": self.name, "agent": description(self.agent)}
        facts |= {} if self.sight == Sight() else {"sight": dataclasses.asdict(self.sight)}
        return facts | dataclasses.asdict(self.schedule)


@dataclasses.dataclass
class Counters:
    """How far the run is; saved with it."""

    decisions: int = 0
    environment_steps: int = 0
    updates: int = 0
    episodes: int = 0
    evaluations: int = 0
    logged: int = 0  # environment steps at the last row of the log
    evaluated: int = 0  # environment steps at the last evaluation
    faults: int = 0  # episodes that ended because the environment raised an error
    raised: int = 0  # errors since the last step that an environment took
    refused: int = 0  # calls of the update that were not finite
    refused_in_a_row: int = 0
    inexact: int = 0  # environments that could not be put back when the run was continued
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
            stack=sizes.stack,
            observation_type=sizes.observation_type,
        )
        self.counters = Counters()
        self.returns = np.zeros(training.schedule.num_envs)  # of the episodes under way
        self.metrics: dict[str, Any] = {}  # of the last update
        self.episodes: list[tuple[float, bool | None]] = []  # return, success since the last log
        self.stop: signal.Signals | None = None  # set by a signal handler
        self._make = make
        self._saved_replay = SavedReplay(run, self.replay)
        self._saved: tuple[int, int] | None = None  # step of the last checkpoint

    def train(self) -> None:
        """From the last checkpoint, or the start, to the last step, or a signal."""
        if not self._resume():
            for lane in range(len(self.worlds)):
                self._begin(lane)
        started, spent = time.monotonic(), self.counters.seconds
        saved = started
        while True:
            self.counters.seconds = spent + time.monotonic() - started
            if self._look():
                saved = time.monotonic()
            if self._finished() or self.stop is not None:
                break
            if time.monotonic() - saved > self.training.schedule.save_seconds:
                self._save()
                saved = time.monotonic()
            self._decide()
            self._learn()
        self._save()

    def _decide(self) -> None:
        """One decision in each environment, stored. An environment that raises an error has ended
        its episode: nothing of that decision is stored.
        """
        actions = self._actions()
        for lane, world in enumerate(self.worlds):
            try:
                outcome = world.step(actions[lane])
            except EnvironmentRaised as problem:
                self._raised(problem)
                self._begin(lane)
                continue
            self._store(lane, actions[lane], outcome)
            if outcome.ended:
                self.episodes.append((float(self.returns[lane]), outcome.success))
                self._begin(lane)

    def _store(self, lane: int, action: np.ndarray, outcome: Outcome) -> None:
        self.replay.add(
            lane,
            action=action,
            reward=outcome.reward,
            duration=outcome.duration,
            terminated=outcome.terminated,
            observation=outcome.observation,
            goal=outcome.goal,
        )
        self.counters.raised = 0
        self.counters.decisions += 1
        self.counters.environment_steps += outcome.steps
        self.returns[lane] += outcome.reward

    def _raised(self, problem: EnvironmentRaised) -> None:
        self.counters.faults += 1
        self.counters.raised += 1
        if self.counters.raised >= MOST_RAISED:
            raise EnvironmentFault(
                f"{problem}; that was error {MOST_RAISED} without a step between them: "
                f"`grasp check-env` says more, and the last checkpoint of {self.run.path} is good"
            ) from problem

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
            metrics = self.agent.update(windows.split(calls), counters.updates)
            counters.updates += calls
            if metrics is None:
                self._refused()
            else:
                self.metrics, counters.refused_in_a_row = metrics, 0

    def _refused(self) -> None:
        self.counters.refused += 1
        self.counters.refused_in_a_row += 1
        if self.counters.refused_in_a_row >= MOST_REFUSED:
            raise Diverged(
                f"{MOST_REFUSED} updates in a row were not finite and were refused, the last after "
                f"{self.counters.updates} updates; the last checkpoint of {self.run.path} is good: "
                "lower --model-learning-rate or check the scale of the rewards"
            )

    def _begin(self, lane: int) -> None:
        """Start an episode; an environment whose reset raises an error is made anew."""
        self.returns[lane] = 0
        while True:
            try:
                return self.replay.begin(lane, *self.worlds[lane].reset(self._next_seed()))
            except EnvironmentRaised as problem:
                self._raised(problem)
                self.worlds[lane] = self._make()

    def _next_seed(self) -> int:
        self.counters.episodes += 1
        return episode_seed(self.training.schedule.seed, Stream.EPISODE, self.counters.episodes - 1)

    def _crossed(self, before: int, every: int) -> bool:
        return before // every < self.counters.environment_steps // every

    def _finished(self) -> bool:
        return self.counters.environment_steps >= self.training.schedule.steps

    def _look(self) -> bool:
        """Log and evaluate where that is due, as one row; whether a checkpoint was written."""
        schedule, counters = self.training.schedule, self.counters
        logs = self._crossed(counters.logged, schedule.log_every)
        ends = self._finished() and counters.evaluated < counters.environment_steps
        evaluates = ends or self._crossed(counters.evaluated, schedule.evaluate_every)
        row = self._rollout() if logs else {}
        if evaluates:
            self._save()  # a kill during the evaluation costs no training
            try:
                row |= self._evaluation()
            except Stopped:
                return True
            counters.evaluations += 1
            counters.evaluated = counters.environment_steps
        if logs:
            counters.logged = counters.environment_steps
            self.episodes = []
        if row:
            self.log.add(counters, row)
        return evaluates

    def _rollout(self) -> Facts:
        """Training since the last row."""
        row = {name: np.asarray(value).tolist() for name, value in self.metrics.items()}
        row |= {"rollout/episodes": self.counters.episodes, "rollout/faults": self.counters.faults}
        return row | outcomes("rollout", self.episodes)

    def _evaluation(self) -> Facts:
        """Greedy episodes from fresh starts; the best agent so far is kept beside the last."""
        count, counters = self.training.schedule.evaluation_episodes, self.counters
        first = counters.evaluations * count
        seeds = [
            episode_seed(self.training.schedule.seed, Stream.EVALUATE, first + index)
            for index in range(count)
        ]
        episodes = play(
            self.agent, self.evaluation_worlds, seeds, stopped=lambda: self.stop is not None
        )
        row = outcomes("eval", [(episode.returned, episode.success) for episode in episodes])
        row["eval/returns"] = [episode.returned for episode in episodes]
        row["eval/heads"] = head_use([episode.heads for episode in episodes])
        returned = row["eval/return"]
        if counters.best is None or returned > counters.best:
            counters.best = returned
            facts = {"environment_steps": counters.environment_steps, "return": returned}
            self.run.save_best(self._step(), named_arrays(self.agent.arrays), facts)
        return row

    def _step(self) -> tuple[int, int]:
        return self.counters.decisions, self.counters.evaluations

    def _save(self) -> None:
        if self._saved == self._step():
            return
        facts = {
            "counters": dataclasses.asdict(self.counters),
            "episodes": self.episodes,
            "last_metrics": {k: np.asarray(v).tolist() for k, v in self.metrics.items()},
            "segments": self._saved_replay.save(),
            "rows": self.replay.rows,
            "machine": machine(),
        }
        loop = world_arrays(self.worlds)
        loop |= {"returns": self.returns, "begun": self.replay.begun}
        parts = {"agent": named_arrays(self.agent.arrays), "loop": loop}
        self.run.save(self._step(), parts, facts)
        self._saved = self._step()

    def _resume(self) -> bool:
        """Continue from the newest whole checkpoint, if there is one."""
        checkpoint = self.run.latest()
        self.run.set_aside_after(None if checkpoint is None else checkpoint.folder)
        if checkpoint is None:
            self.run.cut_metrics({"metrics": stamp(b"")}, 0)
            return False
        check_resumable(checkpoint)
        facts, loop = checkpoint.facts, checkpoint.parts["loop"]
        self.counters = Counters(**facts["counters"])
        self.episodes = [(returned, success) for returned, success in facts["episodes"]]
        self.metrics = facts["last_metrics"]
        self.agent.arrays = restored_arrays(self.agent.arrays, checkpoint.parts["agent"])
        self._saved_replay.restore(facts["segments"], loop["begun"])
        self.returns = loop["returns"].copy()
        self._saved = self._step()
        notes = [f"{problem}; the checkpoint before it is used" for problem in checkpoint.problems]
        notes += self.run.cut_metrics(facts, self.counters.decisions)
        if facts["machine"] != machine():
            notes.append(f"not exact: saved on {facts['machine']}, continued on {machine()}")
        for lane in put_back(self.worlds, loop, self.replay):
            self.counters.inexact += 1
            self._saved = None
            notes.append(
                f"not exact: environment {lane} could not be put back, a new episode began"
            )
            self._begin(lane)
        self.log.resumed(self.counters, notes)
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
