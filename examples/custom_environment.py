"""Train on an environment of your own: any Gymnasium environment with a Box action space.

The task: a puck on a line has to be brought to a place that changes every episode. The place is the
goal, so the observation is Gymnasium's dictionary with `observation` and `desired_goal`.
"""

import sys

import gymnasium
import numpy as np

import grasp


class Puck(gymnasium.Env):
    observation_space = gymnasium.spaces.Dict(
        observation=gymnasium.spaces.Box(-2, 2, (2,), np.float32),
        desired_goal=gymnasium.spaces.Box(-1, 1, (1,), np.float32),
    )
    action_space = gymnasium.spaces.Box(-3, 3, (1,), np.float32)  # force

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.speed, self.steps = 0.0, 0.0, 0
        self.goal = self.np_random.uniform(-1, 1)
        return self._observation(), {}

    def step(self, action):
        self.speed = float(np.clip(0.8 * self.speed + 0.05 * action[0], -2, 2))
        self.place = float(np.clip(self.place + 0.1 * self.speed, -2, 2))
        self.steps += 1
        near = abs(self.place - self.goal)
        return (
            self._observation(),
            1 - min(near, 1.0),
            False,
            self.steps == 50,
            {"success": near < 0.1},
        )

    def _observation(self):
        return {
            "observation": np.array([self.place, self.speed], np.float32),
            "desired_goal": np.array([self.goal], np.float32),
        }


if __name__ == "__main__":
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
    agent = grasp.train(
        "GA-4", Puck, steps=steps, evaluate_every=max(steps // 4, 1), show=lambda row: print(row)
    )
    episodes = agent.evaluate(20)
    print("mean return", np.mean([episode.returned for episode in episodes]))
    print("reached", np.mean([bool(episode.success) for episode in episodes]))
    observation, _ = Puck().reset(seed=1)
    print(agent.plan(observation))  # the four actions considered, their Q, the policy, the value
