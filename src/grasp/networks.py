"""The multilayer perceptron of Appendix A, written for planning.

Its first layer takes its input in parts, W [s; a] = W_s s + W_a a. Under `jax.vmap` over the K
actions of one state the product W_s s is then made once for all K children: what `CompleteTree`
spends most of its time on.
"""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

Activation = Callable[[Float[Array, "..."]], Float[Array, "..."]]


@jax.custom_vjp
def elu(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """x above 0, exp(x) - 1 below; its derivative is read off the output, which saves an
    exponential.
    """
    return jnp.where(x > 0, x, jnp.exp(jnp.minimum(x, 0)) - 1)


def _elu_forward(x):
    y = elu(x)
    return y, y


def _elu_backward(y, gradient):
    return (gradient * jnp.where(y > 0, 1, y + 1),)


elu.defvjp(_elu_forward, _elu_backward)


class Linear(eqx.Module):
    """A sum of products, one for each part of the input, and a bias."""

    weights: tuple[Float[Array, "in out"], ...]  # one per part
    bias: Float[Array, " out"]

    def __init__(self, inputs: Sequence[int], outputs: int, key: PRNGKeyArray):
        bound = 1 / max(sum(inputs), 1) ** 0.5
        keys = jax.random.split(key, len(inputs) + 1)
        self.weights = tuple(
            jax.random.uniform(k, (size, outputs), minval=-bound, maxval=bound)
            for k, size in zip(keys[1:], inputs, strict=True)
        )
        self.bias = jax.random.uniform(keys[0], (outputs,), minval=-bound, maxval=bound)

    def __call__(self, *parts: Float[Array, " _"]) -> Float[Array, " out"]:
        products = [part @ weight for part, weight in zip(parts, self.weights, strict=True)]
        return sum(products[1:], products[0]) + self.bias


class MLP(eqx.Module):
    """`hidden` layers of units and a linear layer on top; with `norm` the units of a layer get mean
    0 and variance 1 before they are activated.
    """

    layers: tuple[Linear, ...]
    activation: Activation = eqx.field(static=True)
    norm: bool = eqx.field(static=True)

    def __init__(
        self,
        inputs: Sequence[int],
        outputs: int,
        *,
        width: int,
        hidden: int,
        key: PRNGKeyArray,
        activation: Activation = elu,
        norm: bool = False,
    ):
        self.activation = activation
        self.norm = norm
        keys = jax.random.split(key, hidden + 1)
        sizes = [tuple(inputs), *[(width,)] * hidden]
        units = [*[width] * hidden, outputs]
        self.layers = tuple(Linear(*layer) for layer in zip(sizes, units, keys, strict=True))

    def __call__(self, *parts: Float[Array, " _"]) -> Float[Array, " out"]:
        for layer in self.layers[:-1]:
            units = layer(*parts)
            parts = (self.activation(normal(units) if self.norm else units),)
        return self.layers[-1](*parts)


@jax.custom_vjp
def normal(features: Float[Array, " m"]) -> Float[Array, " m"]:
    """Mean 0 and variance 1, without parameters. Means are products with a constant vector: XLA
    adds up a short row of a CPU's memory number by number, and makes a product in parallel.
    """
    return _normal_forward(features)[0]


def _normal_forward(features):
    centred = features - _mean(features)
    scale = jax.lax.rsqrt(_mean(centred**2) + 1e-5)
    units = centred * scale
    return units, (units, scale)


def _normal_backward(saved, gradient):
    units, scale = saved
    return (scale * (gradient - _mean(gradient) - units * _mean(gradient * units)),)


normal.defvjp(_normal_forward, _normal_backward)


def _mean(x: Float[Array, " m"]) -> Float[Array, ""]:
    return x @ jnp.full(x.shape, 1 / x.size, x.dtype)
