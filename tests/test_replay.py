"""Replay with data that encodes its own index: every number in a window says where it came from."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grasp.errors import CorruptCheckpoint
from grasp.replay import Replay


def filled(lengths, *, capacity=64, lane=0, lanes=1, endings=None):
    """Episodes of the given lengths; observation 100 * episode + t, action and reward the same +
    0.5.
    """
    replay = Replay(capacity=capacity, lanes=lanes, observation_size=1, goal_size=1, action_size=1)
    fill(replay, lengths, lane=lane, endings=endings)
    return replay


def fill(replay, lengths, *, lane=0, endings=None):
    for episode, length in enumerate(lengths):
        base = 1000 * lane + 100 * episode
        replay.begin(lane, np.array([base]), np.array([episode]))
        for t in range(length):
            last = t == length - 1
            replay.add(
                lane,
                action=np.array([base + t + 0.5]),
                reward=base + t + 0.5,
                duration=1,
                terminated=bool(last and endings and endings[episode]),
                observation=np.array([base + t + 1]),
                goal=np.array([episode]),
            )


def at(replay, observation):
    """The row of a stored observation."""
    (rows,) = np.nonzero(replay.observations[0, :, 0] == observation)
    return np.zeros(1, np.int64), rows[-1:]


def test_a_window_inside_an_episode_is_what_was_stored():
    window = filled([6]).windows(*at(filled([6]), 2), 3)
    np.testing.assert_array_equal(window.observations[0, :, 0], [2, 3, 4, 5])
    np.testing.assert_array_equal(window.actions[0, :, 0], [2.5, 3.5, 4.5])
    np.testing.assert_array_equal(window.rewards[0], [2.5, 3.5, 4.5])
    np.testing.assert_array_equal(window.durations[0], [1, 1, 1])
    assert window.valid.all()
    assert not window.terminated[0]


def sparse(rewarded, capacity=64, lengths=(7, 5, 9, 6)):
    """Episodes in which only the decisions from the given observations are rewarded."""
    replay = Replay(capacity=capacity, lanes=1, observation_size=1, goal_size=0, action_size=1)
    nothing = np.zeros(0)
    for episode, length in enumerate(lengths):
        replay.begin(0, np.array([100 * episode]), nothing)
        for t in range(length):
            at = 100 * episode + t
            replay.add(
                0, action=np.zeros(1), reward=float(at in rewarded), duration=1, terminated=False,
                observation=np.array([at + 1]), goal=nothing,
            )  # fmt: skip
    return replay


def test_a_share_of_windows_holds_a_reward():
    replay = sparse({3, 200, 305})
    window = replay.sample(4_000, 3, np.random.default_rng(0), rewarded_share=0.5)
    holds = window.rewards.any(1)
    uniform = replay.sample(4_000, 3, np.random.default_rng(0)).rewards.any(1).mean()
    assert holds.mean() == pytest.approx(0.5 + 0.5 * uniform, abs=0.03)
    starts = window.observations[holds, 0, 0]
    assert set(starts) == {1, 2, 3, 200, 303, 304, 305}  # 0 to 2 before, never another episode
    counts = [(starts == start).sum() for start in (1, 2, 3)]
    assert max(counts) < 1.3 * min(counts)


def test_asking_for_rewards_where_there_are_none_changes_nothing():
    window = sparse(set()).sample(50, 3, np.random.default_rng(0), rewarded_share=0.5)
    assert window.rewards.shape == (50, 3)


def test_rewards_that_the_ring_has_overwritten_are_gone():
    replay = sparse({3}, capacity=20)  # the first episode is no more
    window = replay.sample(200, 3, np.random.default_rng(0), rewarded_share=0.5)
    assert not window.rewards.any()


def test_past_truncation_padding_is_neutral_and_invalid():
    replay = filled([3, 4], endings=[False, False])
    window = replay.windows(*at(replay, 2), 3)
    np.testing.assert_array_equal(window.observations[0, :, 0], [2, 3, 3, 3])
    np.testing.assert_array_equal(window.rewards[0], [2.5, 0, 0])
    np.testing.assert_array_equal(window.durations[0], [1, 0, 0])
    np.testing.assert_array_equal(window.valid[0], [True, False, False])
    assert not window.terminated[0]
    np.testing.assert_array_equal(window.goals[0, :, 0], [0, 0, 0, 0])


def test_past_termination_padding_is_an_absorbing_state_and_valid():
    replay = filled([3, 4], endings=[True, False])
    window = replay.windows(*at(replay, 2), 3)
    np.testing.assert_array_equal(window.observations[0, :, 0], [2, 3, 3, 3])
    np.testing.assert_array_equal(window.rewards[0], [2.5, 0, 0])
    assert window.valid.all()
    assert window.terminated[0]


def test_a_window_that_ends_just_before_termination_is_not_terminated():
    replay = filled([4], endings=[True])
    assert not replay.windows(*at(replay, 0), 3).terminated[0]
    assert replay.windows(*at(replay, 1), 3).terminated[0]


def test_the_beginning_of_a_window_is_the_shorter_window():
    replay = filled([4, 2], endings=[True, False])
    for start, count in itertools.product(range(4), (1, 2, 3)):
        shorter = replay.windows(*at(replay, start), count)
        for name, expected in shorter._asdict().items():
            cut = getattr(replay.windows(*at(replay, start), 3).beginning(count), name)
            np.testing.assert_array_equal(cut, expected, err_msg=name)


def test_the_newest_window_is_cut_at_the_current_observation():
    replay = filled([3])
    window = replay.windows(*at(replay, 2), 3)
    np.testing.assert_array_equal(window.observations[0, :, 0], [2, 3, 3, 3])
    np.testing.assert_array_equal(window.valid[0], [True, False, False])


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=12),
    endings=st.lists(st.booleans(), min_size=12, max_size=12),
    capacity=st.integers(5, 40),
    n=st.integers(1, 5),
    seed=st.integers(0, 99),
)
def test_no_window_ever_joins_two_episodes(lengths, endings, capacity, n, seed):
    replay = filled(lengths, capacity=capacity, endings=endings)
    window = replay.sample(50, n, np.random.default_rng(seed))
    observations = window.observations[..., 0]
    episodes = observations // 100
    assert (episodes == episodes[:, :1]).all()
    assert (window.goals[..., 0] == episodes).all()
    moves = np.diff(observations, axis=1)
    real = window.durations == 1
    np.testing.assert_array_equal(moves, real)  # a real decision moves by one, padding stands still
    np.testing.assert_array_equal(window.rewards, np.where(real, observations[:, :-1] + 0.5, 0))
    np.testing.assert_array_equal(window.actions[real][:, 0], observations[:, :-1][real] + 0.5)
    assert real[:, 0].all()
    for row in range(50):
        episode = int(episodes[row, 0])
        reached_end = observations[row, -1] == 100 * episode + lengths[episode]
        assert window.terminated[row] == (reached_end and endings[episode])
    assert (window.valid == (real | window.terminated[:, None])).all()


def test_starts_are_uniform_over_all_decisions_of_all_lanes():
    replay = filled([2, 5, 1], lanes=2, capacity=60)
    fill(replay, [3], lane=1)
    window = replay.sample(22_000, 1, np.random.default_rng(0))
    starts, counts = np.unique(window.observations[:, 0, 0], return_counts=True)
    np.testing.assert_array_equal(starts, [0, 1, 100, 101, 102, 103, 104, 200, 1000, 1001, 1002])
    assert np.abs(counts - 2000).max() < 5 * np.sqrt(2000)


def test_the_ring_keeps_the_newest_and_its_size():
    replay = filled([50], capacity=10)
    assert len(replay) == 9
    starts = replay.sample(500, 1, np.random.default_rng(0)).observations[:, 0, 0]
    assert set(starts) == set(range(41, 50))


def test_lanes_do_not_mix():
    replay = filled([5], lanes=2, capacity=40)
    fill(replay, [5], lane=1)
    window = replay.sample(200, 3, np.random.default_rng(0))
    lanes = window.observations[..., 0] // 1000
    assert (lanes == lanes[:, :1]).all()
    assert {0, 1} == set(lanes[:, 0])


@pytest.mark.parametrize("parts", [[[4, 7, 3]], [[4], [7], [3]], [[2], [], [9, 9], [1]]])
def test_segments_put_back_in_order_give_the_same_windows_and_go_on_the_same(parts):
    one = Replay(capacity=12, lanes=1, observation_size=1, goal_size=1, action_size=1)
    segments, since = [], np.zeros(1, np.int64)
    for lengths in parts:
        fill(one, lengths)
        segments.append({name: a.copy() for name, a in one.rows_between(since, one.begun).items()})
        since = np.maximum(one.begun - 1, 0)
    other = Replay(capacity=12, lanes=1, observation_size=1, goal_size=1, action_size=1)
    for segment in segments:
        other.put_rows(segment)
    other.stand_at(one.begun)
    for name, array in one.state().items():
        np.testing.assert_array_equal(array, other.state()[name], err_msg=name)
    fill(one, [2, 2])
    fill(other, [2, 2])
    for left, right in zip(
        one.sample(40, 3, np.random.default_rng(1)),
        other.sample(40, 3, np.random.default_rng(1)),
        strict=True,
    ):
        np.testing.assert_array_equal(left, right)
    np.testing.assert_array_equal(one.current(), other.current())


def test_sampling_before_any_decision_is_refused():
    replay = filled([])
    with pytest.raises(ValueError, match="nothing to sample"):
        replay.sample(4, 2, np.random.default_rng(0))


def test_a_replay_too_small_for_its_lanes_is_refused():
    with pytest.raises(ValueError, match="capacity 8"):
        Replay(capacity=8, lanes=4, observation_size=1, goal_size=0, action_size=1)


def test_rows_of_another_shape_or_type_are_refused():
    replay = filled([4, 7, 3], capacity=12)
    rows = replay.rows_between(np.zeros(1, np.int64), replay.begun)
    other = Replay(capacity=12, lanes=1, observation_size=2, goal_size=1, action_size=1)
    with pytest.raises(CorruptCheckpoint, match="observations"):
        other.put_rows(rows)
    with pytest.raises(CorruptCheckpoint, match="rewards"):
        replay.put_rows(rows | {"rewards": rows["rewards"].astype(np.float64)})
    with pytest.raises(CorruptCheckpoint, match="1 environments"):
        replay.stand_at(np.zeros(2, np.int64))


def literal_stacks(lengths, stack, size):
    """Every observation of the episodes as its stack of frames, in plain Python: the oracle."""
    stacks = []
    for episode, length in enumerate(lengths):
        frames = [[(20 * episode + t) % 256] * size for t in range(length + 1)]
        for t in range(length + 1):
            first = [frames[max(t - back, 0)] for back in range(stack - 1, -1, -1)]
            stacks.append([number for frame in first for number in frame])
    return stacks


def filled_with_images(lengths, stack, size, capacity):
    replay = Replay(
        capacity=capacity, lanes=1, observation_size=stack * size, goal_size=0, action_size=1,
        stack=stack, observation_type=np.uint8,
    )  # fmt: skip
    stacks = iter(literal_stacks(lengths, stack, size))
    nothing = np.zeros(0)
    for length in lengths:
        replay.begin(0, np.array(next(stacks), np.uint8), nothing)
        for t in range(length):
            replay.add(
                0, action=np.zeros(1), reward=1.0, duration=1, terminated=t == length - 1,
                observation=np.array(next(stacks), np.uint8), goal=nothing,
            )  # fmt: skip
    return replay


@given(
    lengths=st.lists(st.integers(1, 7), min_size=1, max_size=6),
    stack=st.integers(1, 4),
    n=st.integers(1, 4),
)
@settings(deadline=None, max_examples=40)
def test_stacks_of_images_are_those_that_were_seen(lengths, stack, n):
    replay = filled_with_images(lengths, stack, 2, 64)
    assert replay.observations.shape == (1, 64, 2)  # each frame once
    stacks = literal_stacks(lengths, stack, 2)
    np.testing.assert_array_equal(replay.current()[0][0], stacks[-1])
    first = 0  # row of the episode's first observation
    for length in lengths:
        for t in range(length):
            window = replay.windows(np.zeros(1, np.int64), np.array([first + t]), n)
            expected = [stacks[first + min(t + k, length)] for k in range(n + 1)]
            np.testing.assert_array_equal(window.observations[0], expected)
        first += length + 1


def test_what_the_ring_has_lost_of_an_episode_is_its_first_frame_left():
    replay = filled_with_images([9], 3, 1, 6)  # frames 4 to 9 are left
    assert sorted(replay.observations[0, :, 0].tolist()) == [4, 5, 6, 7, 8, 9]
    window = replay.windows(*at(replay, 4), 2)
    np.testing.assert_array_equal(window.observations[0], [[4, 4, 4], [4, 4, 5], [4, 5, 6]])
    np.testing.assert_array_equal(replay.current()[0][0], [7, 8, 9])


def test_two_hundred_thousand_images_take_less_than_four_gigabytes():
    frame = 64 * 64 * 3
    replay = Replay(
        capacity=200_000, lanes=1, observation_size=3 * frame, goal_size=0, action_size=6, stack=3,
        observation_type=np.uint8,
    )  # fmt: skip
    assert sum(ring.nbytes for ring in replay._rings().values()) < 2.5e9
