"""The model's tree below a root with the numbers of every node, for the eye.

A planner returns what it concludes at the root; here stand all levels, after the same recursion as
`CompleteTree`,

    Q(s, b) = r(s, b) + gamma^n V(s'),   pi = softmax(Q / temperature),   V = sum_b pi Q.

Nodes at the planner's depth or below have V from the value network. Levels below the planner's
depth are what the model sees beyond: they are shown, and change nothing above them.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from grasp.affordances import Affordances
from grasp.agents.compiled import CompiledAgent
from grasp.agents.grasp import Grasp
from grasp.errors import UsageError
from grasp.model import Model
from grasp.planners.complete_tree import CompleteTree, expand
from grasp.planners.plan import Plan, plan_one
from grasp.randomness import Stream, key, origin

DEEPEST = 3  # levels shown of a planner that looks less deep
MOST_NODES = 120  # of a tree that is shown deeper than its planner looks
MOST_SENT = 700  # nodes of any tree


class Level(NamedTuple):
    """What leaves the N nodes of one level, and what it leads to."""

    actions: Float[Array, "N K action"]
    rewards: Float[Array, "N K"]
    durations: Float[Array, "N K"]  # n; NaN for a model that does not predict it
    discounts: Float[Array, "N K"]  # gamma^n times the chance that the episode goes on
    values: Float[Array, "N K"]  # V of the child
    q_values: Float[Array, "N K"]
    policy: Float[Array, "N K"]


def levels(
    model: Model, affordances: Affordances, roots: Any, tree: CompleteTree, shown: int
) -> list[Level]:
    """The first `shown` levels below N roots, weighed as `tree` weighs them."""
    grown, states = [], roots
    for _ in range(shown):
        edges, children = expand(model, affordances, states)
        grown.append((edges, _durations(model, states, edges.actions), children))
        states = children
    found: list[Level] = []  # from the deepest up
    for depth in range(shown - 1, -1, -1):
        edges, durations, children = grown[depth]
        if depth + 1 < min(tree.depth, shown):
            below = found[-1]
            values = jnp.sum(below.policy * below.q_values, axis=-1)  # [N * K]
        else:
            values = jax.vmap(model.value)(children)  # [N * K]
        values = values.reshape(edges.rewards.shape)  # [N, K]
        q_values = edges.rewards + edges.discounts * values
        found.append(
            Level(
                actions=edges.actions,
                rewards=edges.rewards,
                durations=durations,
                discounts=edges.discounts,
                values=values,
                q_values=q_values,
                policy=jax.nn.softmax(q_values / tree.temperature),
            )
        )
    return found[::-1]


def _durations(model: Any, states: Any, actions: Float[Array, "N K action"]) -> Any:
    """n of every edge [N, K], where the model predicts it."""
    predict = getattr(model, "predict", None)
    if predict is None:
        return jnp.full(actions.shape[:2], jnp.nan)
    return jax.vmap(jax.vmap(predict, in_axes=(None, 0)))(states, actions).duration


@dataclasses.dataclass(frozen=True, eq=False)
class Watching:
    """A planner that plans as `tree` does and leaves the levels it saw in `seen`.

    An agent hands its planner the model, the heads and the encoded roots; planning in the planner's
    place is therefore the way to see them that asks nothing more of an agent.
    """

    tree: CompleteTree
    shown: int
    seen: list[Level]

    def at_scale(self, spread: Float[Array, ""]) -> "Watching":
        return dataclasses.replace(self, tree=self.tree.at_scale(spread))

    def __call__(
        self, model: Model, affordances: Affordances, root: Any, key: PRNGKeyArray
    ) -> Plan:
        return plan_one(self, model, affordances, root, key)

    def batch(self, model: Model, affordances: Affordances, roots: Any, key: PRNGKeyArray) -> Plan:
        self.seen[:] = levels(model, affordances, roots, self.tree, self.shown)
        root = self.seen[0]
        value = jnp.sum(root.policy * root.q_values, axis=-1)
        return Plan(root.actions, root.q_values, root.policy, value)


def shown_tree(agent: Grasp) -> tuple[CompleteTree, int]:
    """The tree that stands for an agent's planner, and how many of its levels are shown.

    For planners that do not weigh a whole tree it is the complete tree of their depth, at the usual
    temperature: what the model says, not what they visited.
    """
    planner: Any = agent.planner
    depth = int(getattr(planner, "depth", 1))
    usual: Any = Grasp.planner
    tree = (
        planner
        if isinstance(planner, CompleteTree)
        else CompleteTree(depth=depth, temperature=usual.temperature)
    )
    K, shown, nodes = agent.num_affordances, 1, agent.num_affordances
    while shown < max(depth, DEEPEST) and nodes + K ** (shown + 1) <= MOST_NODES:
        shown += 1
        nodes += K**shown
    # A tree that is cut short of its depth would weigh its last level by the value network.
    return tree, max(shown, tree.depth) if isinstance(planner, CompleteTree) else shown


def tree_of(agent: CompiledAgent) -> Callable[[np.ndarray, np.ndarray], list[Level]]:
    """A compiled function from one observation and goal to the levels of its tree."""
    made = agent.agent
    if not isinstance(made, Grasp):
        raise UsageError(
            f"{type(made).__name__} has no tree to show; the Lens shows GrASP agents, as GA-4"
        )
    tree, shown = shown_tree(made)
    seen: list[Level] = []
    watched = dataclasses.replace(made, planner=Watching(tree, shown, seen), learning_depth=0)
    first = key(origin(agent.seed), Stream.EVALUATE, 0)
    shapes = eqx.filter_eval_shape(lambda: made.init(agent.sizes, first))
    static = eqx.filter(shapes, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct), inverse=True)

    @jax.jit
    def look(arrays: Any, observations: Any, goals: Any) -> list[Level]:
        watched.plan(eqx.combine(arrays, static), observations, goals, first)
        return list(seen)

    def levels_of(observation: np.ndarray, goal: np.ndarray) -> list[Level]:
        found = look(agent.arrays, observation[None], goal[None])
        return jax.tree.map(np.asarray, found)

    return levels_of


def nodes(
    found: list[Level],
    stretched: Callable[[np.ndarray], np.ndarray],
    aim: Callable[[np.ndarray], list[float] | None],
    discount: float | int,
) -> list[dict[str, Any]]:
    """The tree as JSON can hold it: the K children of the root, each with its own children.

    `stretched` turns an action into the environment's own numbers, `aim` those into a place of the
    scene; `goes_on` is the predicted chance that the episode goes on after the action.
    """
    K = found[0].rewards.shape[1]
    sent = sum(sum(K**d for d in range(1, depth + 2)) <= MOST_SENT for depth in range(len(found)))

    def children(depth: int, parent: int) -> list[dict[str, Any]]:
        if depth == max(sent, 1):
            return []
        return [
            _node(Level(*(part[parent, head] for part in found[depth])))
            | {"head": head, "children": children(depth + 1, parent * K + head)}
            for head in range(K)
        ]

    def _node(edge: Level) -> dict[str, Any]:
        action = np.ravel(stretched(np.asarray(edge.actions)))
        return {
            "action": [float(number) for number in action],
            "aim": aim(action),
            "reward": float(edge.rewards),
            "duration": _known(edge.durations),
            "discount": float(edge.discounts),
            "goes_on": _known(edge.discounts / discount**edge.durations),
            "value": float(edge.values),
            "q": float(edge.q_values),
            "policy": float(edge.policy),
        }

    return children(0, 0)


def _known(number: Any) -> float | None:
    return float(number) if np.isfinite(number) else None
