"""What a handful of seeds says: mean with standard error, as in the paper, and the interquartile
mean with stratified bootstrap intervals (Agarwal et al. 2021), which few odd seeds do not move.

Only numpy is needed here.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

Curve = tuple[np.ndarray, np.ndarray]  # environment steps; return, or success where a task has it


class Band(NamedTuple):
    """A statistic of several curves along common steps."""

    steps: np.ndarray  # [T]
    centre: np.ndarray  # [T]
    low: np.ndarray  # [T]
    high: np.ndarray  # [T]


def aligned(curves: Sequence[Curve]) -> tuple[np.ndarray, np.ndarray]:
    """Common steps [T] and scores [seeds, T]: the steps of the first curve as far as every curve
    has data, the others read off between their evaluations.
    """
    first = max(steps[0] for steps, _ in curves)
    last = min(steps[-1] for steps, _ in curves)
    grid = curves[0][0]
    grid = grid[(grid >= first) & (grid <= last)]
    if not grid.size:  # no evaluation in common: only the last moment that all have reached
        grid = np.array([last])
    return grid, np.stack([np.interp(grid, steps, scores) for steps, scores in curves])


def mean_curve(curves: Sequence[Curve]) -> Curve:
    """The mean over seeds, where every seed has data."""
    steps, scores = aligned(curves)
    return steps, scores.mean(0)


def standard_error(scores: np.ndarray) -> np.ndarray:
    """Of the mean over the first axis; nan where there is one seed, which says nothing of it."""
    n = len(scores)
    if n < 2:
        return np.full(scores.shape[1:], np.nan)
    return np.asarray(scores.std(0, ddof=1) / np.sqrt(n))


def interquartile_mean(scores: np.ndarray, axis: int | None = None) -> np.ndarray:
    """The mean of what is left when the lowest and the highest quarter are dropped; of n scores,
    floor(n / 4) at each end.
    """
    if axis is None:
        scores, axis = np.ravel(scores), 0
    ordered = np.sort(np.moveaxis(scores, axis, 0), axis=0)
    cut = len(ordered) // 4
    return np.asarray(ordered[cut : len(ordered) - cut].mean(0))


def bootstrap_interval(
    strata: Sequence[np.ndarray],
    confidence: float = 0.95,
    resamples: int = 2_000,
    seed: int = 0,
) -> tuple[float, float]:
    """Percentile interval of the interquartile mean of all scores together.

    Each stratum, the seeds of one task, is drawn anew from itself with replacement, so a task
    counts as often in every resample as in the data.
    """
    random = np.random.default_rng(seed)
    drawn = [
        np.asarray(scores)[random.integers(0, len(scores), (resamples, len(scores)))]
        for scores in strata
    ]
    means = interquartile_mean(np.concatenate(drawn, axis=1), axis=1)  # [resamples]
    tail = 50 * (1 - confidence)
    low, high = np.percentile(means, [tail, 100 - tail])
    return float(low), float(high)


def mean_band(curves: Sequence[Curve]) -> Band:
    """Mean and standard error along the steps; no width where there is one seed."""
    steps, scores = aligned(curves)
    mean, error = scores.mean(0), np.nan_to_num(standard_error(scores))
    return Band(steps, mean, mean - error, mean + error)


def interquartile_band(curves: Sequence[Curve], resamples: int = 2_000) -> Band:
    """Interquartile mean and its 95 % bootstrap interval along the steps."""
    steps, scores = aligned(curves)
    intervals = [bootstrap_interval([column], resamples=resamples) for column in scores.T]
    low, high = np.array(intervals).T
    return Band(steps, interquartile_mean(scores, axis=0), low, high)


def final_scores(curves: Sequence[Curve], until: float | int | None = None) -> np.ndarray:
    """One number per seed: the mean of its last tenth of evaluations, at least one, up to
    `until` steps.
    """
    found = []
    for steps, scores in curves:
        kept = scores[steps <= (np.inf if until is None else until)]
        kept = scores[:1] if not kept.size else kept
        found.append(kept[-max(1, len(kept) // 10) :].mean())
    return np.array(found)


def mean_heights(curves: Sequence[Curve], until: float | int) -> np.ndarray:
    """One number per seed that says how fast it learned: the area under its curve from its first
    evaluation to `until` steps, over that distance.
    """
    found = []
    for steps, scores in curves:
        end = min(float(until), float(steps[-1]))
        inside = steps < end
        x = np.append(steps[inside], end)
        y = np.append(scores[inside], np.interp(end, steps, scores))
        found.append(np.trapezoid(y, x) / (x[-1] - x[0]) if len(x) > 1 else y[0])
    return np.array(found)


def uneven(curves: Mapping[str, Sequence[Curve]], task: str) -> list[str]:
    """One sentence for each agent whose seeds end at different step counts."""
    sentences = []
    for label, seeds in curves.items():
        ends = sorted({int(steps[-1]) for steps, _ in seeds})
        if len(ends) > 1:
            sentences.append(
                f"{label} on {task}: seeds end at {' and '.join(f'{end:,}' for end in ends)} "
                f"steps; what is said of them goes to {ends[0]:,}, "
                "train the shorter ones on for the rest"
            )
    return sentences
