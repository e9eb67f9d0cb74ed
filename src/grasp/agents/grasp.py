"""GrASP (Algorithm 1): plan over K learned affordances, learn the model from replay, learn the
affordances through the planner.

The frozen dataclass is the agent and its hyper-parameters; `GraspState`, in `state.py`, is what
learning changes. Both losses are in `losses.py`, the planners in `planners/`.
"""

import dataclasses
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, Real
from optax import OptState

from grasp.affordances import AffordanceModule, Conditioning, LearnedAffordances
from grasp.agents.agent import Decision, Sizes
from grasp.agents.exploration import exploring, greedy, greedy_stretches
from grasp.agents.optimiser import Optimiser
from grasp.agents.settings import check_settings
from grasp.agents.state import GraspState, Parameters, centred, following, nothing_seen
from grasp.images import shifted
from grasp.losses import Metrics, affordance_loss, head_metrics, model_loss, window_targets
from grasp.model import AbstractState, ValueEquivalentModel
from grasp.normaliser import Normaliser, normalised, observed
from grasp.planners.complete_tree import CompleteTree
from grasp.planners.plan import Plan, Planner, TemperedPlanner, plan_batch
from grasp.replay import Window


@dataclasses.dataclass(frozen=True)
class Grasp:
    """A GrASP agent; the defaults are for two cores, `--preset paper` is what the paper states."""

    affordances: Conditioning = "goal"  # what the heads read: GA, SA or A
    num_affordances: int = 4  # K, the number of heads
    planner: Planner = CompleteTree(depth=1, temperature=0.1)
    learning_depth: int = 0  # of the tree that is learned through; 0: the planner's (choice 26)
    relative_temperature: bool = True  # tau multiplies the running spread of Q (choice 4)

    width: int = 128  # of every layer, and of the abstract state
    value_scale: float = 1.0  # what the output of a value network is multiplied by (choice 36)
    centring: float = 0.01  # rate of what endless values have in common (choice 38)
    num_values: int = 1  # value networks; the least of them counts (choice 23)
    layer_norm: bool = True  # on the abstract state (choice 7)
    normalise_layers: bool = True  # hidden units to mean 0 and variance 1 (choice 33)
    predict_termination: bool = True  # else the end is learned as absorbing (choice 10)
    normalise_observations: bool = True  # by their running mean and deviation (choice 20)
    initial_spread: float = 1.0  # of the heads before tanh (choice 6)
    head_layers: int = 2  # hidden layers between the abstract state and the heads (choice 31)

    discount: float = 0.99  # gamma
    window: int = 1  # n, decisions in a row out of the replay; more to plan deeper (choice 3)
    unroll: int = 0  # decisions of a window that the model follows; 0: all of them (choice 35)
    batch: int = 128  # windows per update
    roots_per_window: float = 1.0  # states that the affordances learn from; n + 1 is all of them
    bootstrap: Literal["planner", "value"] = "planner"  # what values are learned from (choice 1)
    trace: float = 0.0  # weight of recorded decisions in a value; 1: n-step returns (choice 30)
    model_learning_rate: float = 1e-3  # of all but the affordances
    affordance_learning_rate: float = 1.2e-3  # 0 keeps them random: RND
    affordance_period: int = 2  # updates of the model for one of the affordances (choice 37)
    learning_rate_end: float = 0.05  # share of both rates that is left in the end (choice 29)
    learning_rate_hold: int = 5_000  # updates before they begin to fall
    learning_rate_fall: int = 45_000  # updates over which they fall, linearly
    gradient_clip: float = 10.0  # by global norm
    consistency: float = 10.0  # weight of predicting the next abstract state (choices 7 and 39)
    value_weight: float = 0.3  # of the errors of values; those of rewards weigh 1 (choice 39)
    contrast: float = 0.0  # weight of telling it from those of other windows (choice 34)
    saturation_penalty: float = 1e-2  # on heads far beyond their bounds (choice 6)
    smoothing: float = 0.0  # deviation of what the heads propose while learning (choice 25)
    target_period: int = 1  # updates between moves of the targets
    target_rate: float = 0.01  # share of the way they move; the paper's hard copy is 1 every 1,000
    act_by_targets: bool = True  # decisions by the target parameters (choice 22)

    replay_capacity: int = 200_000  # decisions
    rewarded_share: float = 0.0  # of windows drawn among those with a reward (choice 7)
    warm_up: int = 1_000  # decisions taken at random before learning
    decisions_per_update: int = 1  # fewer learn more from each, and take longer (choice 32)
    updates_per_call: int = 4  # in one compiled call; changes speed only
    noise_start: float = 0.5  # deviation of the Gaussian added to the chosen action (choice 5)
    noise_end: float = 0.25  # what it falls to
    noise_decisions: int = 25_000  # over which it falls linearly
    random_share: float = 0.0  # of decisions taken uniformly at random (choice 5)
    greedy_share: float = 0.5  # of stretches taken as in evaluation, once the noise has fallen
    greedy_stretch: int = 100  # decisions in one environment

    def __post_init__(self) -> None:
        """Refuse what cannot work, by the flag that says it."""
        check_settings(self)

    def init(self, sizes: Sizes, key: PRNGKeyArray) -> GraspState:
        model_key, affordance_key = jax.random.split(key)
        online = Parameters(
            model=ValueEquivalentModel(
                observation_size=sizes.observation,
                goal_size=sizes.goal,
                action_size=sizes.action,
                features=self.width,
                width=self.width,
                num_values=self.num_values,
                discount=self.discount,
                layer_norm=self.layer_norm,
                predicts_termination=self.predict_termination and not sizes.endless,
                options=sizes.options,
                normalises_layers=self.normalise_layers,
                value_scale=self.value_scale,
                centred=self.centring > 0 and self.discount < 1 and sizes.endless,
                images=sizes.images,
                key=model_key,
            ),
            affordances=self.heads(sizes, affordance_key),
        )
        blank = AbstractState(jnp.zeros(self.width), jnp.zeros(sizes.goal))
        return GraspState(
            online=online,
            target=jax.tree.map(
                lambda leaf: jnp.copy(leaf) if eqx.is_array(leaf) else leaf, online
            ),
            model_optimiser=self._optimiser(self.model_learning_rate).init(online.model),
            affordance_optimiser=self._optimiser(self.affordance_learning_rate).init(
                online.affordances
            ),
            # Bytes of images are scaled by the encoder.
            observation_normaliser=Normaliser.empty(0 if sizes.images else sizes.observation),
            goal_normaliser=Normaliser.empty(sizes.goal),
            q_spread=jnp.ones(()),
            heads=nothing_seen(online.affordances, blank) if self.affordance_period > 1 else None,
            updates=jnp.zeros((), jnp.int32),
        )

    def heads(self, sizes: Sizes, key: PRNGKeyArray) -> LearnedAffordances:
        """The affordances at their start; a subclass may bring its own (docs/own-affordances.md)"""
        return AffordanceModule(
            conditioning=self.affordances,
            features=self.width,
            goal_size=sizes.goal,
            action_size=sizes.action,
            num_affordances=self.num_affordances,
            width=self.width,
            initial_spread=self.initial_spread,
            hidden=self.head_layers,
            norm=self.normalise_layers,
            prior=getattr(self.planner, "prior", "uniform") == "learned",
            key=key,
        )

    def plan(
        self,
        state: GraspState,
        observations: Real[Array, "B observation"],
        goals: Float[Array, "B goal"],
        key: PRNGKeyArray,
    ) -> Plan:
        """One plan for each observation, with the parameters that decide."""
        parameters = self._deciding(state)
        model = parameters.model
        roots = jax.vmap(model.encode)(*normalised(state, observations, goals))
        return plan_batch(self._planner(state), model, parameters.affordances, roots, key)

    def q_values(
        self,
        state: GraspState,
        observations: Real[Array, "B observation"],
        goals: Float[Array, "B goal"],
        actions: Float[Array, "B M action"],
    ) -> Float[Array, "B M"]:
        """What the model says of any actions, proposed or not: r + gamma^n V(s'), one step deep."""
        model = self._deciding(state).model
        roots = jax.vmap(model.encode)(*normalised(state, observations, goals))
        steps = jax.vmap(jax.vmap(model.step, in_axes=(None, 0)))(roots, actions)
        return steps.reward + steps.discount * jax.vmap(jax.vmap(model.value))(steps.state)

    def act(
        self,
        state: GraspState,
        observations: Real[Array, "B observation"],
        goals: Float[Array, "B goal"],
        key: PRNGKeyArray,
        decisions: Int[Array, ""],
    ) -> Decision:
        """Sample an affordance from the root policy and add noise that falls with the decisions;
        a growing share of stretches is greedy instead.
        """
        plan_key, *keys = jax.random.split(key, 5)
        plan = self.plan(state, observations, goals, plan_key)
        done = jnp.clip(decisions / max(self.noise_decisions, 1), 0, 1)
        deviation = self.noise_start + (self.noise_end - self.noise_start) * done
        stretches = greedy_stretches(
            decisions, plan.policy.shape[0], self.greedy_stretch, self.greedy_share * done
        )
        return exploring(plan, keys, deviation, self.random_share, stretches)

    def act_greedily(
        self,
        state: GraspState,
        observations: Real[Array, "B observation"],
        goals: Float[Array, "B goal"],
        key: PRNGKeyArray,
    ) -> Decision:
        """The affordance of highest probability, without noise."""
        return greedy(self.plan(state, observations, goals, key))

    def update(
        self, state: GraspState, window: Window, key: PRNGKeyArray
    ) -> tuple[GraspState, Metrics]:
        """One learning update from a batch of windows: the model, the affordances, the targets."""
        model_key, affordance_key = jax.random.split(key)
        if self.normalise_observations:
            state = observed(state, window.observations[:, 0], window.goals[:, 0])
        seen = shifted(state.online.model.encoder, window.observations, key)
        observations, goals = normalised(state, seen, window.goals)
        window = window._replace(observations=observations, goals=goals)
        planner = self._planner(state, self.learning_depth)

        model, model_optimiser, states, metrics = self._learn_model(
            state, planner, window, model_key
        )
        affordances, affordance_optimiser, heads = self._learn_affordances(
            state, planner, states, affordance_key
        )
        online = Parameters(model=model, affordances=affordances)
        spread = heads["planner/q_spread"]
        updates = state.updates + 1
        return GraspState(
            online=online,
            target=following(state.target, online, updates, self.target_period, self.target_rate),
            model_optimiser=model_optimiser,
            affordance_optimiser=affordance_optimiser,
            observation_normaliser=state.observation_normaliser,
            goal_normaliser=state.goal_normaliser,
            q_spread=jnp.where(updates == 1, spread, 0.99 * state.q_spread + 0.01 * spread),
            heads=None if state.heads is None else heads,
            updates=updates,
        ), metrics | heads

    def _learn_model(
        self, state: GraspState, planner: Planner, window: Window, key: PRNGKeyArray
    ) -> tuple[ValueEquivalentModel, OptState, AbstractState, Metrics]:
        """The model after a step down its loss, and the states of the unroll [B, n+1, ...]."""
        targets = window_targets(
            state.target.model,
            state.target.affordances,
            planner,
            window,
            key,
            bootstrap=self.bootstrap,
            trace=self.trace,
            smoothing=self.smoothing,
        )
        (_, (states, metrics)), gradient = eqx.filter_value_and_grad(model_loss, has_aux=True)(
            state.online.model,
            state.target.model,
            window.beginning(self.followed),
            targets[:, : self.followed + 1],
            consistency=self.consistency,
            contrast=self.contrast,
            value_weight=self.value_weight,
            judge_first=self.trace == 1,
        )
        model, optimiser, norm = self._optimiser(self.model_learning_rate).descend(
            state.online.model, gradient, state.model_optimiser, state.updates
        )
        model = centred(model, metrics, self.centring)
        return model, optimiser, states, metrics | {"train/model_gradient": norm}

    def _learn_affordances(
        self, state: GraspState, planner: Planner, states: AbstractState, key: PRNGKeyArray
    ) -> tuple[LearnedAffordances, OptState, Metrics]:
        """The affordances, which take a step in every `affordance_period`-th update."""
        if state.heads is None:
            return self._climb(state, planner, states, key)
        arrays, rest = eqx.partition(state.online.affordances, eqx.is_array)

        def climb() -> Any:
            affordances, optimiser, seen = self._climb(state, planner, states, key)
            return eqx.filter(affordances, eqx.is_array), optimiser, seen

        def stay() -> Any:
            return arrays, state.affordance_optimiser, state.heads

        due = state.updates % self.affordance_period == 0
        arrays, optimiser, seen = jax.lax.cond(due, climb, stay)
        return eqx.combine(arrays, rest), optimiser, seen

    def _climb(
        self, state: GraspState, planner: Planner, states: AbstractState, key: PRNGKeyArray
    ) -> tuple[LearnedAffordances, OptState, Metrics]:
        """The affordances after a step up the planner's value at the states of the unroll."""
        roots = jax.tree.map(
            lambda leaf: jax.lax.collapse(jnp.swapaxes(leaf, 0, 1), 0, 2)[: self.roots], states
        )  # [roots, ...], the windows' first states first
        (_, plans), gradient = eqx.filter_value_and_grad(affordance_loss, has_aux=True)(
            state.online.affordances,
            state.online.model,
            planner,
            roots,
            key,
            saturation_penalty=self.saturation_penalty,
            smoothing=self.smoothing,
        )
        affordances, optimiser, norm = self._optimiser(self.affordance_learning_rate).descend(
            state.online.affordances, gradient, state.affordance_optimiser, state.updates
        )
        return affordances, optimiser, head_metrics(plans) | {"train/affordance_gradient": norm}

    @property
    def roots(self) -> int:
        """States per update that the affordances learn from."""
        return round(self.roots_per_window * self.batch)

    @property
    def followed(self) -> int:
        """Decisions of a window that the model is unrolled along."""
        return self.unroll or self.window

    def _optimiser(self, rate: float) -> Optimiser:
        return Optimiser(
            rate=rate,
            clip=self.gradient_clip,
            falls_to=self.learning_rate_end,
            hold=self.learning_rate_hold,
            fall=self.learning_rate_fall,
        )

    @property
    def acts_with(self) -> tuple[str, ...]:
        parameters = ".target" if self.act_by_targets else ".online"
        return (parameters, ".observation_normaliser", ".goal_normaliser", ".q_spread")

    def _deciding(self, state: GraspState) -> Parameters:
        return state.target if self.act_by_targets else state.online

    def _planner(self, state: GraspState, depth: int = 0) -> Planner:
        """The planner, or one like it of another depth; at the running scale of Q or the paper's
        plain tau.
        """
        planner: Any = self.planner
        if depth:
            planner = dataclasses.replace(planner, depth=depth)
        if self.relative_temperature and isinstance(planner, TemperedPlanner):
            return planner.at_scale(jnp.maximum(state.q_spread, 1e-6))
        return planner
