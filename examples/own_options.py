"""Plan over options of your own: actions that last.

The task: a light on a wire must be carried to a switch and then to the lamp; only the lamp pays.
Primitive actions are small pushes; the option "go to x" pushes until it is there. An option space
is any object with `space`, `cap`, `act` and `ended`.
"""

import dataclasses
import sys

import gymnasium
import numpy as np

import grasp


class Wire(gymnasium.Env):
    """x in [-1, 1]; the switch and the lamp are placed anew each episode."""

    observation_space = gymnasium.spaces.Box(-1, 1, (4,), np.float32)
    action_space = gymnasium.spaces.Box(-0.1, 0.1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.on, self.steps = 0.0, False, 0
        self.switch, self.lamp = self.np_random.uniform(-1, 1, 2)
        return self._observation(), {"success": False}

    def step(self, action):
        self.x = float(np.clip(self.x + action[0], -1, 1))
        self.steps += 1
        self.on = self.on or abs(self.x - self.switch) < 0.1
        lit = self.on and abs(self.x - self.lamp) < 0.1
        return self._observation(), float(lit), lit, self.steps >= 100, {"success": lit}

    def _observation(self):
        return np.array([self.x, self.switch, self.lamp, self.on], np.float32)


class GoTo:
    """The option space: go to a place x."""

    space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    cap = 30  # primitive steps at most

    def act(self, observation, option):
        """The primitive action, and whether the option ends with it."""
        return np.clip(option - observation[:1], -0.1, 0.1), False

    def ended(self, observation, option):
        return abs(option[0] - observation[0]) < 0.01


def wire_with_options():
    return grasp.OptionEnvironment(Wire(), GoTo(), discount=0.99)


if __name__ == "__main__":
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 60_000
    settings = {"num_envs": 8, "evaluate_every": max(steps // 4, 1), "evaluation_episodes": 20}
    usual = grasp.agent_named("GA-2", options=True)
    eager = dataclasses.replace(usual, warm_up=1_000)  # a small task: fewer random decisions first
    agent = grasp.train(eager, wire_with_options, label="GA-2", steps=steps, **settings)
    episodes = agent.evaluate(100)
    print("lit", np.mean([bool(episode.success) for episode in episodes]))
    print("options per episode", np.mean([episode.decisions for episode in episodes]))
    observation, _ = Wire().reset(seed=1)
    print(agent.plan(observation))  # the two options considered, their Q, the policy, the value
