"""Statistics of seeds against plain computations that share no line with them."""

import itertools
import math
import statistics as plain

import numpy as np
import pytest

from grasp.statistics import (
    aligned,
    bootstrap_interval,
    final_scores,
    interquartile_band,
    interquartile_mean,
    mean_band,
    mean_curve,
    mean_heights,
    standard_error,
    uneven,
)


def trimmed_by_hand(values):
    """Drop floor(n / 4) at each end one by one, then add up."""
    left = list(values)
    for _ in range(len(values) // 4):
        left.remove(min(left))
        left.remove(max(left))
    return sum(left) / len(left)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 12, 45])
def test_interquartile_mean_is_that_of_dropping_one_by_one(n):
    values = np.random.default_rng(n).normal(size=n) ** 3
    assert interquartile_mean(values) == pytest.approx(trimmed_by_hand(values.tolist()))


def test_interquartile_mean_of_a_known_case():
    # scipy.stats.trim_mean(range(8), 0.25) and rliable's aggregate_iqm: 2, 3, 4, 5 are left.
    assert interquartile_mean(np.arange(8.0)) == 3.5
    assert interquartile_mean(np.array([0.0, 1, 2, 1000])) == 1.5
    scores = np.array([[0.0, 10], [1, 20], [2, 30], [900, 40]])
    np.testing.assert_array_equal(interquartile_mean(scores, axis=0), [1.5, 25])
    assert interquartile_mean(scores) == trimmed_by_hand(scores.ravel().tolist())


def test_interquartile_mean_is_scipys_trimmed_mean():
    stats = pytest.importorskip("scipy.stats")
    scores = np.random.default_rng(0).gamma(2, size=(23, 6))
    expected = stats.trim_mean(scores, 0.25, axis=0)
    np.testing.assert_allclose(interquartile_mean(scores, axis=0), expected)


def test_standard_error_is_the_textbooks():
    scores = np.random.default_rng(1).normal(size=(5, 3))
    by_hand = [plain.stdev(column) / math.sqrt(5) for column in scores.T.tolist()]
    np.testing.assert_allclose(standard_error(scores), by_hand)
    assert np.isnan(standard_error(scores[:1])).all()


def test_bootstrap_of_three_scores_is_that_of_all_27_draws():
    values = [1.0, 5.0, 6.0]
    means = sorted(sum(draw) / 3 for draw in itertools.product(values, repeat=3))
    low, high = bootstrap_interval([np.array(values)], confidence=0.8, resamples=40_000)
    assert low == pytest.approx(np.percentile(means, 10), abs=0.05)
    assert high == pytest.approx(np.percentile(means, 90), abs=0.05)


def test_bootstrap_draws_each_task_from_itself():
    # Two tasks without spread: any draw across tasks would move the mean.
    assert bootstrap_interval([np.zeros(4), np.ones(4)]) == (0.5, 0.5)
    pooled = bootstrap_interval([np.array([0.0] * 4 + [1.0] * 4)])
    assert pooled[0] < 0.5 < pooled[1]


def test_bootstrap_intervals_hold_the_truth_about_as_often_as_they_say():
    random = np.random.default_rng(2)
    held = 0
    for trial in range(200):
        low, high = bootstrap_interval([random.normal(size=20)], 0.9, 400, seed=trial)
        held += low <= 0 <= high
    assert 0.8 < held / 200 < 0.97


def test_the_same_data_give_the_same_interval():
    scores = [np.random.default_rng(3).normal(size=5)]
    assert bootstrap_interval(scores) == bootstrap_interval(scores)


def test_bands_over_steps():
    curves = [
        (np.array([10.0, 20]), np.array([1.0, 2])),
        (np.array([10.0, 20]), np.array([3.0, 8])),
    ]
    band = mean_band(curves)
    np.testing.assert_array_equal(band.centre, [2, 5])
    np.testing.assert_allclose(band.high - band.centre, [1, 3])
    wide = interquartile_band(curves, resamples=500)
    np.testing.assert_array_equal(wide.centre, [2, 5])
    np.testing.assert_array_equal(wide.low, [1, 2])
    np.testing.assert_array_equal(wide.high, [3, 8])


def test_one_seed_has_a_band_without_width():
    band = mean_band([(np.array([10.0]), np.array([4.0]))])
    assert band.low == band.centre == band.high == 4


def test_a_shorter_seed_ends_the_mean():
    long = (np.array([10.0, 20, 30]), np.array([1.0, 2, 3]))
    short = (np.array([10.0, 20]), np.array([3.0, 4]))
    steps, mean = mean_curve([long, short])
    np.testing.assert_array_equal(steps, [10, 20])
    np.testing.assert_array_equal(mean, [2, 3])
    (sentence,) = uneven({"GA-4": [long, short], "TD3": [long, long]}, "walker-walk")
    assert "GA-4 on walker-walk: seeds end at 20 and 30 steps" in sentence


def test_curves_without_a_common_evaluation_meet_where_the_shorter_ends():
    steps, scores = aligned(
        [(np.array([50.0, 100]), np.array([0.0, 10])), (np.array([10.0, 75]), np.array([1.0, 2]))]
    )
    np.testing.assert_array_equal(steps, [50])
    np.testing.assert_allclose(scores[:, 0], [0, 1 + 40 / 65])


def test_final_score_and_height_by_hand():
    curve = (np.arange(1.0, 21) * 10, np.arange(1.0, 21))
    assert final_scores([curve])[0] == 19.5  # the last 2 of 20
    assert final_scores([curve], until=50)[0] == 5
    # A line from 1 at 10 to 20 at 200: its mean height is half way.
    assert mean_heights([curve], 200)[0] == pytest.approx(10.5)
    assert mean_heights([curve], 20)[0] == pytest.approx(1.5)
