"""Images: what the networks know of them, the encoder that reads them, and the random shifts that
augment them (choice 27).

The encoder is convolutional with kernels as wide as their strides, 4, 2 and 2: each layer cuts its
input into patches and multiplies them by one matrix,

    64 x 64 x (3 stack)  ->  16 x 16 x F  ->  8 x 8 x 2F  ->  4 x 4 x 2F  ->  MLP.

On a CPU that is three matrix products and no convolution, at a quarter of the time.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, UInt8

from grasp.networks import MLP, Linear, elu

PATCHES = (4, 2, 2)  # sides of the patches of the three layers
REDUCTION = 16  # their product: an image's sides are multiples of it


class Images(NamedTuple):
    """An observation of `stack` frames, oldest first, and how it is read."""

    stack: int
    height: int
    width: int
    channels: int  # of one frame
    filters: int  # F
    random_shift: int  # most pixels that an image is moved by while learning; 0: none

    @property
    def size(self) -> int:
        return self.stack * self.height * self.width * self.channels


class ImageEncoder(eqx.Module):
    """Three layers of patches and an MLP of one hidden layer."""

    layers: tuple[Linear, ...]
    top: MLP
    images: Images = eqx.field(static=True)

    def __init__(
        self, images: Images, outputs: int, *, width: int, key: PRNGKeyArray, norm: bool = False
    ):
        keys = jax.random.split(key, len(PATCHES) + 1)
        units = [images.filters, 2 * images.filters, 2 * images.filters]
        depths = [images.stack * images.channels, *units[:-1]]
        self.layers = tuple(
            Linear([side * side * depth], outputs, layer_key)
            for side, depth, outputs, layer_key in zip(
                PATCHES, depths, units, keys[:-1], strict=True
            )
        )
        places = (images.height // REDUCTION) * (images.width // REDUCTION)
        self.top = MLP(
            [places * units[-1]], outputs, width=width, hidden=1, norm=norm, key=keys[-1]
        )
        self.images = images

    def __call__(self, observation: UInt8[Array, " observation"]) -> Float[Array, " out"]:
        stack, height, width, channels, *_ = self.images
        frames = observation.reshape(stack, height, width, channels)
        # Bytes are moved before they become floats: a quarter of the memory.
        cut = patches(jnp.moveaxis(frames, 0, 2).reshape(height, width, -1), PATCHES[0])
        signal = self.scaled(cut, observation)  # [rows, columns, in]
        for side, layer in zip((1, *PATCHES[1:]), self.layers, strict=True):
            cut = patches(signal, side)
            rows, columns, depth = cut.shape
            units = jax.vmap(layer)(cut.reshape(-1, depth))  # [rows * columns, out]
            signal = elu(units).reshape(rows, columns, -1)
        return self.top(signal.ravel())

    def scaled(
        self, image: UInt8[Array, "*shape"], observation: UInt8[Array, " observation"]
    ) -> Float[Array, "*shape"]:
        """The observation's bytes, laid out as `image`, with mean 0 and deviation 1: rendered
        scenes are dark, and what moves changes them by little. One shade everywhere becomes 0.
        """
        whole = observation.astype(jnp.float32)  # sums over patches would take twice as long
        return (image.astype(jnp.float32) - whole.mean()) / (whole.std() + 1)


def patches(
    image: Float[Array, "height width depth"] | UInt8[Array, "height width depth"], side: int
) -> Float[Array, "rows columns patch"] | UInt8[Array, "rows columns patch"]:
    """The image cut into squares, each laid out as one vector, row by row."""
    height, width, depth = image.shape
    cut = image.reshape(height // side, side, width // side, side, depth)
    return cut.swapaxes(1, 2).reshape(height // side, width // side, side * side * depth)


def are_images(observations: Any) -> bool:
    return observations.dtype == jnp.uint8


def shifted(encoder: Any, observations: Any, key: PRNGKeyArray) -> Any:
    """Observations as learning sees them: images moved at random, all else as it is."""
    if not isinstance(encoder, ImageEncoder):
        return observations
    return randomly_shifted(observations, encoder.images, jax.random.fold_in(key, 2))


def randomly_shifted(
    observations: UInt8[Array, "*batch observation"], images: Images, key: PRNGKeyArray
) -> UInt8[Array, "*batch observation"]:
    """Every observation moved by up to `random_shift` pixels each way, the frames of a stack
    together; what comes in repeats the border.
    """
    most = images.random_shift
    if most == 0:
        return observations
    flat = observations.reshape(-1, *images[:4])
    offsets = jax.random.randint(key, (flat.shape[0], 2), -most, most + 1)

    def moved(frames, offset):
        rows = jnp.clip(jnp.arange(images.height) + offset[0], 0, images.height - 1)
        columns = jnp.clip(jnp.arange(images.width) + offset[1], 0, images.width - 1)
        return frames[:, rows][:, :, columns]

    return jax.vmap(moved)(flat, offsets).reshape(observations.shape)
