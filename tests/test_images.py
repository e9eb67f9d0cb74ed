"""The encoder against a convolution written out, random shifts against numpy's padding."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from grasp.agents.agent import Sizes
from grasp.agents.grasp import Grasp
from grasp.agents.td3 import TD3
from grasp.images import ImageEncoder, Images, randomly_shifted
from grasp.replay import Window

IMAGES = Images(stack=2, height=32, width=48, channels=3, filters=4, random_shift=3)


def random_observations(shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def by_convolution(encoder, observation):
    """The same layers as convolutions with strides as wide as their kernels: the oracle."""
    stack, height, width, channels = encoder.images[:4]
    frames = observation.reshape(stack, height, width, channels)
    signal = np.concatenate(list(frames), axis=-1)[None].astype(np.float32)
    signal = (signal - signal.mean()) / (signal.std() + 1)
    for side, layer in zip((4, 2, 2), encoder.layers, strict=True):
        kernel = layer.weights[0].reshape(side, side, signal.shape[-1], -1)  # HWIO
        signal = jax.lax.conv_general_dilated(
            signal, kernel, (side, side), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        signal = jax.nn.elu(signal + jnp.broadcast_to(layer.bias, signal.shape))
    return encoder.top(signal.ravel())


def test_the_encoder_is_the_convolution(key):
    encoder = ImageEncoder(IMAGES, 5, width=8, key=key)
    observation = random_observations(IMAGES.size)
    np.testing.assert_allclose(
        encoder(jnp.asarray(observation)), by_convolution(encoder, observation), atol=1e-5
    )


def test_light_and_contrast_are_taken_out(key):
    encoder = ImageEncoder(IMAGES, 5, width=8, key=key)
    dim = np.random.default_rng(0).integers(0, 60, IMAGES.size, dtype=np.uint8)
    bright = (4 * dim + 10).astype(np.uint8)
    blank = np.full(IMAGES.size, 200, np.uint8)
    of_bright, of_dim, of_blank = (
        encoder.scaled(image.reshape(-1, 4), image)
        for image in map(jnp.asarray, (bright, dim, blank))
    )
    np.testing.assert_allclose(of_bright, of_dim, atol=0.1)
    np.testing.assert_array_equal(of_blank, np.zeros_like(of_blank))


def test_a_shift_is_a_crop_of_the_image_with_its_border_repeated(key):
    observations = random_observations((50, IMAGES.size))
    moved = np.asarray(randomly_shifted(jnp.asarray(observations), IMAGES, key))
    most, offsets = IMAGES.random_shift, set()
    for before, after in zip(observations, moved, strict=True):
        frames = before.reshape(IMAGES[:4])
        padded = np.pad(frames, ((0, 0), (most, most), (most, most), (0, 0)), mode="edge")
        found = [
            (y, x)
            for y in range(2 * most + 1)
            for x in range(2 * most + 1)
            if (padded[:, y : y + 32, x : x + 48].ravel() == after).all()
        ]
        assert len(found) == 1  # all frames of a stack by the same offset
        offsets.add(found[0])
    assert len(offsets) > 20
    assert {y for y, _ in offsets} == set(range(2 * most + 1))


def test_without_shifts_nothing_moves(key):
    observations = random_observations((4, IMAGES.size))
    still = randomly_shifted(jnp.asarray(observations), IMAGES._replace(random_shift=0), key)
    np.testing.assert_array_equal(still, observations)


SMALL = Images(stack=2, height=16, width=16, channels=1, filters=2, random_shift=2)
SIZES = Sizes(observation=SMALL.size, goal=0, action=2, images=SMALL)


def windows(batch, n):
    return Window(
        observations=jnp.asarray(random_observations((batch, n + 1, SMALL.size))),
        goals=jnp.zeros((batch, n + 1, 0)),
        actions=jnp.zeros((batch, n, 2)),
        rewards=jnp.ones((batch, n)),
        durations=jnp.ones((batch, n)),
        valid=jnp.ones((batch, n), bool),
        terminated=jnp.zeros(batch, bool),
    )


@pytest.mark.parametrize("agent", [Grasp(width=8, batch=4, num_affordances=2), TD3(width=8)])
def test_an_update_from_images_trains_the_encoder(agent, key):
    agent = dataclasses.replace(agent, batch=4, window=2)
    state = agent.init(SIZES, key)
    after, metrics = jax.jit(agent.update)(state, windows(4, 2), key)
    before_encoder, after_encoder = (
        (s.online.encoder if isinstance(agent, TD3) else s.online.model.encoder)
        for s in (state, after)
    )
    for before, now in zip(before_encoder.layers, after_encoder.layers, strict=True):
        assert not np.array_equal(before.weights[0], now.weights[0])
    assert all(np.isfinite(value).all() for value in metrics.values())


def test_the_actor_of_td3_never_moves_the_encoder(key):
    agent = TD3(width=8, batch=4, policy_delay=1, critic_learning_rate=0.0)
    state = agent.init(SIZES, key)
    after, _ = jax.jit(agent.update)(state, windows(4, 1), key)
    assert not np.array_equal(
        state.online.actor.layers[0].weights[0], after.online.actor.layers[0].weights[0]
    )
    for before, now in zip(state.online.encoder.layers, after.online.encoder.layers, strict=True):
        np.testing.assert_array_equal(before.weights[0], now.weights[0])
