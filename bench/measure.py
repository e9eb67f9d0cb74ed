"""Ratios that hold on a noisy machine: the things compared take turns, and the median counts."""

import dataclasses
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax


@dataclasses.dataclass(frozen=True)
class Timing:
    """Seconds per call: the median of the turns, and the quartiles around it."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{1e3 * self.median:.2f} ms ({1e3 * self.low:.2f} to {1e3 * self.high:.2f})"


def take_turns(
    contenders: Mapping[str, Callable[[], Any]], seconds: float = 6.0, least: int = 5
) -> dict[str, Timing]:
    """Time each callable in turn until `seconds` have passed and each had `least` turns.

    A callable returns what must be ready before its time is over; the first call of each, which
    compiles, is not counted.
    """
    for call in contenders.values():
        jax.block_until_ready(call())
    turns: dict[str, list[float]] = {name: [] for name in contenders}
    started = time.perf_counter()
    rounds = 0
    while rounds < least or time.perf_counter() - started < seconds:
        for name, call in contenders.items():
            begun = time.perf_counter()
            jax.block_until_ready(call())
            turns[name].append(time.perf_counter() - begun)
        rounds += 1
    return {name: _timing(values) for name, values in turns.items()}


def _timing(values: list[float]) -> Timing:
    low, median, high = statistics.quantiles(values, n=4)
    return Timing(median, low, high)
