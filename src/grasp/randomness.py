"""Randomness without a generator to lose: every draw is a function of (seed, stream, step).

A resumed run asks for the same (seed, stream, step) and gets the same numbers, so no generator
state is saved. Streams are disjoint: evaluating more often changes nothing about training.
"""

import enum

import jax
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray


class Stream(enum.IntEnum):
    INITIALISE = 0
    ACT = 1
    EXPLORE = 2
    SAMPLE = 3
    UPDATE = 4
    EPISODE = 5
    EVALUATE = 6


def generator(seed: int, stream: Stream, step: int) -> np.random.Generator:
    """Philox by name, since numpy's default may change: key (seed, stream), counter step."""
    return np.random.Generator(np.random.Philox(key=[seed, stream], counter=[0, 0, 0, step]))


def origin(seed: int) -> PRNGKeyArray:
    """The JAX key that all others of a seed come from."""
    return jax.random.key(seed, impl="threefry2x32")


def key(of: PRNGKeyArray, stream: Stream, step: int | Int[Array, ""]) -> PRNGKeyArray:
    """The JAX key of a place of the seed that `of` is the origin of; all may be traced."""
    return jax.random.fold_in(jax.random.fold_in(of, stream), step)


def episode_seed(seed: int, stream: Stream, episode: int) -> int:
    """The seed an environment is reset with."""
    return int(generator(seed, stream, episode).integers(2**31 - 1))


def fresh_start(seed: int, index: int) -> int:
    """The seed of an episode whose start training never saw: far above the indices that a training
    run's own evaluations use.
    """
    return episode_seed(seed, Stream.EVALUATE, 2**40 + index)
