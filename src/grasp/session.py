"""The Python face: train and load, as the commands do."""

import copy
import dataclasses
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import gymnasium
import jax
import numpy as np

import grasp
from grasp.agents import agent_named, rebuilt
from grasp.agents.agent import Agent
from grasp.agents.compiled import CompiledAgent
from grasp.checkpoints import agent_arrays, restored_arrays
from grasp.environments import make as make_task
from grasp.environments import usual_sight
from grasp.environments.boundary import Boundary
from grasp.environments.frames import Sight, seen_by
from grasp.errors import CorruptCheckpoint, UsageError
from grasp.evaluation import Episode, Heads, Judgement, drawable, judged, outlooks, play
from grasp.figures import Outlook, draw_curve, draw_outlooks
from grasp.files import Facts, disk
from grasp.log import Log, check_wandb
from grasp.planners.plan import Plan
from grasp.randomness import Stream, episode_seed
from grasp.runs import Run, default_place
from grasp.training import Loop, Training, usual_schedule
from grasp.videos import film
from grasp.watchdog import Watchdog

World = gymnasium.Env | Callable[[], gymnasium.Env]


def train(
    agent: str | Agent = "GA-4",
    task: str | World = "cartpole-swingup",
    *,
    run: str | Path | None = None,
    label: str | None = None,
    sight: Sight | None = None,
    wandb: bool = False,
    show: Callable[[Facts], None] = lambda row: None,
    own_process: bool = False,
    **settings: Any,
) -> "LoadedAgent":
    """Train an agent, or continue its run, and return it.

    `task` is a task's name, a Gymnasium environment, or a function that makes one (needed for
    several at once). `label` names the agent in paths and pictures, `sight` says how images and
    repeated actions are made. `settings` are the fields of `Schedule`: steps, seed, num_envs,
    evaluate_every, ... `own_process` lets a hanging environment, or a signal that waits too long,
    end the process.
    """
    title = task if isinstance(task, str) else _title(task)
    label = label or (agent if isinstance(agent, str) else type(agent).__name__)
    sight = sight or usual_sight(title)
    # A task that does not fit leaves no run directory behind.
    trial = _maker(task, title, 1, 1.0, sight)()
    sizes = trial.sizes
    options = sizes.options
    trial.close()
    if isinstance(agent, str):
        images = sizes.images is not None
        agent = agent_named(agent, options=options, task=title, images=images)
    made = agent
    schedule = dataclasses.replace(usual_schedule(options), **settings)
    if schedule.deterministic:
        _check_one_thread()
    training = Training(task=title, name=label, agent=made, schedule=schedule, sight=sight)
    where = Run(run or default_run(training))
    make = _maker(task, title, schedule.num_envs, made.discount, sight)
    if wandb:
        check_wandb()
    with where.locked():
        where.claim(config(training))
        log = Log(where, wandb=wandb, show=show)
        try:
            loop = Loop(training, where, make, log)
            with _watchdog(loop, own_process).watching():
                loop.train()
        finally:
            log.close()
    rows = where.evaluations()
    if rows:
        title = f"{training.name} on {training.task}, seed {training.schedule.seed}"
        with disk(where.curve):
            draw_curve(rows, where.curve, title)
    if loop.stop is not None:
        raise Interrupted(loop.stop, where)
    return LoadedAgent(loop.agent, make, where)


class Interrupted(KeyboardInterrupt):
    """A signal stopped training after everything was saved."""

    def __init__(self, signal_: signal.Signals, run: Run):
        super().__init__(f"stopped by {signal_.name}; the same command continues {run.path}")
        self.signal = signal_


class LoadedAgent:
    """A trained agent: `act` decides, `plan` shows what it considered."""

    def __init__(self, agent: CompiledAgent, make: Callable[..., Boundary], run: Run):
        self.compiled = agent
        self.world = make()
        self.run = run
        self._make = make

    def act(self, observation: Any) -> np.ndarray:
        """The greedy action for one observation, in the environment's own bounds."""
        observations, goals = self._batch(observation)
        action = np.asarray(self.compiled.act_greedily(observations, goals).actions[0])
        return self.world.stretched(action)

    def plan(self, observation: Any) -> Plan:
        """What the planner concludes for one observation; its actions lie in [-1, 1]."""
        plan = self.compiled.plan(*self._batch(observation))
        return jax.tree.map(lambda leaf: np.asarray(leaf[0]), plan)

    def evaluate(
        self,
        episodes: int = 10,
        seed: int = 0,
        progress: Callable[[Episode], None] = lambda episode: None,
        heads: Heads = "greedy",
    ) -> list[Episode]:
        """Episodes from starts that training never saw: by the most probable head, by heads drawn
        from the policy, or by one head alone.
        """
        # Far above the indices that a training run's own evaluations use.
        seeds = [episode_seed(seed, Stream.EVALUATE, 2**40 + index) for index in range(episodes)]
        worlds = [self._make() for _ in range(min(episodes, 32))]
        return play(self.compiled, worlds, seeds, progress, heads)

    def film(self, path: str | Path, seed: int = 0, heads: Heads = "greedy") -> int:
        """The first of the episodes that `evaluate` plays, as an mp4; returns its frames."""
        world = self._make(render_mode="rgb_array")
        first = episode_seed(seed, Stream.EVALUATE, 2**40)
        try:
            return film(self.compiled, world, first, Path(path), heads)
        finally:
            world.close()

    def outlooks(self, resets: Sequence[dict[str, Any]]) -> list[Outlook]:
        """Where each head's option leads, from each reset; for Collect and Point-Mass."""
        return outlooks(self.compiled, self.world, resets)

    def judged(self, resets: Sequence[dict[str, Any]]) -> Judgement:
        """The mean Q of options at the right object, at the others, and anywhere."""
        return judged(self.compiled, self.world, resets)

    def draw(self, path: str | Path) -> None:
        """The picture of the paper: each head's option from several starts and layouts."""
        pictured = drawable(self.world).unwrapped.pictured
        rows = {label: self.outlooks(resets) for label, resets in pictured.items()}
        draw_outlooks(rows, Path(path), f"options of the heads: {self.run.config()['name']}")

    def _batch(self, observation: Any) -> tuple[np.ndarray, np.ndarray]:
        observed, goal = self.world.arrays(observation)
        return observed[None], goal[None]


def load(
    run: str | Path,
    which: Literal["last", "best"] = "last",
    environment: World | None = None,
    planners: Sequence[type] = (),
) -> LoadedAgent:
    """The agent of a run directory; `environment` where the task is not one of ours by name,
    `planners` where the planner is a class of your own.
    """
    where = Run.existing(run)
    settings = where.config()
    missing = [name for name in ("agent", "task", "seed") if name not in settings]
    if missing or not isinstance(settings["agent"], dict):
        raise CorruptCheckpoint(f"{where.config_file} lacks {', '.join(missing) or 'an agent'}")
    checkpoint = where.latest_best() if which == "best" else where.latest()
    if checkpoint is None:
        raise UsageError(f"{where.path} has no checkpoint yet; train it a little longer")
    made, title = rebuilt(settings["agent"], planners), settings["task"]
    make = _maker(environment or title, title, 1, made.discount, run_sight(settings))
    agent = CompiledAgent(made, make().sizes, settings["seed"])
    agent.arrays = restored_arrays(agent.arrays, agent_arrays(checkpoint))
    return LoadedAgent(agent, make, where)


def default_run(training: Training) -> Path:
    return default_place(training.task, training.name, training.schedule.seed)


def config(training: Training) -> Facts:
    command = " ".join(["grasp", *sys.argv[1:]])
    return training.described() | {"version": grasp.__version__, "command": command}


def run_sight(settings: Facts) -> Sight:
    """How the task of a run's configuration is seen."""
    try:
        return Sight(**settings.get("sight", {}))
    except TypeError as problem:
        raise CorruptCheckpoint(f"the configuration has no sight of ours: {problem}") from None


def _maker(
    task: str | World, title: str, copies: int, discount: float, sight: Sight
) -> Callable[..., Boundary]:
    """A function that makes one world after the other; of a task by name with further options, as
    `render_mode`.
    """
    if isinstance(task, str):
        return lambda **more: Boundary(make_task(task, discount, sight, **more), title)
    if not isinstance(task, gymnasium.Env):
        return lambda **_: Boundary(seen_by(task(), sight, title), title)
    if copies > 1:
        raise UsageError(
            "several environments at once need a function that makes one, not an environment"
        )
    return lambda **_: Boundary(seen_by(copy.deepcopy(task), sight, title), title)


def _title(task: World) -> str:
    if isinstance(task, gymnasium.Env):
        return task.spec.id if task.spec else type(task.unwrapped).__name__
    return getattr(task, "__name__", type(task).__name__)


def _check_one_thread() -> None:
    """One thread is asked for by the environment variable that JAX reads when it starts."""
    if os.environ.get("PJRT_NPROC") != "1":
        raise UsageError(
            "deterministic training needs PJRT_NPROC=1 in the environment before JAX is imported; "
            "`grasp train --deterministic` sets it"
        )


def _watchdog(loop: Loop, own_process: bool) -> Watchdog:
    """SIGINT and SIGTERM ask the loop to save and stop, and no environment may hang."""

    def stop(number: signal.Signals) -> None:
        loop.stop = loop.stop or number

    return Watchdog(
        worlds=lambda: [*loop.worlds, *loop.evaluation_worlds],
        patience=loop.training.schedule.patience,
        stop=stop,
        leave=os._exit if own_process else None,
    )
