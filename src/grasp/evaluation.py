"""Episodes played without learning: returns, success, which head was chosen when, and where each
head's option would have led.

Several episodes run side by side so that one compiled call decides for all of them.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from grasp.agents.agent import Decision, Sizes
from grasp.agents.compiled import CompiledAgent
from grasp.environments.boundary import Boundary
from grasp.errors import EnvironmentRaised, UsageError
from grasp.figures import Outlook
from grasp.randomness import Stream, generator

# The most probable head, one drawn from the policy, an action anywhere, or always the same head.
Heads = Literal["greedy", "sampled", "random"] | int


class Episode(NamedTuple):
    seed: int
    returned: float  # undiscounted sum of rewards
    decisions: int
    environment_steps: int
    success: bool | None
    heads: list[int]  # the affordance chosen at each decision
    counts: dict[str, float] = {}  # what the environment counts beside the reward


class Score(NamedTuple):
    """What a number of episodes come to."""

    episodes: int
    mean: float  # of the returns
    deviation: float
    success: float | None  # share that succeeded, where the task says so
    decisions: float  # mean per episode
    environment_steps: float
    heads: dict[str, float]  # share of decisions that each head took
    counts: dict[str, float]  # means of what the environment counts beside the reward


def score(episodes: Sequence[Episode]) -> Score:
    returns = [episode.returned for episode in episodes]
    taken = np.concatenate([np.asarray(episode.heads) for episode in episodes])
    return Score(
        episodes=len(episodes),
        mean=float(np.mean(returns)),
        deviation=float(np.std(returns)),
        success=share_of_successes([episode.success for episode in episodes]),
        decisions=float(np.mean([episode.decisions for episode in episodes])),
        environment_steps=float(np.mean([episode.environment_steps for episode in episodes])),
        heads={str(head): float(np.mean(taken == head)) for head in np.unique(taken)},
        counts=_means([episode.counts for episode in episodes if episode.counts]),
    )


def _means(counts: Sequence[dict[str, float]]) -> dict[str, float]:
    names = counts[0] if counts else {}
    return {name: float(np.mean([episode.get(name, 0) for episode in counts])) for name in names}


def share_of_successes(outcomes: Sequence[bool | None]) -> float | None:
    """Of those that tell; None where no episode does."""
    told = [success for success in outcomes if success is not None]
    return float(np.mean(told)) if told else None


class Stopped(Exception):
    """Episodes were given up because a signal asks to leave."""


def play(
    agent: CompiledAgent,
    worlds: Sequence[Boundary],
    seeds: Sequence[int],
    progress: Callable[[Episode], None] = lambda episode: None,
    heads: Heads = "greedy",
    stopped: Callable[[], bool] = lambda: False,
) -> list[Episode]:
    """One episode per seed, in their order and without noise; as many at once as there are
    worlds. An error that the environment raises ends its episode.
    """
    waiting = list(enumerate(seeds))[::-1]
    finished: dict[int, Episode] = {}
    lanes = [_Lane(world, agent.sizes) for world in worlds]
    step = 0
    while len(finished) < len(seeds):
        if stopped():
            raise Stopped
        for lane in lanes:
            if lane.episode is None and waiting:
                lane.start(*waiting.pop())
        observations = np.stack([lane.observation for lane in lanes])
        goals = np.stack([lane.goal for lane in lanes])
        decision = agent.act_greedily(observations, goals, step)
        actions, taken = chosen(decision, heads, agent.seed, step)
        for index, lane in enumerate(lanes):
            if lane.episode is not None and lane.advance(actions[index], int(taken[index])):
                finished[lane.episode] = lane.result()
                progress(finished[lane.episode])
                lane.episode = None
        step += 1
    return [finished[index] for index in range(len(seeds))]


def drawable(world: Boundary) -> Any:
    """The environment of a world whose scenes and options can be drawn; others are refused."""
    environment: Any = world.environment
    if not hasattr(environment.unwrapped, "scene"):
        raise UsageError(
            f"{world.name} has no picture of its options; collect, point-mass and ant-gather do"
        )
    return environment


def outlooks(
    agent: CompiledAgent,
    world: Boundary,
    resets: Sequence[dict[str, Any]],
    progress: Callable[[int], None] = lambda done: None,
) -> list[Outlook]:
    """Where each head's option leads, from each of the resets of a world that can be drawn."""
    environment = drawable(world)
    starts = []
    for reset in resets:
        observation, _ = environment.reset(seed=reset.get("seed"), options=reset)
        starts.append((environment.get_state(), world.arrays(observation)))
    observations, goals = (np.stack(parts) for parts in zip(*(s for _, s in starts), strict=True))
    actions = np.asarray(agent.plan(observations, goals).actions)  # [starts, K, action]
    environment.record = True
    found = []
    for (state, _), proposed in zip(starts, actions, strict=True):
        found.append(outlook(environment, state, [world.stretched(option) for option in proposed]))
        progress(len(found))
    environment.record = False
    return found


class Judgement(NamedTuple):
    """Mean Q that the model gives to options, over many starts."""

    next_object: float  # the one asked for first, or the apples
    other_objects: float
    random: float


def judged(
    agent: CompiledAgent, world: Boundary, resets: Sequence[dict[str, Any]], seed: int = 0
) -> Judgement:
    """Whether the model can tell the right objects from the others and from a random place."""
    environment = drawable(world)
    seen, options = [], []
    random = generator(seed, Stream.EVALUATE, 0)
    for reset in resets:
        observation, _ = environment.reset(seed=reset.get("seed"), options=reset)
        seen.append(world.arrays(observation))
        options.append(options_to_judge(world, random))
    observations, goals = (np.stack(parts) for parts in zip(*seen, strict=True))
    scene = environment.unwrapped.scene()
    right, objects = len(scene.wanted()), len(scene.objects)
    q_values = agent.q_values(observations, goals, np.stack(options)).mean(0)  # [M + 8]
    parts = np.split(q_values, [right, objects])
    return Judgement(*(float(part.mean()) for part in parts))


def options_to_judge(world: Boundary, random: np.random.Generator) -> np.ndarray:
    """Options at the M objects, the wanted ones first, and 8 anywhere [M + 8, action], in
    [-1, 1].
    """
    task: Any = world.environment.unwrapped
    scene, at_objects = task.scene(), task.options_to_objects()
    first = list(scene.order) or scene.wanted()
    at_objects = at_objects[[*first, *(i for i in range(len(at_objects)) if i not in first)]]
    anywhere = random.uniform(-1, 1, (8, world.sizes.action)).astype(np.float32)
    return np.stack([*(world.squeezed(option) for option in at_objects), *anywhere])


def outlook(environment: Any, state: dict[str, Any], options: Sequence[np.ndarray]) -> Outlook:
    """Where each of the options leads from a state; the environment has `record` set."""
    world, paths, picked = environment.unwrapped, [], []
    environment.set_state(state)
    scene = world.scene()
    for option in options:
        environment.set_state(state)
        info = environment.step(option)[-1]
        paths.append(np.stack([world.place(observation) for observation in info["path"]]))
        taken = np.flatnonzero(scene.left & ~world.scene().left)
        picked.append(int(taken[0]) if taken.size else None)
    return Outlook(scene, paths, picked)


def all_different(found: Sequence[Outlook]) -> float:
    """The share of outlooks in which the heads' options take all three objects, or apples."""
    return float(np.mean([{0, 1, 2} <= set(outlook.picked) for outlook in found]))


def next_on_a_head(found: Sequence[Outlook]) -> float:
    """The share of outlooks in which some head's option takes an object that is wanted."""
    return float(np.mean([bool({*o.scene.wanted()} & {*o.picked}) for o in found]))


def chosen(decision: Decision, heads: Heads, seed: int, step: int) -> tuple[np.ndarray, np.ndarray]:
    """The actions [B, action] and heads [B] that a way of choosing takes; -1 is no head."""
    if heads == "random":
        shape = np.shape(decision.actions)
        actions = generator(seed, Stream.EVALUATE, step).uniform(-1, 1, shape)
        return actions.astype(np.float32), np.full(shape[0], -1)
    if heads == "greedy" or decision.plan is None:
        return np.asarray(decision.actions), np.asarray(decision.heads)
    policy, proposed = np.asarray(decision.plan.policy), np.asarray(decision.plan.actions)
    B, K = policy.shape
    if heads == "sampled":
        draws = generator(seed, Stream.EVALUATE, step).random((B, 1))
        taken = np.minimum((policy.cumsum(-1) < draws).sum(-1), K - 1)
    elif 0 <= heads < K:
        taken = np.full(B, heads)
    else:
        raise UsageError(f"--heads is {heads}; this agent has heads 0 to {K - 1}")
    return proposed[np.arange(B), taken], taken


class _Lane:
    """One world and the episode under way in it."""

    def __init__(self, world: Boundary, sizes: Sizes):
        self.world = world
        self.episode: int | None = None
        self.observation = np.zeros(sizes.observation, sizes.observation_type)
        self.goal = np.zeros(sizes.goal, np.float32)

    def start(self, episode: int, seed: int) -> None:
        self.episode, self.seed = episode, seed
        self.observation, self.goal = self.world.reset(seed)
        self.returned, self.steps, self.heads = 0.0, 0, []
        self.success: bool | None = None
        self.counts: dict[str, float] = {}

    def advance(self, action: np.ndarray, head: int) -> bool:
        self.heads.append(head)
        try:
            outcome = self.world.step(action)
        except EnvironmentRaised:
            return True
        self.observation, self.goal = outcome.observation, outcome.goal
        self.returned += outcome.earned
        self.steps += outcome.steps
        self.success, self.counts = outcome.success, outcome.counts
        return outcome.ended

    def result(self) -> Episode:
        return Episode(
            seed=self.seed,
            returned=self.returned,
            decisions=len(self.heads),
            environment_steps=self.steps,
            success=self.success,
            heads=self.heads,
            counts=self.counts,
        )
