"""Agents by the paper's names, with any K.

    GA-4 SA-3 A-8         goal-conditioned, state-conditioned, unconditioned affordances
    UCT-50                GA-4 that plans by 50 trajectories of UCT instead of the complete tree
    GUMBEL-16             GA-4 that plans by 16 simulations of Gumbel search
    RND-GA-4 RND-A-8      the same with affordances that stay at their random start
    TD3                   the model-free baseline

Importing this only knows the grammar of the names; JAX is imported when an agent is made.
"""

import dataclasses
import difflib
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from grasp.errors import UsageError

if TYPE_CHECKING:
    from grasp.affordances import Conditioning
    from grasp.agents.grasp import Grasp
    from grasp.agents.td3 import TD3

AGENTS = (  # the paper's, and ours
    "GA-1", "GA-2", "GA-3", "GA-4", "GA-8", "SA-3", "A-4", "A-8", "RND-GA-4", "RND-A-4", "RND-A-8",
    "UCT-20", "UCT-50", "GUMBEL-16", "GUMBEL-50", "TD3",
)  # fmt: skip
Preset = Literal["default", "paper"]

_NAME = re.compile(r"(?P<random>RND-)?(?P<reads>GA|SA|A)-(?P<K>-?\d+)")
_SEARCH = re.compile(r"(?P<planner>UCT|GUMBEL)-(?P<budget>-?\d+)")
_CONDITIONING: "dict[str, Conditioning]" = {"GA": "goal", "SA": "state", "A": "none"}

_EVEN_RATES = {"learning_rate_end": 1.0, "learning_rate_hold": 0, "learning_rate_fall": 10_000}
# What runs of options and from images were made with (choices 37 to 39).
_STEADY: dict[str, Any] = {
    "model_learning_rate": 1e-3,
    "affordance_learning_rate": 3e-4,
    "affordance_period": 1,
    "centring": 0.0,
    "consistency": 1.0,
    "value_weight": 1.0,
}

# Exactly what the paper states; what it leaves open stays at the default (choices 3 to 7).
_PAPER: dict[str, Any] = {
    "width": 512,
    "window": 3,
    "unroll": 0,
    "num_values": 1,
    "value_scale": 1.0,
    "centring": 0.0,
    "layer_norm": False,
    "normalise_layers": False,
    "predict_termination": False,
    "normalise_observations": False,
    "relative_temperature": False,
    "initial_spread": 0.0,
    "head_layers": 2,
    "discount": 0.99,
    "bootstrap": "planner",
    "trace": 1.0,
    "model_learning_rate": 1e-4,
    "affordance_learning_rate": 1e-3,
    "affordance_period": 1,
    **_EVEN_RATES,
    "consistency": 0.0,
    "value_weight": 1.0,
    "contrast": 0.0,
    "saturation_penalty": 0.0,
    "smoothing": 0.0,
    "target_period": 1_000,
    "target_rate": 1.0,
    "act_by_targets": False,
    "replay_capacity": 200_000,
    "rewarded_share": 0.0,
    "decisions_per_update": 1,
    "noise_start": 0.0,
    "noise_end": 0.0,
    "random_share": 0.0,
    "greedy_share": 0.0,
}

# What learns best where decisions are options and rewards are rare (choice 7).
_OPTIONS: dict[str, Any] = {
    "normalise_layers": False,
    "window": 3,
    **_STEADY,
    **_EVEN_RATES,
    "trace": 1.0,
    "decisions_per_update": 4,
    "rewarded_share": 0.1,
    "warm_up": 10_000,
    "noise_start": 0.1,
    "noise_end": 0.1,
    "noise_decisions": 50_000,
    "random_share": 0.2,
    "greedy_share": 0.2,
}

# Heads that serve every goal at once: learned one step ahead (choice 26), too simple to change what
# they aim at from place to place (choice 31), at rates that fall, so that they settle on its middle
# (choice 29).
_SA: dict[str, Any] = {
    "window": 3,
    "learning_depth": 1,
    "head_layers": 1,
    "learning_rate_end": 0.05,
    "learning_rate_hold": 50_000,
    "learning_rate_fall": 10_000,
}

# What TD3 needs where actions are primitive: the published scores were made so (choice 17).
_TD3: dict[str, Any] = {
    "width": 256,
    "batch": 100,
    "normalise_observations": True,
    "warm_up": 10_000,
    "actor_learning_rate": 1e-3,
}

# From images an update costs more, what they show is learned faster so (choice 27), and one must be
# told from another before anything is rewarded (choice 34).
_IMAGES: dict[str, Any] = {
    "batch": 64,
    **_STEADY,
    "learning_rate_end": 0.1,
    "learning_rate_hold": 15_000,
    "learning_rate_fall": 35_000,
    "contrast": 1.0,
}

# What suits a task: the steps of Collect are coarse and its objects wide (choices 7 and 25); an
# option of Ant-Gather takes longer than an update (choice 32).
_TASKS: dict[str, dict[str, Any]] = {
    "collect": {"discount": 0.95, "affordance_learning_rate": 1e-3, "smoothing": 0.2},
    "ant-gather": {"warm_up": 3_000, "decisions_per_update": 1},
}


def check_agent(name: str) -> None:
    """Refuse a name that is no agent, without importing JAX."""
    match, search = _NAME.fullmatch(name), _SEARCH.fullmatch(name)
    if name == "TD3" or (search and int(search["budget"]) >= 1):
        return
    if search:
        raise UsageError(
            f"agent {name!r} plans by {search['budget']} paths; it takes at least 1: "
            f"try {search['planner']}-50"
        )
    if match is None:
        near = difflib.get_close_matches(name.upper(), AGENTS, n=1, cutoff=0.3)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UsageError(
            f"unknown agent {name!r}; {hint}agents: {', '.join(AGENTS)}, "
            "and any other number, as in GA-6 or UCT-30"
        )
    if int(match["K"]) < 1:
        raise UsageError(
            f"agent {name!r} asks for K = {match['K']} affordances; K is at least 1: try GA-4"
        )


def agent_named(
    name: str,
    preset: Preset = "default",
    *,
    options: bool = False,
    task: str = "",
    images: bool = False,
) -> "Grasp | TD3":
    """The agent of a name, with the hyper-parameters of a preset for primitive actions or options,
    for images, and what suits a task; the paper's preset is the same for all.
    """
    check_agent(name)
    from grasp.agents.grasp import Grasp
    from grasp.agents.td3 import TD3

    if name == "TD3":
        usual = {} if preset == "paper" else _TASKS.get(task, {})
        every = _OPTIONS["decisions_per_update"] if options else 1  # as often as the others
        every = usual.get("decisions_per_update", every)
        agent = TD3(discount=usual.get("discount", 0.99), decisions_per_update=every)
        own = preset == "default" and not options
        return dataclasses.replace(agent, **_TD3) if own else agent
    from grasp.planners.complete_tree import CompleteTree
    from grasp.planners.gumbel import Gumbel
    from grasp.planners.uct import UCT

    agent, match, search = Grasp(), _NAME.fullmatch(name), _SEARCH.fullmatch(name)
    if preset == "paper":
        agent = dataclasses.replace(agent, **_PAPER, planner=CompleteTree(depth=2, temperature=1.0))
        agent = dataclasses.replace(agent, roots_per_window=agent.window + 1.0)
    else:
        usual = (_OPTIONS if options else {}) | (_IMAGES if images else {}) | _TASKS.get(task, {})
        agent = dataclasses.replace(agent, **usual)
        if options:  # as warm as its runs were (choice 4)
            agent = dataclasses.replace(agent, planner=CompleteTree(depth=1, temperature=0.5))
    if search:
        paths = int(search["budget"])
        planner = UCT(paths) if search["planner"] == "UCT" else Gumbel(paths)
        return dataclasses.replace(agent, planner=planner, window=3)  # as far as they look ahead
    assert match is not None  # checked
    reads, K = _CONDITIONING[match["reads"]], int(match["K"])
    agent = dataclasses.replace(agent, affordances=reads, num_affordances=K)
    if reads == "state":  # three picks ahead (choice 15)
        tree = CompleteTree(depth=3, temperature=1.0 if preset == "paper" else 0.1)
        agent = dataclasses.replace(agent, planner=tree, **({} if preset == "paper" else _SA))
    if match["random"]:
        agent = dataclasses.replace(agent, affordance_learning_rate=0.0)
    return agent


def description(agent: Any) -> dict[str, Any]:
    """The hyper-parameters as JSON can hold them; `rebuilt` is its inverse."""
    fields = {field.name: getattr(agent, field.name) for field in dataclasses.fields(agent)}
    return {"kind": type(agent).__name__} | {
        name: description(value) if dataclasses.is_dataclass(value) else value
        for name, value in fields.items()
    }


def rebuilt(described: dict[str, Any], planners: Iterable[type] = ()) -> Any:
    """The agent of a description; `planners` are classes beside our own that it may name."""
    from grasp.agents.grasp import Grasp
    from grasp.agents.td3 import TD3
    from grasp.planners.complete_tree import CompleteTree
    from grasp.planners.gumbel import Gumbel
    from grasp.planners.uct import UCT

    known = (Grasp, TD3, CompleteTree, UCT, Gumbel, *planners)
    kinds: dict[str, Any] = {kind.__name__: kind for kind in known}
    fields = {
        name: rebuilt(value, planners) if isinstance(value, dict) else value
        for name, value in described.items()
    }
    kind = fields.pop("kind", None)
    if not isinstance(kind, str) or kind not in kinds:
        raise UsageError(
            f"no agent or planner of kind {kind!r}; known are {', '.join(kinds)}: "
            f"give a class of your own, as in grasp.load(run, planners=[{kind}])"
        )
    made = kinds[kind]
    whole = {f.name for f in dataclasses.fields(made) if f.type is float} & fields.keys()
    fields |= {name: float(fields[name]) for name in whole if type(fields[name]) is int}
    try:
        return made(**fields)
    except TypeError as problem:  # a name or a type that no setting has
        raise UsageError(f"{kind} cannot be made of this configuration: {problem}") from None
