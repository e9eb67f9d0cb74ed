"""What learning changes in a GrASP agent, and how the targets follow."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int
from optax import OptState

from grasp.affordances import LearnedAffordances
from grasp.losses import Metrics, head_metrics
from grasp.model import AbstractState, ValueEquivalentModel
from grasp.normaliser import Normaliser
from grasp.planners.plan import Plan


class Parameters(eqx.Module):
    """The five learned parts; there is an online and a target copy."""

    model: ValueEquivalentModel
    affordances: LearnedAffordances


class GraspState(eqx.Module):
    online: Parameters
    target: Parameters
    model_optimiser: OptState
    affordance_optimiser: OptState
    observation_normaliser: Normaliser
    goal_normaliser: Normaliser
    q_spread: Float[Array, ""]  # running mean of max Q - min Q over the heads of a root (choice 4)
    heads: Metrics | None  # of their last step; None where they take one at every update
    updates: Int[Array, ""]


def centred(model: ValueEquivalentModel, metrics: Metrics, rate: float) -> ValueEquivalentModel:
    """The model with the offset o of its values moved by what its targets lie above the values
    that they are made of, the target parameters' (choice 38). Both hold the offset, gamma o and
    o, so that is 1 - gamma of what it lacks.
    """
    if model.offset is None:
        return model
    offset = model.offset + rate * metrics["train/value_lacks"] / (1 - model.discount)
    return eqx.tree_at(lambda m: m.offset, model, offset)


def following(
    target: Parameters, online: Parameters, updates: Int[Array, ""], period: int, rate: float | int
) -> Parameters:
    """Every `period` updates the targets move `rate` of the way to the online parameters. The
    offset of values is the same in both at all times: the networks learn what it leaves.
    """
    share = jnp.where(updates % period == 0, rate, 0.0)

    def moved(old: Any, new: Any) -> Any:
        if not eqx.is_array(old):  # an activation function
            return old
        return jnp.where(share == 1, new, old + share * (new - old))

    target = jax.tree.map(moved, target, online)
    if online.model.offset is None:
        return target
    return eqx.tree_at(lambda parameters: parameters.model.offset, target, online.model.offset)


def nothing_seen(affordances: LearnedAffordances, state: AbstractState) -> Metrics:
    """The metrics of heads that have taken no step yet; `state` is any that they read."""
    actions = jnp.zeros((1, *jax.eval_shape(affordances, state).shape))  # [1, K, action]
    zeros = jnp.zeros(actions.shape[:2])  # [1, K]
    plans = Plan(actions, q_values=zeros, policy=zeros, value=zeros[:, 0])
    return head_metrics(plans) | {"train/affordance_gradient": jnp.zeros(())}
