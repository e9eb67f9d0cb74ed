"""Our interquartile mean and its bootstrap interval beside rliable's, on made-up scores.

It runs in the peers' environment (`make test-peers`): rliable is not maintained and holds back what
the package itself needs.
"""

import numpy as np
import pytest
from rliable import library, metrics

from grasp.statistics import bootstrap_interval, interquartile_band, interquartile_mean

RESAMPLES = 20_000


def scores(runs: int, tasks: int) -> np.ndarray:
    """[runs, tasks], with a long tail and another scale for each task."""
    random = np.random.default_rng(runs * 100 + tasks)
    return random.gamma(2, size=(runs, tasks)) * random.uniform(0.5, 3, tasks)


@pytest.mark.parametrize(("runs", "tasks"), [(3, 9), (5, 9), (10, 3), (23, 1)])
def test_the_interquartile_mean_is_that_of_rliable(runs, tasks):
    found = scores(runs, tasks)
    assert interquartile_mean(found) == pytest.approx(metrics.aggregate_iqm(found), rel=1e-12)


@pytest.mark.parametrize(("runs", "tasks"), [(5, 9), (10, 3), (23, 1)])
def test_the_interval_is_that_of_rliable_up_to_the_chance_of_resampling(runs, tasks):
    found = scores(runs, tasks)
    _, intervals = library.get_interval_estimates(
        {"ours": found},
        lambda drawn: np.array([metrics.aggregate_iqm(drawn)]),
        reps=RESAMPLES,
        random_state=np.random.RandomState(0),
    )
    theirs = intervals["ours"][:, 0]
    ours = bootstrap_interval(list(found.T), resamples=RESAMPLES)
    np.testing.assert_allclose(ours, theirs, atol=0.03 * (theirs[1] - theirs[0]))


def test_tasks_are_strata_and_not_one_pool():
    """The check above could not tell them apart if the two were as wide as each other."""
    found = scores(5, 9)
    strata, pool = (bootstrap_interval(s, resamples=RESAMPLES) for s in (found.T, [found.ravel()]))
    assert np.diff(pool) > 1.1 * np.diff(strata)


def test_the_band_of_curves_is_that_of_rliable_at_each_step():
    found = scores(7, 4)
    steps = np.arange(1.0, 5.0)
    band = interquartile_band([(steps, row) for row in found], resamples=RESAMPLES)
    for index in range(4):
        column = found[:, index : index + 1]
        _, intervals = library.get_interval_estimates(
            {"ours": column},
            lambda drawn: np.array([metrics.aggregate_iqm(drawn)]),
            reps=RESAMPLES,
            random_state=np.random.RandomState(1),
        )
        low, high = intervals["ours"][:, 0]
        assert band.centre[index] == pytest.approx(metrics.aggregate_iqm(column), rel=1e-12)
        np.testing.assert_allclose(
            (band.low[index], band.high[index]), (low, high), atol=0.03 * (high - low)
        )
