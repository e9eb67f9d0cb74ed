"""The Python face: train and load, as the commands do."""

import contextlib
import copy
import dataclasses
import os
import shlex
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, overload

import gymnasium
import jax
import numpy as np

import grasp
from grasp.agents import agent_named, rebuilt
from grasp.agents.agent import Agent
from grasp.agents.compiled import CompiledAgent
from grasp.checkpoints import agent_arrays, completed, named_arrays, restored_arrays
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
from grasp.randomness import fresh_start
from grasp.runs import Run, default_place
from grasp.schedule import Training, usual_schedule
from grasp.training import Loop
from grasp.turns import train as run_all
from grasp.videos import film
from grasp.watchdog import Watchdog

World = gymnasium.Env | Callable[[], gymnasium.Env]


@overload
def train(
    agent: str | Agent = ..., task: str | World = ..., *, seeds: None = None, **settings: Any
) -> "LoadedAgent": ...


@overload
def train(
    agent: str | Agent = ..., task: str | World = ..., *, seeds: Sequence[int], **settings: Any
) -> "list[LoadedAgent]": ...


def train(
    agent: str | Agent = "GA-4",
    task: str | World = "cartpole-swingup",
    *,
    seeds: Sequence[int] | None = None,
    run: str | Path | None = None,
    label: str | None = None,
    sight: Sight | None = None,
    wandb: bool = False,
    show: Callable[[Facts], None] = lambda row: None,
    own_process: bool = False,
    **settings: Any,
) -> "LoadedAgent | list[LoadedAgent]":
    """Train an agent, or continue its run, and return it.

    `task` is a task's name, a Gymnasium environment, or a function that makes one (needed for
    several at once). `label` names the agent in paths and pictures, `sight` says how images and
    repeated actions are made. `settings` are the fields of `Schedule`: steps, seed, num_envs,
    evaluate_every, ... `seeds` trains several side by side, each in the run directory of its own
    seed, and returns all of them. `own_process` lets a hanging environment, or a signal that waits
    too long, end the process.
    """
    title = task if isinstance(task, str) else _title(task)
    label = label or (agent if isinstance(agent, str) else type(agent).__name__)
    sight = sight or usual_sight(title, agent=agent if isinstance(agent, str) else "")
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
    if wandb:
        check_wandb()
    if seeds is not None:
        _check_seeds(seeds, run, wandb)
    make = _maker(task, title, schedule.num_envs, made.discount, sight)
    runs: dict[Run, Training] = {}
    for seed in [schedule.seed] if seeds is None else seeds:
        one = Training(title, label, made, dataclasses.replace(schedule, seed=seed), sight)
        runs[Run(run or default_run(one))] = one
    loops = _trained(runs, make, _Watch(wandb, show, own_process, several=seeds is not None))
    for problem in [loop.problem for loop in loops if loop.problem is not None]:
        raise problem
    for stop in [loop.stop for loop in loops if loop.stop is not None]:
        raise Interrupted(stop, list(runs))
    agents = [LoadedAgent(loop.agent, make, loop.run) for loop in loops]
    return agents[0] if seeds is None else agents


class _Watch(NamedTuple):
    """Who looks on, and what may be done to the process."""

    wandb: bool
    show: Callable[[Facts], None]
    own_process: bool
    several: bool

    def log(self, run: Run, seed: int) -> Log:
        """Rows of one of several runs say which."""
        shown = (lambda row: self.show(row | {"seed": seed})) if self.several else self.show
        return Log(run, wandb=self.wandb, show=shown)


def _trained(
    runs: Mapping[Run, Training], make: Callable[[], Boundary], watch: _Watch
) -> list[Loop]:
    """The loops of all runs, each at its end or where it was stopped, and their curves drawn."""
    loops: list[Loop] = []
    with contextlib.ExitStack() as open_:
        for run in runs:
            open_.enter_context(run.locked())
        for run, training in runs.items():
            run.claim(config(training))
            log = watch.log(run, training.schedule.seed)
            open_.callback(log.close)
            loops.append(Loop(training, run, make, log, loops[0].agent if loops else None))
        with _watchdog(loops, watch.own_process).watching():
            run_all(loops)
    for loop in loops:
        if loop.problem is None:
            _draw(loop)
    return loops


def _draw(loop: Loop) -> None:
    training, rows = loop.training, loop.run.evaluations()
    if rows:
        title = f"{training.name} on {training.task}, seed {training.schedule.seed}"
        with disk(loop.run.curve):
            draw_curve(rows, loop.run.curve, title)


class Interrupted(KeyboardInterrupt):
    """A signal stopped training after everything was saved."""

    def __init__(self, signal_: signal.Signals, runs: Sequence[Run]):
        paths = ", ".join(str(run.path) for run in runs)
        super().__init__(f"stopped by {signal_.name}; the same command continues {paths}")
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
        seeds = [fresh_start(seed, index) for index in range(episodes)]
        worlds = [self._make() for _ in range(min(episodes, 32))]
        return play(self.compiled, worlds, seeds, progress, heads)

    def film(self, path: str | Path, seed: int = 0, heads: Heads = "greedy") -> int:
        """The first of the episodes that `evaluate` plays, as an mp4; returns its frames."""
        world = self._make(render_mode="rgb_array")
        try:
            return film(self.compiled, world, fresh_start(seed, 0), Path(path), heads)
        finally:
            world.close()

    def outlooks(
        self,
        resets: Sequence[dict[str, Any]],
        progress: Callable[[int], None] = lambda done: None,
    ) -> list[Outlook]:
        """Where each head's option leads, from each reset; for the option tasks."""
        return outlooks(self.compiled, self.world, resets, progress)

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
    """The agent of a run directory, or a released one by its name (`grasp agents`);
    `environment` where the task is not one of ours by name, `planners` where the planner is a
    class of your own.
    """
    where = Run.existing(run)
    settings = where.config()
    missing = [name for name in ("agent", "task", "seed") if name not in settings]
    if missing or not isinstance(settings["agent"], dict):
        raise CorruptCheckpoint(f"{where.config_file} lacks {', '.join(missing) or 'an agent'}")
    checkpoint = where.latest_best() if which == "best" else where.latest()
    if checkpoint is None:
        what = "checkpoint yet; train it a little longer"
        if which == "best":
            what = "best agent of its own; take the last one"
        raise UsageError(f"{where.path} has no {what}")
    made, title = rebuilt(settings["agent"], planners), settings["task"]
    make = _maker(environment or title, title, 1, made.discount, run_sight(settings))
    agent = CompiledAgent(made, make().sizes, settings["seed"])
    saved = agent_arrays(checkpoint)
    if "card" in checkpoint.facts:  # a released agent, which has no more than acting needs
        saved = completed(named_arrays(agent.arrays), saved, made.acts_with)
    agent.arrays = restored_arrays(agent.arrays, saved)
    return LoadedAgent(agent, make, where)


def default_run(training: Training) -> Path:
    return default_place(training.task, training.name, training.schedule.seed)


def config(training: Training) -> Facts:
    return training.described() | {"version": grasp.__version__, "command": typed(sys.argv[1:])}


def typed(arguments: Sequence[str]) -> str:
    """The command of a run, without where it lies: folders are moved, and differ by machine."""
    before = ["", *arguments]
    kept = [
        word
        for word, last in zip(arguments, before, strict=False)
        if not word.startswith("--run=") and "--run" not in (word, last)
    ]
    return shlex.join(["grasp", *kept])


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


def _check_seeds(seeds: Sequence[int], run: str | Path | None, wandb: bool) -> None:
    if not seeds or len(set(seeds)) < len(seeds):
        raise UsageError(f"seeds are {list(seeds)}; give at least one, and each once")
    if run is not None:
        raise UsageError(
            "a run directory holds one seed, so --run and --seeds do not go together; "
            "use --label to give the runs another name"
        )
    if wandb:
        raise UsageError("--wandb logs one run of a process; use it without --seeds")


def _check_one_thread() -> None:
    """One thread is asked for by the environment variable that JAX reads when it starts."""
    if os.environ.get("PJRT_NPROC") != "1":
        raise UsageError(
            "deterministic training needs PJRT_NPROC=1 in the environment before JAX is imported; "
            "`grasp train --deterministic` sets it"
        )


def _watchdog(loops: Sequence[Loop], own_process: bool) -> Watchdog:
    """SIGINT and SIGTERM ask the loops to save and stop, and no environment may hang."""

    def stop(number: signal.Signals) -> None:
        for loop in loops:
            loop.stop = loop.stop or number

    return Watchdog(
        worlds=lambda: [w for loop in loops for w in (*loop.worlds, *loop.evaluation_worlds)],
        patience=loops[0].training.schedule.patience,
        stop=stop,
        leave=os._exit if own_process else None,
    )
