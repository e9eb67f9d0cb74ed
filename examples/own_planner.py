"""A planner of your own: try each affordance once, then follow the best head of each state.

    python examples/own_planner.py [STEPS]

docs/own-planner.md walks through it.
"""

import dataclasses
import sys

import gymnasium
import jax
import jax.numpy as jnp

import grasp


@dataclasses.dataclass(frozen=True)
class Rollouts:
    """Q(s0, b) is the return of b and then, to `depth`, of the head with the best one-step Q."""

    depth: int = 3
    temperature: float = 0.1

    def __call__(self, model, affordances, root, key):
        def children(state):
            actions = affordances(state)  # [K, action]
            steps = jax.vmap(model.step, in_axes=(None, 0))(state, actions)
            return steps, steps.reward + steps.discount * jax.vmap(model.value)(steps.state)

        def rollout(state, depth):
            if depth == 0:
                return model.value(state)
            steps, q_values = children(state)
            best = jax.tree.map(lambda leaf: leaf[jnp.argmax(q_values)], steps)
            return best.reward + best.discount * rollout(best.state, depth - 1)

        steps, _ = children(root)
        values = jax.vmap(lambda state: rollout(state, self.depth - 1))(steps.state)  # [K]
        q_values = steps.reward + steps.discount * values
        policy = jax.nn.softmax(q_values / self.temperature)
        return grasp.Plan(affordances(root), q_values, policy, jnp.sum(policy * q_values))


if __name__ == "__main__":
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    agent = dataclasses.replace(grasp.agent_named("GA-4"), planner=Rollouts())
    grasp.train(agent, "gym:Pendulum-v1", label="Rollouts", steps=steps, evaluate_every=1_000)
    trained = grasp.load("runs/gym-Pendulum-v1-Rollouts-seed0", planners=[Rollouts])
    observation, _ = gymnasium.make("Pendulum-v1").reset(seed=0)
    print(trained.plan(observation))
    episodes = trained.evaluate(10)
    print(f"mean return {sum(e.returned for e in episodes) / len(episodes):.0f}")
