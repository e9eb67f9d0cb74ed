"""What each hyper-parameter of GrASP may be."""

from typing import TYPE_CHECKING

from grasp.errors import UsageError, check_range
from grasp.planners.plan import BoundedPlanner

if TYPE_CHECKING:
    from grasp.agents.grasp import Grasp

_SIZES = ("num_affordances", "width", "num_values", "window", "batch", "updates_per_call")
_COUNTS = (
    "target_period", "decisions_per_update", "greedy_stretch", "learning_rate_fall",
    "affordance_period",
)  # fmt: skip
_SHARES = (
    "discount", "target_rate", "rewarded_share", "random_share", "greedy_share",
    "learning_rate_end", "trace", "centring",
)  # fmt: skip
_AMOUNTS = (
    "initial_spread", "model_learning_rate", "affordance_learning_rate", "gradient_clip",
    "consistency", "value_weight", "contrast", "saturation_penalty", "smoothing", "warm_up",
    "noise_start", "learning_depth", "unroll", "noise_end", "noise_decisions", "learning_rate_hold",
)  # fmt: skip
_HUGE = 1e30
_ALLOWED = (
    (_SIZES, (1, 10_000), "1 to 10,000"),
    (("head_layers",), (0, 100), "0 to 100"),
    (("value_scale",), (1e-6, _HUGE), "above 0 and finite"),
    (_COUNTS, (1, _HUGE), "at least 1"),
    (_SHARES, (0, 1), "between 0 and 1"),
    (_AMOUNTS, (0, _HUGE), "at least 0 and finite"),
)


def check_settings(agent: "Grasp") -> None:
    """Refuse what cannot work, by the flag that says it."""
    for names, (least, most), allowed in _ALLOWED:
        check_range(agent, names, least, most, allowed)
    if isinstance(agent.planner, BoundedPlanner):
        agent.planner.check(agent.num_affordances)
    if agent.learning_depth and not hasattr(agent.planner, "depth"):
        raise UsageError(
            f"--learning-depth is {agent.learning_depth}, and {type(agent.planner).__name__} has "
            "no depth: leave the flag out"
        )
    if agent.unroll > agent.window:
        raise UsageError(
            f"--unroll is {agent.unroll}; a window has n = {agent.window} decisions: "
            "give at most as many, or a larger --window"
        )
    if not 1 <= agent.roots <= agent.batch * (agent.followed + 1):
        raise UsageError(
            f"--roots-per-window is {agent.roots_per_window}; {agent.followed} decisions of a "
            f"window have {agent.followed + 1} states, and {agent.batch} windows must give at "
            "least one"
        )
