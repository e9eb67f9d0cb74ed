"""The layers against their formulas, written plainly."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from grasp.networks import MLP, elu, normal


def plain_normal(x):
    """Mean 0 and variance 1: the oracle."""
    centred = x - jnp.mean(x)
    return centred / jnp.sqrt(jnp.mean(centred**2) + 1e-5)


def plain_elu(x):
    return jnp.where(x > 0, x, jnp.exp(jnp.minimum(x, 0)) - 1)


@pytest.mark.parametrize(("ours", "plain"), [(normal, plain_normal), (elu, plain_elu)])
@pytest.mark.parametrize("scale", [1e-4, 1.0, 100.0])
def test_a_function_and_its_gradient_are_those_of_the_formula(ours, plain, scale):
    x = scale * jax.random.normal(jax.random.key(0), (5, 128)) + 3 * scale
    weights = jax.random.normal(jax.random.key(1), (5, 128))

    def total(function, x):
        return jnp.sum(weights * jax.vmap(function)(x))

    np.testing.assert_allclose(jax.vmap(ours)(x), jax.vmap(plain)(x), rtol=1e-4, atol=1e-5)
    found, expected = (jax.grad(total, argnums=1)(f, x) for f in (ours, plain))
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4 * float(jnp.max(expected)))


def test_units_of_a_normalised_layer_have_mean_zero_and_variance_one():
    units = normal(7 + 3 * jax.random.normal(jax.random.key(0), (64,)))
    assert abs(float(jnp.mean(units))) < 1e-5
    assert float(jnp.var(units)) == pytest.approx(1, abs=1e-4)


def test_parts_of_an_input_count_as_one_input():
    network = MLP([3, 2], 4, width=8, hidden=2, key=jax.random.key(0), norm=True)
    state, action = jnp.arange(3.0), jnp.array([0.5, -1.0])
    x = jnp.concatenate([state, action])
    for layer in network.layers[:-1]:
        x = plain_elu(plain_normal(x @ jnp.concatenate(layer.weights) + layer.bias))
    last = network.layers[-1]
    np.testing.assert_allclose(network(state, action), x @ last.weights[0] + last.bias, rtol=1e-4)
