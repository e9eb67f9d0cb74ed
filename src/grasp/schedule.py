"""What is trained on what, for how long, and how far it is."""

import dataclasses
import math

from grasp.agents import description
from grasp.agents.agent import Agent
from grasp.environments.frames import Sight
from grasp.errors import check_range
from grasp.files import Facts


@dataclasses.dataclass(frozen=True)
class Schedule:
    """How long to train, and when to look."""

    steps: int = 150_000  # environment steps in all
    seed: int = 0  # decides all that is random
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
