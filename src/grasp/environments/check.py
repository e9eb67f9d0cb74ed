"""What is wrong with an environment, and whether a run on it can be continued exactly.

Random actions for many steps at several seeds, so that a fault at step 700 is found as well as one
at step 1; the same episodes in a second copy, to see whether the seed decides them; and episodes
put back into a third, as a resumed run would.
"""

import contextlib
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from grasp.environments.boundary import Boundary, Outcome
from grasp.errors import EnvironmentFault
from grasp.randomness import Stream, episode_seed, generator

Tier = Literal["state", "actions", "episode"]  # how an episode under way can be put back
WEAKEST_FIRST: list[Tier] = ["episode", "actions", "state"]
AHEAD = 50  # decisions that an episode which was put back must go the same way
PUT_BACK = 7  # times per seed


class Finding(NamedTuple):
    problems: list[str]
    decisions: int
    episodes: int
    tier: Tier


class _Walk:
    """Random decisions in one environment, episode after episode."""

    def __init__(self, world: Boundary, seed: int):
        self.world, self.seed = world, seed
        self.taken = self.episodes = 0
        self.last = self._begin()

    def next(self) -> Outcome:
        outcome = self.world.step(self.action(self.taken))
        self.taken += 1
        self.last = self._begin() if outcome.ended else (outcome.observation, outcome.goal)
        return outcome

    def action(self, step: int) -> np.ndarray:
        random = generator(self.seed, Stream.EXPLORE, step)
        return random.uniform(-1, 1, self.world.sizes.action).astype(np.float32)

    def _begin(self) -> tuple[np.ndarray, np.ndarray]:
        self.episodes += 1
        return self.world.reset(episode_seed(self.seed, Stream.EPISODE, self.episodes))


def check_environment(
    make: Callable[[], Boundary], steps: int = 1_000, seeds: tuple[int, ...] = (0, 1)
) -> Finding:
    """Run an environment as training would and say what training would stumble over."""
    problems: list[str] = []
    tiers: list[Tier] = []
    decisions = episodes = 0
    for seed in seeds:
        world, twin, third = make(), make(), make()
        walk = None
        try:
            walk = _Walk(world, seed)
            tiers.append(_checked(walk, _Walk(twin, seed), third, steps, problems))
        except EnvironmentFault as problem:
            at = f"step {walk.taken + 1}" if walk else "the first reset"
            problems.append(f"at {at} from seed {seed}: {problem}")
            tiers.append("episode")
        decisions += walk.taken if walk else 0
        episodes += walk.episodes if walk else 0
        for each in (world, twin, third):
            with contextlib.suppress(Exception):
                each.close()
    return Finding(problems, decisions, episodes, min(tiers, key=WEAKEST_FIRST.index))


def _checked(walk: _Walk, twin: _Walk, third: Boundary, steps: int, problems: list[str]) -> Tier:
    """Walk beside a twin; returns how the episodes of this seed can be put back."""
    outcomes: list[Outcome] = []
    snapshots = {}
    chosen = set(np.linspace(1, steps - 1, PUT_BACK, dtype=int).tolist())
    same = True
    while walk.taken < steps:
        if walk.taken in chosen:
            snapshots[walk.taken] = (_copied(walk.world.state()), walk.last)
        outcomes.append(walk.next())
        if same and not _alike(outcomes[-1], twin.next()):
            same = False
            problems.append(
                f"step {walk.taken} from seed {walk.seed} differs between two copies: "
                "reset(seed) does not decide the episode"
            )
    tiers: list[Tier] = [
        _put_back(third, state, last, [(walk.action(s), outcomes[s]) for s in range(step, steps)])
        for step, (state, last) in snapshots.items()
    ]
    return min(tiers, key=WEAKEST_FIRST.index)


def _put_back(
    world: Boundary,
    state: dict[str, np.ndarray],
    last: tuple[np.ndarray, np.ndarray],
    ahead: list[tuple[np.ndarray, Outcome]],
) -> Tier:
    """Put an episode into another copy and see whether it goes on as it did."""
    if not world.restore(state, *last):
        return "episode"
    for action, expected in ahead[:AHEAD]:
        try:
            outcome = world.step(action)
        except EnvironmentFault:
            return "episode"
        if not _alike(outcome, expected):
            return "episode"
        if outcome.ended:
            break
    return "state" if any(name.startswith("state/") for name in state) else "actions"


def _copied(state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: np.array(value) for name, value in state.items()}


def _alike(one: Outcome, other: Outcome) -> bool:
    return (
        one.observation.tobytes() == other.observation.tobytes()
        and one.goal.tobytes() == other.goal.tobytes()
        and one[2:] == other[2:]
    )
