"""What the page asks, answered with what JSON can hold; knows nothing of HTTP.

All requests that touch a world or the agent come from one thread (`server.py`).
"""

import base64
import contextlib
import io
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from grasp.environments import make
from grasp.environments.boundary import Boundary
from grasp.errors import CorruptCheckpoint, GraspError, UsageError
from grasp.evaluation import outlook
from grasp.figures import COLOURS
from grasp.files import read_manifest
from grasp.lens import scenes
from grasp.lens.curves import curves
from grasp.lens.episode import Episode, Rule, Spec, compare
from grasp.lens.tree import Level, nodes, shown_tree, tree_of
from grasp.planners.complete_tree import CompleteTree
from grasp.releases import line
from grasp.runs import Run
from grasp.session import LoadedAgent, load, run_sight

KEPT = 4  # episodes; going back to one of them costs nothing
MOST_PATH = 60  # points of one drawn trajectory

Answer = dict[str, Any]


class Watched(NamedTuple):
    """An agent of the run, and how its trees are found."""

    agent: LoadedAgent
    levels: Callable[[np.ndarray, np.ndarray], list[Level]]


class View:
    def __init__(self, run: Run, which: Literal["last", "best"] = "last"):
        self.run = run
        self.which: Literal["last", "best"] = which
        self.config = run.config()
        self._watched: Watched | None = None
        self._episodes: OrderedDict[Spec, Episode] = OrderedDict()
        self._spare: list[Boundary] = []  # worlds that no episode needs now

    def facts(self) -> Answer:
        """What the run is; `problem` says in a sentence why no episode can be shown, if so."""
        known = {
            "task": self.config["task"],
            "agent": self.config["name"],
            "run": self.run.path.name,
            "which": self.which,
            "card": _card(self.run),
            "colours": list(COLOURS),
        }
        try:
            agent = self._load().agent
        except GraspError as problem:
            return known | {"problem": str(problem)}
        made: Any = agent.compiled.agent
        tree, _ = shown_tree(made)
        whole = isinstance(made.planner, CompleteTree)
        space: Any = agent.world.environment.action_space
        return known | {
            "problem": None,
            "heads": made.num_affordances,
            "planner": type(made.planner).__name__,
            "planner_depth": tree.depth if whole else 0,
            "options": agent.world.sizes.options,
            "goal": agent.world.sizes.goal > 0,
            "scenic": scenes.is_scenic(agent.world),
            "low": _numbers(space.low),
            "high": _numbers(space.high),
        }

    def reload(self) -> Answer:
        """The newest checkpoint of a run that goes on."""
        self._watched = None
        while self._episodes:
            self._forget_oldest()
        return self.facts()

    def training(self) -> Answer:
        return curves(self.run) | {"card": _card(self.run)}

    def moment(self, asked: Any) -> Answer:
        """One moment of an episode with its plan, tree, picture or paths, and the heads so far.

        `passing` asks for an episode that nobody will come back to, as while something is dragged.
        """
        watched, spec = self._load(), self._spec(asked)
        at = asked.get("at", 0)
        if type(at) is not int:
            raise UsageError(f"at is {at!r}; it must be the number of a decision, or -1: the end")
        episode = self._episode(spec, bool(asked.get("passing")))
        index = episode.reach(at)
        now = episode.moments[index]
        over = episode.ended and index == len(episode.choices)
        chosen = None if over else spec.rule_at(index).chosen(now.plan.policy)
        stretched = watched.agent.world.stretched
        answer = {
            "index": index,
            "over": over,
            "success": episode.success if over else None,
            "returned": now.returned,
            "steps": now.steps,
            # An image is seen in the frame beside it.
            "observation": [] if watched.agent.world.sizes.images else _numbers(now.observation),
            "goal": _numbers(now.goal),
            "plan": {
                "actions": [_numbers(stretched(action)) for action in now.plan.actions],
                "q_values": _numbers(now.plan.q_values),
                "policy": _numbers(now.plan.policy),
                "value": float(now.plan.value),
            },
            "tree": nodes(
                watched.levels(now.observation, now.goal),
                stretched,
                lambda action: scenes.aim(episode.world, action),
                watched.agent.compiled.agent.discount,
            ),
            "chosen": chosen,
            "heads": [choice.head for choice in episode.choices],
            "returns": [moment.returned for moment in episode.moments],
            "ended": episode.ended,
        }
        return answer | self._picture(episode, index)

    def compare(self, asked: Any) -> Answer:
        """The start of a spec under every rule: planning, each head off, each head alone."""
        watched, spec = self._load(), self._spec(asked)
        K = watched.agent.compiled.agent.num_affordances  # type: ignore[attr-defined]  # a Grasp
        heads = range(K)
        rules = [Rule(), *(Rule(force=head) for head in heads)]
        if K > 1:
            rules += [Rule(off=frozenset({head})) for head in heads]
        worlds = [self._world() for _ in rules]
        try:
            played = compare(watched.agent.compiled, worlds, spec, rules)
        finally:
            self._spare += worlds
        return {
            "results": [
                result._asdict()
                | {"rule": {"off": sorted(result.rule.off), "force": result.rule.force}}
                for result in played
            ]
        }

    def _picture(self, episode: Episode, at: int) -> Answer:
        """The scene with the heads' paths where the world has one, else a frame."""
        world, now = episode.world, episode.moments[at]
        if not scenes.is_scenic(world):
            frame, why = _frame(episode, at)
            return {"scene": None, "paths": None, "frame": frame, "no_frame": why}
        environment: Any = world.environment
        options = [world.stretched(action) for action in now.plan.actions]
        environment.record = True
        try:
            state = {name.removeprefix("state/"): part for name, part in now.state.items()}
            found = outlook(environment, state, options)
        finally:
            environment.record = False
            episode.stand_at_the_end()
        return {
            "scene": scenes.described(found.scene, scenes.objects_move(world)),
            "paths": [[_numbers(place) for place in _thin(path)] for path in found.paths],
            "picked": found.picked,
            "frame": None,
        }

    def _load(self) -> Watched:
        if self._watched is None:
            agent = load(self.run.path, self.which)
            self._watched = Watched(agent, tree_of(agent.compiled))
        return self._watched

    def _world(self) -> Boundary:
        """A world of the task that can be drawn; making one takes longer than a whole plan."""
        if self._spare:
            return self._spare.pop()
        task, discount = self.config["task"], self._load().agent.compiled.agent.discount
        sight = run_sight(self.config)
        return Boundary(make(task, discount, sight, render_mode="rgb_array"), task)

    def _episode(self, spec: Spec, passing: bool) -> Episode:
        if spec not in self._episodes:
            made = Episode(self._load().agent.compiled, self._world(), spec)
            if passing:
                self._spare.append(made.world)  # the next request takes it, and this one is done
                return made
            for earlier in reversed(self._episodes.values()):
                if earlier.spec._replace(rules=spec.rules) == spec:
                    made.take_over(earlier)
                    break
            self._episodes[spec] = made
        self._episodes.move_to_end(spec)
        while len(self._episodes) > KEPT:
            self._forget_oldest()
        return self._episodes[spec]

    def _forget_oldest(self) -> None:
        self._spare.append(self._episodes.popitem(last=False)[1].world)

    def _spec(self, asked: Any) -> Spec:
        """The spec of a request, every part checked."""
        given = asked.get("spec") if isinstance(asked, dict) else None
        if not isinstance(given, dict):
            raise UsageError("a request needs a spec with start, order, scene and rules")
        start, order, scene = given.get("start", 0), given.get("order"), given.get("scene")
        if type(start) is not int or not 0 <= start < 2**31:
            raise UsageError(f"start is {start!r}; it must be a whole number from 0 on")
        if not scenes.is_scenic(self._load().agent.world) and (order or scene):
            raise UsageError(
                f"the goal and the scene of {self.config['task']} come with the start; "
                "choose another start"
            )
        K = self._load().agent.compiled.agent.num_affordances  # type: ignore[attr-defined]  # same
        return Spec(
            start=start,
            order=None if order is None else scenes.order(order),
            scene=None if scene is None else scenes.layout(scene),
            rules=_rules(given.get("rules", [{"since": 0}]), K),
        )


def _rules(given: Any, K: int) -> tuple[tuple[int, Rule], ...]:
    wanted = f"rules is {given!r}; it must be a list like [{{'since': 0, 'off': [1]}}]"
    if not isinstance(given, list) or not all(isinstance(entry, dict) for entry in given):
        raise UsageError(wanted)
    found = []
    for entry in given:
        since, off, force = entry.get("since"), entry.get("off", []), entry.get("force")
        if type(since) is not int or not isinstance(off, list):
            raise UsageError(wanted)
        heads = [*off, *([] if force is None else [force])]
        if not all(type(head) is int and 0 <= head < K for head in heads):
            raise UsageError(f"heads are {heads}; this agent has heads 0 to {K - 1}")
        if len(set(off)) == K:
            raise UsageError(f"all {K} heads are off; at least one must stay on")
        found.append((since, Rule(off=frozenset(off), force=force)))
    if not found or found[0][0] != 0 or [e[0] for e in found] != sorted({e[0] for e in found}):
        raise UsageError(f"{wanted}, from 0 on and in order")
    return tuple(found)


def _card(run: Run) -> str | None:
    """What a released agent says of itself; a run that is none has nothing."""
    with contextlib.suppress(CorruptCheckpoint, IndexError):
        card = read_manifest(run.folders()[-1])["facts"].get("card")
        return card and line(card)
    return None


def _frame(episode: Episode, at: int) -> tuple[str | None, str | None]:
    """A frame as a data URL, or why there is none."""
    from PIL import Image

    try:
        picture = episode.frame(at)
    except Exception as problem:  # whatever a foreign renderer raises, the page goes on without
        return None, f"{type(problem).__name__}: {problem}".splitlines()[0][:200]
    if picture is None:
        return None, "this environment draws no picture of a moment that has passed"
    file = io.BytesIO()
    Image.fromarray(np.asarray(picture, np.uint8)).save(file, "JPEG", quality=85)
    return f"data:image/jpeg;base64,{base64.b64encode(file.getvalue()).decode()}", None


def _thin(path: np.ndarray) -> np.ndarray:
    """At most `MOST_PATH` places of a path, both ends among them."""
    count = min(len(path), MOST_PATH)
    return path[np.linspace(0, len(path) - 1, count).round().astype(int)]


def _numbers(array: Any) -> list[float]:
    return [float(number) for number in np.ravel(array)]
