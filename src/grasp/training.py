"""The loop of Algorithm 1: act, store, update, evaluate, save.

One turn takes a decision in each environment and then makes the updates that are due. All that a
turn depends on is in the loop's counters, the agent's arrays, the replay and the environments, and
all of that is in a checkpoint (`checkpoints.py`); random numbers are a function of (seed, stream,
counter). Evaluating, logging and saving change none of it. What is due, a row of the log or an
evaluation, follows from the counters, so a run that ends before it is done does it when it goes on.
"""

import dataclasses
import signal
import time
from collections.abc import Callable
from typing import Any

import numpy as np

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
from grasp.errors import Diverged, EnvironmentFault, EnvironmentRaised, GraspError
from grasp.evaluation import Stopped, play, score, share_of_successes
from grasp.files import Facts, stamp
from grasp.log import Log
from grasp.randomness import Stream, episode_seed, generator
from grasp.replay import Replay
from grasp.runs import Run
from grasp.schedule import Counters, Training

MOST_RAISED = 20  # errors of the environments without a step between them
MOST_REFUSED = 5  # updates in a row that were not finite


class Loop:
    """A run under way."""

    def __init__(
        self,
        training: Training,
        run: Run,
        make: Callable[[], Boundary],
        log: Log,
        sibling: CompiledAgent | None = None,
    ):
        """`sibling` is the same agent of another seed; what is compiled serves both."""
        self.training, self.run, self.log = training, run, log
        self.worlds = [make() for _ in range(training.schedule.num_envs)]
        self.evaluation_worlds = [
            make() for _ in range(min(training.schedule.evaluation_episodes, 10))
        ]
        sizes = self.worlds[0].sizes
        seed = training.schedule.seed
        self.agent = (
            sibling.sibling(seed) if sibling else CompiledAgent(training.agent, sizes, seed)
        )
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
        self.problem: GraspError | None = None  # what ended the run before its last step
        self._make = make
        self._saved_replay = SavedReplay(run, self.replay)
        self._saved: tuple[int, int] | None = None  # step of the last checkpoint

    def start(self) -> None:
        """Stand where the last checkpoint stood, or at the start."""
        if not self._resume():
            for lane in range(len(self.worlds)):
                self._begin(lane)
        self._last_save = time.monotonic()
        self._started = self._last_save - self.counters.seconds

    def goes_on(self) -> bool:
        """Log, evaluate and save what is due before the next decision; whether there is one."""
        self.counters.seconds = time.monotonic() - self._started
        if self._look():
            self._last_save = time.monotonic()
        if self._finished() or self.stop is not None:
            self._save()
            return False
        if time.monotonic() - self._last_save > self.training.schedule.save_seconds:
            self._save()
            self._last_save = time.monotonic()
        return True

    def think(self) -> np.ndarray:
        """The updates that were earned, and then what to do next."""
        while self.due():
            self.learned(self.update())
        return self.actions()

    def actions(self) -> np.ndarray:
        """What to do next in each environment [lanes, action]; uniformly random in warm-up."""
        decisions = self.counters.decisions
        if decisions >= self.training.agent.warm_up:
            return np.asarray(self.agent.act(*self.replay.current(), decisions).actions)
        random = generator(self.training.schedule.seed, Stream.EXPLORE, decisions)
        shape = (len(self.worlds), self.agent.sizes.action)
        return random.uniform(-1, 1, shape).astype(np.float32)

    def decide(self, actions: np.ndarray) -> None:
        """One decision in each environment, stored. An environment that raises an error has ended
        its episode: nothing of that decision is stored.
        """
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

    def due(self) -> bool:
        """Whether the decisions so far have earned updates that were not made yet."""
        agent, counters = self.training.agent, self.counters
        earned = (counters.decisions - agent.warm_up) // agent.decisions_per_update
        return counters.updates + agent.updates_per_call <= earned

    def update(self) -> dict[str, Any] | None:
        """Make the next updates; their metrics, or None where they were refused."""
        agent, updates = self.training.agent, self.counters.updates
        random = generator(self.training.schedule.seed, Stream.SAMPLE, updates)
        windows = self.replay.sample(
            agent.updates_per_call * agent.batch, agent.window, random, agent.rewarded_share
        )
        return self.agent.update(windows.split(agent.updates_per_call), updates)

    def learned(self, metrics: dict[str, Any] | None) -> None:
        """Take note of updates that were made, or refused."""
        self.counters.updates += self.training.agent.updates_per_call
        if metrics is None:
            self._refused()
        else:
            self.metrics, self.counters.refused_in_a_row = metrics, 0

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
        self.returns[lane] += outcome.earned

    def _raised(self, problem: EnvironmentRaised) -> None:
        self.counters.faults += 1
        self.counters.raised += 1
        if self.counters.raised >= MOST_RAISED:
            raise EnvironmentFault(
                f"{problem}; that was error {MOST_RAISED} without a step between them: "
                f"`grasp check-env` says more, and the last checkpoint of {self.run.path} is good"
            ) from problem

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
        if self.episodes:
            row["rollout/return"] = float(np.mean([returned for returned, _ in self.episodes]))
        success = share_of_successes([success for _, success in self.episodes])
        return row if success is None else row | {"rollout/success": success}

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
        found = score(episodes)
        row: Facts = {"eval/return": found.mean}
        if found.success is not None:
            row["eval/success"] = found.success
        row["eval/returns"] = [episode.returned for episode in episodes]
        row["eval/heads"] = found.heads
        if counters.best is None or found.mean > counters.best:
            counters.best = found.mean
            facts = {"environment_steps": counters.environment_steps, "return": found.mean}
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
