"""The same update in plain eager PyTorch, as one would write it first: what ours is timed against.

Model, affordances, complete tree and both losses are the mathematics of `grasp` for primitive
actions; `loaded` copies a JAX agent's parameters, and `bench/updates.py` checks that both give the
same losses before it times them.
"""

import copy
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional


def mlp(inputs: int, outputs: int, width: int, hidden: int) -> nn.Sequential:
    sizes = [inputs, *[width] * hidden]
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), nn.ELU()]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], outputs))


class Model(nn.Module):
    def __init__(self, observation: int, action: int, width: int, discount: float):
        super().__init__()
        self.encoder = mlp(observation, width, width, 2)
        self.embedding = mlp(width + action, width, width, 1)
        self.dynamics = mlp(width, width, width, 1)
        self.reward = mlp(2 * width, 1, width, 1)
        self.continuation = mlp(2 * width, 1, width, 1)
        self.values = mlp(width, 1, width, 2)
        self.discount = discount

    def encode(self, observations: Tensor) -> Tensor:
        return bounded(self.encoder(observations))

    def predict(self, states: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        embedded = functional.elu(self.embedding(torch.cat([states, actions], -1)))
        following = bounded(self.dynamics(embedded))
        read = torch.cat([embedded, following], -1)
        return self.reward(read)[..., 0], self.continuation(read)[..., 0], following

    def step(self, states: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        reward, continuation, following = self.predict(states, actions)
        return reward, self.discount * torch.sigmoid(continuation), following

    def value(self, states: Tensor) -> Tensor:
        return self.values(states)[..., 0]


class Affordances(nn.Module):
    def __init__(self, action: int, K: int, width: int):
        super().__init__()
        self.mappings = mlp(width, K * action, width, 2)
        self.offsets = nn.Parameter(torch.zeros(K, action))

    def raw(self, states: Tensor) -> Tensor:
        return self.mappings(states).unflatten(-1, self.offsets.shape) + self.offsets

    def forward(self, states: Tensor) -> Tensor:
        return torch.tanh(self.raw(states))


def bounded(features: Tensor) -> Tensor:
    return functional.layer_norm(features, features.shape[-1:], eps=1e-5)


def plan(
    model: Model, affordances: Affordances, states: Tensor, depth: int, temperature: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """Q [N, K], pi [N, K] and V [N] of N nodes."""
    actions = affordances(states)  # [N, K, action]
    repeated = states[:, None].expand(-1, actions.shape[1], -1)
    reward, discount, following = model.step(repeated, actions)
    if depth == 1:
        values = model.value(following)
    else:
        children = following.flatten(0, 1)
        values = plan(model, affordances, children, depth - 1, temperature)[2].view_as(reward)
    q_values = reward + discount * values
    policy = torch.softmax(q_values / temperature, -1)
    return q_values, policy, (policy * q_values).sum(-1)


class Learner:
    """One GrASP agent and its two optimisers."""

    def __init__(self, agent: Any, observation: int, action: int):
        self.agent = agent
        self.model = Model(observation, action, agent.width, agent.discount)
        self.affordances = Affordances(action, agent.num_affordances, agent.width)
        self.target_model = copy.deepcopy(self.model).requires_grad_(False)
        self.target_affordances = copy.deepcopy(self.affordances).requires_grad_(False)
        self.model_optimiser = torch.optim.Adam(self.model.parameters(), agent.model_learning_rate)
        self.affordance_optimiser = torch.optim.Adam(
            self.affordances.parameters(), agent.affordance_learning_rate
        )

    def update(self, window: Any, scale: float) -> tuple[float, float]:
        """One update from a `Window` of tensors; the model's and the affordances' loss."""
        agent, depth = self.agent, self.agent.planner.depth
        temperature = agent.planner.temperature * scale
        with torch.no_grad():
            last = self.target_model.encode(window.observations[:, -1])
            q_values, _, _ = plan(
                self.target_model, self.target_affordances, last, depth, temperature
            )
            following = torch.where(window.terminated, 0.0, q_values.max(-1).values)
            targets = [following]
            for step in reversed(range(agent.window)):
                gamma = agent.discount ** window.durations[:, step]
                targets.insert(0, window.rewards[:, step] + gamma * targets[0])
            seen = self.target_model.encode(window.observations[:, 1:])
        loss, states = self.model_loss(window, torch.stack(targets, 1), seen)
        self.model_optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), agent.gradient_clip)

        roots = states.detach().transpose(0, 1).flatten(0, 1)[: agent.roots]
        self.model.requires_grad_(False)
        value = plan(self.model, self.affordances, roots, depth, temperature)[2]
        excess = functional.relu(self.affordances.raw(roots).abs() - 2)
        affordance_loss = -value.mean() + agent.saturation_penalty * (excess**2).mean()
        self.affordance_optimiser.zero_grad()
        affordance_loss.backward()
        nn.utils.clip_grad_norm_(self.affordances.parameters(), agent.gradient_clip)
        self.affordance_optimiser.step()
        self.model.requires_grad_(True)
        self.model_optimiser.step()

        with torch.no_grad():
            pairs = ((self.target_model, self.model), (self.target_affordances, self.affordances))
            for target, online in pairs:
                for old, new in zip(target.parameters(), online.parameters(), strict=True):
                    old.lerp_(new, agent.target_rate)
        return loss.item(), affordance_loss.item()

    def model_loss(self, window: Any, targets: Tensor, seen: Tensor) -> tuple[Tensor, Tensor]:
        states = [self.model.encode(window.observations[:, 0])]
        rewards, continuations = [], []
        for step in range(self.agent.window):
            reward, continuation, following = self.model.predict(
                states[-1], window.actions[:, step]
            )
            rewards.append(reward)
            continuations.append(continuation)
            states.append(following)
        unrolled = torch.stack(states, 1)  # [B, n+1, width]
        values = self.model.value(unrolled)
        weights = (window.valid & (window.durations > 0)).float()
        every = torch.cat([torch.ones_like(weights[:, :1]), weights], 1)
        count = weights.sum().clamp(min=1)
        errors = (torch.stack(rewards, 1) - window.rewards) ** 2
        distance = ((unrolled[:, 1:] - seen) ** 2).mean(-1)
        surprise = functional.binary_cross_entropy_with_logits(
            torch.stack(continuations, 1), torch.ones_like(weights), reduction="none"
        )
        loss = ((errors + self.agent.consistency * distance + surprise) * weights).sum() / count
        return loss + (((values - targets) ** 2) * every).sum() / every.sum(), unrolled


def loaded(learner: Learner, parameters: Any) -> Learner:
    """The learner with the parameters of a JAX agent, online and target."""
    with torch.no_grad():
        model, affordances = parameters.model, parameters.affordances
        pairs = {
            "encoder": model.encoder,
            "embedding": model.embedding,
            "dynamics": model.dynamics,
            "reward": model.reward_head,
            "continuation": model.continuation_head,
            "values": model.value_heads[0],
        }
        for name, ours in pairs.items():
            _copy(getattr(learner.model, name), ours)
        _copy(learner.affordances.mappings, affordances.mappings)
        learner.affordances.offsets.copy_(torch.from_numpy(np.array(affordances.offsets)))
        learner.target_model.load_state_dict(learner.model.state_dict())
        learner.target_affordances.load_state_dict(learner.affordances.state_dict())
    return learner


def _copy(theirs: nn.Sequential, ours: Any) -> None:
    linears = [layer for layer in theirs if isinstance(layer, nn.Linear)]
    for linear, layer in zip(linears, ours.layers, strict=True):
        weight = np.concatenate([np.array(part) for part in layer.weights])  # [in, out]
        linear.weight.copy_(torch.from_numpy(weight.T.copy()))
        linear.bias.copy_(torch.from_numpy(np.array(layer.bias)))


def trial() -> dict[str, Any]:
    """A few layers forward and backward, for finding out how its threads should wait."""
    network, batch = mlp(128, 1, 128, 4), torch.randn(1024, 128)
    return {"trial": lambda: network(batch).sum().backward()}
