"""TD3, the paper's model-free baseline (Section 3 and Appendix; details of choice 17).

    y      = r + gamma^n min_i Q_i'(x', pi'(x') + clipped noise),   0 after termination
    critic   minimise sum_i (y - Q_i(x, a))^2
    actor    maximise Q_1(x, pi(x)), every `policy_delay` updates; targets move on the same updates

Actor and critics share no parameters, except that images are read by one encoder, GrASP's, which
only the critics' loss trains (choice 27). It runs on the same replay, loop and evaluation as GrASP,
on actions and on options.
"""

import dataclasses
import math
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, Real

from grasp.agents.agent import Decision, Sizes
from grasp.errors import check_range
from grasp.images import ImageEncoder, shifted
from grasp.losses import Metrics, value_targets
from grasp.networks import MLP
from grasp.normaliser import Normaliser, normalised, observed
from grasp.replay import Window


class Networks(eqx.Module):
    """Actor and twin critics; there is an online and a target copy."""

    actor: MLP
    critics: tuple[MLP, MLP]
    encoder: ImageEncoder | None  # where observations are images

    def act(
        self, observation: Real[Array, " observation"], goal: Float[Array, " goal"]
    ) -> Float[Array, " action"]:
        return self.act_on(self.encode(observation), goal)

    def act_on(
        self, features: Float[Array, " m"], goal: Float[Array, " goal"]
    ) -> Float[Array, " action"]:
        return jnp.tanh(self.actor(features, goal))

    def encode(self, observation: Real[Array, " observation"]) -> Float[Array, " m"]:
        return observation if self.encoder is None else self.encoder(observation)

    @property
    def judging(self) -> Any:
        """What the critics' loss trains."""
        return self.critics if self.encoder is None else (self.critics, self.encoder)

    def with_judging(self, judging: Any) -> "Networks":
        critics, encoder = (judging, None) if self.encoder is None else judging
        return Networks(actor=self.actor, critics=critics, encoder=encoder)


class TD3State(eqx.Module):
    online: Networks
    target: Networks
    actor_optimiser: optax.OptState
    critic_optimiser: optax.OptState
    observation_normaliser: Normaliser
    goal_normaliser: Normaliser
    updates: Int[Array, ""]


@dataclasses.dataclass(frozen=True)
class TD3:
    """Widths, rates and smoothing are the paper's; the rest is the original algorithm's."""

    width: int = 512  # of every layer
    layer_norm: bool = False  # on the hidden layers of the critics
    normalise_observations: bool = False  # by their running mean and deviation (choice 20)
    discount: float = 0.99  # gamma
    batch: int = 256  # decisions per update
    window: int = 1  # n of the n-step return
    actor_learning_rate: float = 1e-4  # Adam
    critic_learning_rate: float = 1e-3  # Adam
    target_rate: float = 0.005  # share of the way that the targets move
    policy_delay: int = 2  # critic updates per actor update
    noise: float = 0.1  # deviation of the exploration noise
    target_noise: float = 0.2  # deviation of the noise on the targets' actions
    target_noise_clip: float = 0.5  # the most that it moves one
    saturation_penalty: float = 0.0  # on an actor far beyond its bounds
    replay_capacity: int = 200_000  # decisions
    rewarded_share: float = 0.0  # of decisions drawn among those with a reward (choice 7)
    warm_up: int = 1_000  # decisions taken at random before learning
    decisions_per_update: int = 1  # fewer learn more from each, and take longer
    updates_per_call: int = 4  # in one compiled call; changes speed only

    def __post_init__(self) -> None:
        sizes = ("width", "batch", "window", "updates_per_call")
        check_range(self, sizes, 1, 10_000, "1 to 10,000")
        check_range(self, ("policy_delay", "decisions_per_update"), 1, math.inf, "at least 1")

    def init(self, sizes: Sizes, key: PRNGKeyArray) -> TD3State:
        keys = jax.random.split(key, 3)
        encoder, seen = None, (sizes.observation, sizes.goal)
        if sizes.images is not None:
            encoder_key = jax.random.fold_in(key, 3)
            encoder = ImageEncoder(sizes.images, self.width, width=self.width, key=encoder_key)
            seen = (self.width, sizes.goal)

        network = partial(MLP, width=self.width, hidden=2, activation=jax.nn.relu)
        critic = partial(network, (*seen, sizes.action), 1, norm=self.layer_norm)
        online = Networks(
            actor=network(seen, sizes.action, key=keys[0]),
            critics=(critic(key=keys[1]), critic(key=keys[2])),
            encoder=encoder,
        )
        arrays = eqx.filter(online, eqx.is_array)
        return TD3State(
            online=online,
            target=jax.tree.map(jnp.copy, online),
            actor_optimiser=self._actor_optimiser.init(arrays.actor),
            critic_optimiser=self._critic_optimiser.init(arrays.judging),
            observation_normaliser=Normaliser.empty(0 if sizes.images else sizes.observation),
            goal_normaliser=Normaliser.empty(sizes.goal),
            updates=jnp.zeros((), jnp.int32),
        )

    def act(
        self,
        state: TD3State,
        observations: Real[Array, "B observation"],
        goals: Float[Array, "B goal"],
        key: PRNGKeyArray,
        decisions: Int[Array, ""],
    ) -> Decision:
        """The actor's action with noise."""
        del decisions
        decision = self.act_greedily(state, observations, goals, key)
        noise = self.noise * jax.random.normal(key, decision.actions.shape)
        return decision._replace(actions=jnp.clip(decision.actions + noise, -1, 1))

    def act_greedily(
        self,
        state: TD3State,
        observations: Real[Array, "B observation"],
        goals: Float[Array, "B goal"],
        key: PRNGKeyArray,
    ) -> Decision:
        del key
        seen = normalised(state, observations, goals)
        actions = jax.vmap(state.online.act)(*seen)
        return Decision(actions, jnp.zeros(actions.shape[0], jnp.int32), None)

    def update(
        self, state: TD3State, window: Window, key: PRNGKeyArray
    ) -> tuple[TD3State, Metrics]:
        """One critic update; actor and targets follow on every `policy_delay`-th."""
        if self.normalise_observations:
            state = observed(state, window.observations[:, 0], window.goals[:, 0])
        seen = shifted(state.online.encoder, window.observations, key)
        observations, goals = normalised(state, seen, window.goals)
        window = window._replace(observations=observations, goals=goals)
        targets = self.targets(state.target, window, key)  # [B]
        online, first, goals = state.online, window.observations[:, 0], window.goals[:, 0]

        def critic_loss(judging: Any) -> Any:
            networks = online.with_judging(judging)
            seen = (jax.vmap(networks.encode)(first), goals)
            found = [q_values(critic, *seen, window.actions[:, 0]) for critic in networks.critics]
            return sum(jnp.mean((values - targets) ** 2) for values in found), seen

        (loss, seen), gradient = jax.value_and_grad(critic_loss, has_aux=True)(online.judging)
        changes, critic_optimiser = self._critic_optimiser.update(gradient, state.critic_optimiser)
        judging = eqx.apply_updates(online.judging, changes)
        updates = state.updates + 1
        state = dataclasses.replace(
            state,
            online=online.with_judging(judging),
            critic_optimiser=critic_optimiser,
            updates=updates,
        )
        state = jax.lax.cond(
            updates % self.policy_delay == 0, self._follow, lambda s, *_: s, state, *seen
        )
        return state, {
            "train/critic_loss": loss,
            "train/target_mean": jnp.mean(targets),
        }

    def targets(self, target: Networks, window: Window, key: PRNGKeyArray) -> Float[Array, " B"]:
        """The n-step return of each window's first decision, bootstrapped with smoothed actions."""
        last = (jax.vmap(target.encode)(window.observations[:, -1]), window.goals[:, -1])
        actions = self.smoothed(jax.vmap(target.act_on)(*last), key)
        values = jnp.minimum(*(q_values(critic, *last, actions) for critic in target.critics))
        values = jnp.where(window.terminated, 0, values)[:, None]
        returns = jax.vmap(partial(value_targets, trace=1))(
            window.rewards,
            self.discount**window.durations,
            jnp.broadcast_to(values, window.rewards.shape),
        )  # [B, n+1]
        return returns[:, 0]

    def smoothed(
        self, actions: Float[Array, "B action"], key: PRNGKeyArray
    ) -> Float[Array, "B action"]:
        """Target policy smoothing: clipped noise, and never an action outside [-1, 1]."""
        noise = self.target_noise * jax.random.normal(key, actions.shape)
        noise = jnp.clip(noise, -self.target_noise_clip, self.target_noise_clip)
        return jnp.clip(actions + noise, -1, 1)

    @property
    def acts_with(self) -> tuple[str, ...]:
        return (".online.actor", ".online.encoder", ".observation_normaliser", ".goal_normaliser")

    @property
    def _actor_optimiser(self) -> optax.GradientTransformation:
        return optax.adam(self.actor_learning_rate, eps=1e-8)

    @property
    def _critic_optimiser(self) -> optax.GradientTransformation:
        return optax.adam(self.critic_learning_rate, eps=1e-8)

    def _follow(self, state: TD3State, features: Any, goals: Any) -> TD3State:
        """The actor climbs the first critic, and the targets move."""

        def actor_loss(actor: MLP) -> Float[Array, ""]:
            proposals = jax.vmap(actor)(features, goals)  # [B, action], before tanh
            q = q_values(state.online.critics[0], features, goals, jnp.tanh(proposals))
            beyond = jnp.square(jnp.maximum(jnp.abs(proposals) - 2, 0)).sum(axis=-1)
            return jnp.mean(self.saturation_penalty * beyond - q)

        gradient = jax.grad(actor_loss)(state.online.actor)
        changes, actor_optimiser = self._actor_optimiser.update(gradient, state.actor_optimiser)
        online = Networks(
            actor=eqx.apply_updates(state.online.actor, changes),
            critics=state.online.critics,
            encoder=state.online.encoder,
        )
        rate = self.target_rate
        return dataclasses.replace(
            state,
            online=online,
            target=jax.tree.map(lambda old, new: old + rate * (new - old), state.target, online),
            actor_optimiser=actor_optimiser,
        )


def q_values(critic: MLP, features: Any, goals: Any, actions: Any) -> Float[Array, " B"]:
    return jax.vmap(critic)(features, goals, actions)[:, 0]
