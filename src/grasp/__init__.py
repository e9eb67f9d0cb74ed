"""GrASP: plan in continuous action spaces by learning which few actions are worth considering.

    agent = grasp.load("runs/cartpole-swingup-GA-4-seed0")
    action = agent.act(observation)
    plan = grasp.CompleteTree(depth=2)(model, affordances, state, key)

Importing this registers our environments with Gymnasium (`gymnasium.make("grasp/Collect-v0")`);
all else, JAX with it, is imported when first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

import gymnasium

if TYPE_CHECKING:
    from grasp.affordances import AffordanceModule as AffordanceModule
    from grasp.agents import agent_named as agent_named
    from grasp.agents.grasp import Grasp as Grasp
    from grasp.environments import make as make
    from grasp.model import AbstractState as AbstractState
    from grasp.model import Step as Step
    from grasp.model import ValueEquivalentModel as ValueEquivalentModel
    from grasp.options import OptionEnvironment as OptionEnvironment
    from grasp.options import Options as Options
    from grasp.planners.complete_tree import CompleteTree as CompleteTree
    from grasp.planners.gumbel import Gumbel as Gumbel
    from grasp.planners.plan import Plan as Plan
    from grasp.planners.uct import UCT as UCT
    from grasp.session import LoadedAgent as LoadedAgent
    from grasp.session import load as load
    from grasp.session import train as train

__version__ = "0.1.0"

gymnasium.register("grasp/Collect-v0", "grasp.environments.collect:Collect")
gymnasium.register("grasp/PointMass-v0", "grasp.environments.point_mass:PointMass")
gymnasium.register("grasp/AntGather-v0", "grasp.environments.ant_gather:AntGather")

_HOMES = {
    "AbstractState": "model",
    "Step": "model",
    "ValueEquivalentModel": "model",
    "AffordanceModule": "affordances",
    "Plan": "planners.plan",
    "CompleteTree": "planners.complete_tree",
    "UCT": "planners.uct",
    "Gumbel": "planners.gumbel",
    "Grasp": "agents.grasp",
    "agent_named": "agents",
    "make": "environments",
    "Options": "options",
    "OptionEnvironment": "options",
    "LoadedAgent": "session",
    "load": "session",
    "train": "session",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'grasp' has no attribute {name!r}")
    return getattr(importlib.import_module(f"grasp.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*_HOMES, "__version__"])
