"""Plan with a model of your own: anything with `step` and `value`, any pytree as state.

A ball on a slope: two affordances push left or right, the planner looks three pushes ahead, and the
gradient of the root value says how to push better.
"""

import jax
import jax.numpy as jnp

import grasp


class Slope:
    def step(self, state, action):
        speed = 0.9 * state["speed"] + action[0] - 0.1
        place = state["place"] + speed
        return grasp.Step(
            reward=-(place**2), discount=jnp.asarray(0.95), state={"place": place, "speed": speed}
        )

    def value(self, state):
        return -10 * state["place"] ** 2


def affordances_of(pushes):
    return lambda state: jnp.tanh(pushes)[:, None]  # [K, 1], the same in every state


if __name__ == "__main__":
    root = {"place": jnp.asarray(1.0), "speed": jnp.asarray(0.0)}
    planner, key = grasp.CompleteTree(depth=3, temperature=0.5), jax.random.key(0)

    def value(pushes):
        return planner(Slope(), affordances_of(pushes), root, key).value

    pushes = jnp.array([-0.5, 0.5])
    print("before", planner(Slope(), affordances_of(pushes), root, key))
    for _ in range(50):
        pushes += 0.05 * jax.grad(value)(pushes)  # gradient ascent through the planner
    print("after ", planner(Slope(), affordances_of(pushes), root, key))
