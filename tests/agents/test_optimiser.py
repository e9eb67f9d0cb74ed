import jax.numpy as jnp
import numpy as np
import pytest

from grasp.agents.optimiser import Optimiser


def stepped(optimiser: Optimiser, updates: int) -> float:
    """How far one step moves a parameter of gradient 1, far below the clip."""
    parameter = jnp.zeros(())
    moved, _, norm = optimiser.descend(
        parameter, jnp.ones(()), optimiser.init(parameter), jnp.asarray(updates)
    )
    assert norm == 1
    return -float(moved)


@pytest.mark.parametrize(
    ("updates", "left"), [(0, 1), (30, 1), (80, 0.6), (130, 0.2), (1_000, 0.2)]
)
def test_the_rate_holds_then_falls_linearly_and_stays(updates, left):
    falling = Optimiser(rate=0.01, clip=10.0, falls_to=0.2, hold=30, fall=100)
    np.testing.assert_allclose(stepped(falling, updates), left * 0.01, rtol=1e-5)


def test_a_rate_that_does_not_fall_is_plain_adam():
    assert stepped(Optimiser(rate=0.01, clip=10.0), 10**6) == pytest.approx(0.01, rel=1e-5)


def test_the_clip_is_of_the_global_norm():
    import optax

    gradient = {"a": jnp.full(3, 30.0), "b": jnp.full(1, 40.0)}
    parameters = {"a": jnp.zeros(3), "b": jnp.zeros(1)}
    ours = Optimiser(rate=0.1, clip=1.0)
    state = ours.init(parameters)
    _, state, norm = ours.descend(parameters, gradient, state, jnp.asarray(0))
    np.testing.assert_allclose(norm, np.sqrt(3 * 30**2 + 40**2), rtol=1e-6)
    first = optax.tree.get(state, "mu")  # 0.1 of the clipped gradient
    np.testing.assert_allclose(optax.tree.norm(first), 0.1, rtol=1e-5)
