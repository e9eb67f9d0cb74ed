"""A run's configuration: what of it may change, and whether two are of one run."""

from collections.abc import Mapping
from typing import Any

from grasp.files import Facts

# What may change between starts of one run.
MAY_CHANGE = (
    "command", "version", "steps", "log_every", "wandb", "save_seconds", "patience",
    "deterministic",
)  # fmt: skip
# Settings of GrASP that came later, at what says the same as not having them: older runs go on, and
# agents of older runs stay what they are.
LATER: Facts = {
    "learning_rate_end": 1.0,
    "learning_rate_hold": 0,
    "learning_rate_fall": 10_000,
    "normalise_layers": False,
    "contrast": 0.0,
    "unroll": 0,
    "value_scale": 1.0,
    "affordance_period": 1,
    "centring": 0.0,
    "value_weight": 1.0,
}


def differences(there: Facts, here: Facts) -> list[str]:
    """In which settings two configurations are not those of one run."""
    flat_there, flat_here = (_flat(lasting(completed(config))) for config in (there, here))
    return [
        f"{name} is {flat_there.get(name)!r} there and {flat_here.get(name)!r} here"
        for name in sorted(flat_there.keys() | flat_here.keys())
        if flat_there.get(name) != flat_here.get(name)
    ]


def completed(config: Facts) -> Facts:
    """A configuration with the settings that were not there when it was written."""
    agent = config.get("agent")
    if not isinstance(agent, dict) or agent.get("kind") != "Grasp":
        return config
    return config | {"agent": LATER | agent}


def lasting(config: Facts) -> Facts:
    return {name: value for name, value in config.items() if name not in MAY_CHANGE}


def _flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat
