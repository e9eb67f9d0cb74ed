"""Affordances of your own: heads that stay near anchors and learn only where around them.

    python examples/own_affordances.py [STEPS]

K anchors lie evenly from one bound to the other, so the heads cannot merge; each learns a
correction of at most `reach`. docs/own-affordances.md walks through it.
"""

import dataclasses
import sys

import equinox as eqx
import gymnasium
import jax.numpy as jnp

import grasp


class Anchored(eqx.Module):
    correction: eqx.nn.MLP
    anchors: tuple = eqx.field(static=True)  # static, so it does not learn
    reach: float = eqx.field(static=True)

    def raw(self, state):
        return self.correction(state.features)[:, None]  # [K, 1]

    def __call__(self, state):
        moved = jnp.array(self.anchors)[:, None] + self.reach * jnp.tanh(self.raw(state))
        return jnp.clip(moved, -1, 1)  # [K, 1]


@dataclasses.dataclass(frozen=True)
class AnchoredGrasp(grasp.Grasp):
    """GrASP on a task with one action dimension, with these heads instead of the usual ones."""

    reach: float = 0.3

    def heads(self, sizes, key):
        K = self.num_affordances
        anchors = tuple(float(place) for place in jnp.linspace(-1, 1, K))
        return Anchored(eqx.nn.MLP(self.width, K, 64, 2, key=key), anchors, self.reach)


if __name__ == "__main__":
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    agent = AnchoredGrasp(num_affordances=5)
    grasp.train(agent, "gym:Pendulum-v1", label="Anchored", steps=steps, evaluate_every=1_000)
    trained = grasp.load("runs/gym-Pendulum-v1-Anchored-seed0", planners=[AnchoredGrasp])
    observation, _ = gymnasium.make("Pendulum-v1").reset(seed=0)
    print(trained.plan(observation).actions.ravel())  # five torques, one near each anchor
    episodes = trained.evaluate(10)
    print(f"mean return {sum(e.returned for e in episodes) / len(episodes):.0f}")
