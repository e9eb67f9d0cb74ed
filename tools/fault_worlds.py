"""Faults of environments, of input, and of the checkpoint's own completeness."""

import contextlib
import dataclasses
import io
import itertools
import random
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from fault_rows import Row, ending

from grasp.agents.grasp import Grasp
from grasp.checkpoints import named_arrays, ring
from grasp.environments import make
from grasp.environments.boundary import Boundary
from grasp.errors import EnvironmentFault, GraspError
from grasp.log import Log
from grasp.replay import Replay
from grasp.runs import Checkpoint, Run
from grasp.schedule import Counters, Schedule, Training
from grasp.training import Loop
from grasp.turns import train_alone

BAD: dict[str, tuple[Any, Any]] = {  # observation, reward
    "NaN observation": (np.array([np.nan, 0], np.float32), 0.0),
    "infinite observation": (np.array([0, np.inf], np.float32), 0.0),
    "wrong shape": (np.zeros(3, np.float32), 0.0),
    "wrong type": (np.array(["a", "b"]), 0.0),
    "nothing": (None, 0.0),
    "NaN reward": (np.zeros(2, np.float32), np.nan),
    "infinite reward": (np.zeros(2, np.float32), np.inf),
}


class Line(gymnasium.Env):
    """Shows (step, step of the episode); one kind of fault at one step, or errors at random."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, kind: str = "", at: int = 0, raising: float = 0.0):
        self.kind, self.at, self.raising = kind, at, raising
        self.total = self.steps = 0
        self.draw = random.Random(0)

    def reset(self, *, seed: int | None = None, options: Any = None):
        self.steps = 0
        return np.array([self.total, 0], np.float32), {}

    def step(self, action: np.ndarray):
        self.total += 1
        self.steps += 1
        if self.draw.random() < self.raising:
            raise RuntimeError("the simulator fell over")
        seen = (np.array([self.total, self.steps], np.float32), 1.0)
        observation, reward = BAD[self.kind] if self.total == self.at else seen
        return observation, reward, False, self.steps == 50, {}


@contextlib.contextmanager
def loop_on(place: Path, task: str, world: Any, agent: Grasp, **settings: Any) -> Iterator[Loop]:
    """A loop without its session."""
    usual: dict[str, Any] = {"num_envs": 1, "evaluation_episodes": 1}
    training = Training(task, "GA-2", agent, Schedule(**(usual | settings)))
    run = Run(place)
    run.claim(training.described())
    log = Log(run)
    try:
        yield Loop(training, run, lambda: Boundary(world(), task), log)
    finally:
        log.close()


def bad_numbers(place: Path, trials: int, seed: int = 0) -> Row:
    """Each kind at any of the first steps: caught at that step, and not in the replay."""
    draw = random.Random(seed)
    held = 0
    agent = Grasp(width=8, warm_up=10**9, replay_capacity=1_000)
    with loop_on(place / "numbers", "line", Line, agent) as loop:
        for trial in range(trials):
            kind, at = list(BAD)[trial % len(BAD)], draw.randrange(1, 300)
            loop.worlds = [Boundary(Line(kind, at), "line")]
            loop.counters, loop.returns = Counters(), np.zeros(1)
            loop.replay = Replay(
                capacity=1_000, lanes=1, observation_size=2, goal_size=0, action_size=1
            )
            loop._begin(0)
            with contextlib.suppress(EnvironmentFault):
                while loop.counters.decisions < at:
                    loop.decide(loop.actions())
            state = loop.replay.state()
            held += (
                loop.counters.decisions == at - 1
                and len(loop.replay) == at - 1
                and all(np.isfinite(array).all() for array in state.values())
            )
    return Row(f"bad numbers, {len(BAD)} kinds at any step: caught there, none in the replay",
               trials, held, "all")  # fmt: skip


def raising(place: Path, steps: int) -> list[Row]:
    """An environment that raises on 1 % of its steps."""
    agent = Grasp(width=8, warm_up=10**9, replay_capacity=2 * steps)
    with loop_on(
        place / "raising", "line", lambda: Line(raising=0.01), agent, steps=steps,
        evaluate_every=steps, log_every=steps,
    ) as loop:  # fmt: skip
        train_alone(loop)
        replay, counters = loop.replay, loop.counters
    rows = np.flatnonzero(~replay.end[0])
    shown = replay.observations[0]
    apart = np.abs(shown[rows + 1] - shown[rows] - 1).max(axis=1) < 0.5
    return [
        Row("an environment that raises on 1 % of steps: steps taken to the end", steps,
            counters.decisions, "all", f"{counters.faults} errors"),
        Row("decisions in its replay that stay within one episode", len(rows), int(apart.sum()),
            "all"),
    ]  # fmt: skip


def fuzzed_commands(trials: int, seed: int = 0) -> Row:
    """Command lines and configurations with one or more wrong values, names or shapes."""
    from grasp import session
    from grasp.__main__ import main
    from grasp.agents import description, rebuilt

    draw = random.Random(seed)
    words = ["", "-1", "0", "nan", "inf", "1e999", "x", "--", "--steps", "\x00", "💥", "../..",
             "[]", "None", "1.5", "99999999999999999999", "-", "--width=8=9", "True"]  # fmt: skip
    flags = ["--steps", "--seed", "--num-envs", "--batch", "--window", "--width", "--discount",
             "--log-every", "--evaluate-every", "--model-learning-rate", "--replay-capacity",
             "--planner.depth", "--preset", "--widht", "--patience", "--greedy-share"]  # fmt: skip
    whole = description(Grasp())

    class Started(GraspError):
        exit_code = 2  # a command that turned out right: it would have trained

    def started(*arguments: Any, **settings: Any) -> None:
        raise Started("started")

    held = 0
    before, session.train = session.train, started
    for trial in range(trials):
        errors = io.StringIO()
        try:
            with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(errors):
                if trial % 2:
                    name, other = draw.choice(list(whole)), draw.choice(words)
                    changed = whole | draw.choice(
                        [{name: other}, {other: 1}, {name: {"kind": other}}]
                    )
                    code = _code(lambda changed=changed: rebuilt(changed))
                else:
                    line = [
                        "train",
                        draw.choice(["GA-4", "GA-4", "TD3", *words]),
                        "--task",
                        "collect",
                    ]
                    for _ in range(draw.randrange(1, 4)):
                        line += [draw.choice(flags), draw.choice(words)]
                    code = _code(lambda line=line: main(line))
            if code in (0, 2) and "Traceback" not in errors.getvalue():
                held += 1
            else:
                print(f"not held: exit {code}, {errors.getvalue()[-300:]}")
        except Exception as problem:  # a traceback for the user
            print(f"not held: {problem!r}")
    session.train = before
    return Row(
        "fuzzed command lines and configurations: refused with exit 2 or valid, no traceback",
        trials,
        held,
        "all",
    )


def _code(work: Any) -> int:
    try:
        found = work()
    except GraspError as problem:
        return problem.exit_code
    except SystemExit as problem:
        return int(problem.code or 0)
    return found if isinstance(found, int) else 0


AGENT = Grasp(
    num_affordances=2, width=8, batch=8, window=2, warm_up=20, replay_capacity=200,
    updates_per_call=2, decisions_per_update=17,
)  # fmt: skip
PACE: dict[str, Any] = {
    "steps": 1_300, "evaluate_every": 200, "log_every": 50, "save_seconds": 1e9,
}  # fmt: skip


def each_item_removed(place: Path, task: str) -> list[Row]:
    """A run continued from a checkpoint that lacks one item must not end like the others."""
    with loop_on(place / "whole", task, lambda: make(task), AGENT, **PACE) as loop:
        fresh = named_arrays(loop.agent.arrays)
        train_alone(loop)
        compiled, expected = loop.agent, _end(place / "whole")
    stop = _telling_moment(Run(place / "whole").metrics())
    with loop_on(place / "stopped", task, lambda: make(task), AGENT, **PACE) as loop:
        decide = loop.decide

        def stopping(actions: np.ndarray) -> None:
            decide(actions)
            if loop.counters.decisions == stop:
                loop.stop = signal.SIGTERM

        loop.decide = stopping  # type: ignore[method-assign]  # a signal at a chosen decision
        train_alone(loop)
    checkpoint = Run(place / "stopped").latest()
    assert checkpoint is not None
    items = _items(checkpoint, ring(checkpoint, Run(place / "stopped")), fresh)
    red, green = [], []
    for item in [None, *items]:
        path = place / "resumed"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(place / "stopped", path)
        with loop_on(path, task, lambda: make(task), AGENT, **PACE) as loop:
            compiled.arrays = loop.agent.arrays
            loop.agent = compiled
            changed = items[item] if item else checkpoint
            loop.run.latest = lambda changed=changed: changed  # type: ignore[method-assign]
            if item and item.startswith("replay "):
                _without_column(loop, item.removeprefix("replay "))
            try:
                train_alone(loop)
                same = _end(path) == expected
            except (GraspError, KeyError, ValueError):
                same = False
        (green if same else red).append(item)
    control = Row(f"a checkpoint of {task} with every item: the run ends as if never stopped", 1,
                  int(None in green), "all")  # fmt: skip
    missed = [item for item in green if item]
    note = "; ".join(items) + (f"; not noticed: {missed}" if missed else "")
    removed = f"each item of the saved state of {task} removed in turn: noticed"
    return [control, Row(removed, len(items), len(red) - (None in red), "all", note)]


def _telling_moment(rows: list[dict[str, Any]]) -> int:
    """The decision before a row that shows the last update again and an evaluation that is not the
    best, with updates after it: all that was before the stop then shows in what comes after it.
    """
    best: float | None = None
    for before, row in itertools.pairwise(rows):
        best = max((r for r in (best, before.get("eval/return")) if r is not None), default=None)
        worse = best is not None and row.get("eval/return", best + 1) <= best
        made = AGENT.warm_up + AGENT.decisions_per_update * row["updates"]
        follow = rows[-1]["updates"] - row["updates"]
        if worse and row["updates"] and row["decisions"] > made and follow > 2:
            return row["decisions"] - 1
    raise AssertionError("no evaluation of the whole run was below its best: lengthen it")


def _end(path: Path) -> Any:
    checkpoint = Run(path).latest()
    assert checkpoint is not None
    counters = {k: v for k, v in checkpoint.facts["counters"].items() if k != "seconds"}
    best = sorted(entry.name for entry in Run(path).best.glob("step-*"))
    return (*ending(path), counters, best)


def _items(
    checkpoint: Checkpoint, columns: dict[str, np.ndarray], fresh: dict[str, np.ndarray]
) -> dict[str, Checkpoint]:
    """The checkpoint without each of its items; those that are at their start anyway are left."""
    parts, facts = checkpoint.parts, checkpoint.facts
    found: dict[str, Checkpoint] = {}

    def put(name: str, part: str, arrays: dict[str, np.ndarray]) -> None:
        found[name] = checkpoint._replace(parts=parts | {part: arrays})

    for group in sorted({name.split(".")[1] for name in fresh}):
        mine = {n: (fresh[n] if n.split(".")[1] == group else a) for n, a in parts["agent"].items()}
        if any(not np.array_equal(mine[n], a) for n, a in parts["agent"].items()):
            put(f"agent {group}", "agent", mine)
    loop = parts["loop"]
    put("environment", "loop", {n: a for n, a in loop.items() if not n.startswith("world/")})
    for name in ("returns", "begun"):
        if loop[name].any():
            put(name, "loop", loop | {name: np.zeros_like(loop[name])})
    usual = dataclasses.asdict(Counters())
    for name, value in facts["counters"].items():
        if name != "seconds" and value != usual[name]:
            counters = facts["counters"] | {name: usual[name]}
            found[f"counter {name}"] = checkpoint._replace(facts=facts | {"counters": counters})
    for name in ("episodes", "last_metrics", "segments"):
        if facts[name]:
            found[name] = checkpoint._replace(facts=facts | {name: type(facts[name])()})
    for name, column in columns.items():
        if name == "end" or column.any():
            found[f"replay {name}"] = checkpoint
    return found


def _without_column(loop: Loop, name: str) -> None:
    put_rows = loop.replay.put_rows

    def without(rows: dict[str, np.ndarray]) -> None:
        put_rows(rows | {name: np.full_like(rows[name], name == "end")})

    loop.replay.put_rows = without  # type: ignore[method-assign]
