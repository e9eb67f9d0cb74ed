"""What the training loop asks of an agent.

An agent is a frozen dataclass of hyper-parameters with pure functions; all that learning changes is
in the state that they take and return. Actions lie in [-1, 1].
"""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from grasp.images import Images
from grasp.planners.plan import Plan
from grasp.replay import Window


class Sizes(NamedTuple):
    """The task as the networks see it."""

    observation: int
    goal: int  # 0 where the task has none
    action: int
    options: bool = False  # decisions may last longer than one step
    images: Images | None = None  # where observations are images, laid out flat
    endless: bool = False  # episodes only stop by the clock: there is no end to predict

    @property
    def observation_type(self) -> type[np.generic]:
        return np.float32 if self.images is None else np.uint8

    @property
    def stack(self) -> int:
        """Frames of one observation."""
        return 1 if self.images is None else self.images.stack


class Decision(NamedTuple):
    """What the agent does, for B observations."""

    actions: Float[Array, "B action"]
    heads: Int[Array, " B"]
    plan: Plan | None


@runtime_checkable
class Agent(Protocol):
    @property
    def discount(self) -> float: ...

    @property
    def replay_capacity(self) -> int: ...

    @property
    def batch(self) -> int: ...

    @property
    def window(self) -> int: ...

    @property
    def rewarded_share(self) -> float: ...

    @property
    def warm_up(self) -> int: ...

    @property
    def decisions_per_update(self) -> int: ...

    @property
    def updates_per_call(self) -> int: ...

    @property
    def acts_with(self) -> tuple[str, ...]:
        """The paths in its state of what decisions depend on; the rest is for learning."""
        ...

    def init(self, sizes: Sizes, key: PRNGKeyArray) -> Any: ...

    def act(
        self, state: Any, observations: Any, goals: Any, key: PRNGKeyArray, decisions: Any
    ) -> Decision: ...

    def act_greedily(
        self, state: Any, observations: Any, goals: Any, key: PRNGKeyArray
    ) -> Decision: ...

    def update(
        self, state: Any, window: Window, key: PRNGKeyArray
    ) -> tuple[Any, dict[str, Any]]: ...


@runtime_checkable
class ModelAgent(Agent, Protocol):
    """An agent whose model can be asked about any action."""

    def q_values(self, state: Any, observations: Any, goals: Any, actions: Any) -> Any: ...
