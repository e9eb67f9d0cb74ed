"""Claims decided by data that decides them, and by nothing else."""

import numpy as np
import pytest

from grasp.claims import CLAIMS, GOOD, counted, findings, judged, versus
from grasp.environments import SUITE


def seeds(level, count=3, last=100):
    """Curves that rise from 0 to a level, a little apart."""
    steps = np.linspace(10, last, 10)
    return [(steps, steps / last * (level + seed)) for seed in range(count)]


def verdict(part, tasks):
    (found,) = [f for claim, f in findings(tasks) if part in claim.sentence]
    return found


def suite(ga=500, a=400, uct=500, td3=300, swap=()):
    tasks = {}
    for task in SUITE:
        agents = {"GA-4": seeds(ga), "A-8": seeds(a), "UCT-50": seeds(uct), "TD3": seeds(td3)}
        if task in swap:
            agents["TD3"] = seeds(900)
        tasks[task] = agents
    return tasks


EIGHT = "GA-4, UCT-50 and A-8 learn faster or end higher than TD3 on 8 of 9"


def test_nothing_is_decided_without_runs():
    assert [found.verdict for _, found in findings({})] == ["not enough runs"] * 15
    assert len(CLAIMS) == 14  # and switching


def test_eight_of_nine_is_counted():
    assert verdict(EIGHT, suite()).verdict == "holds"
    one = verdict(EIGHT, suite(swap=["cartpole-swingup"]))
    assert (one.verdict, "lost cartpole-swingup" in one.because) == ("holds", True)
    assert verdict(EIGHT, suite(swap=["cartpole-swingup", "fish-swim"])).verdict == "does not hold"


def test_two_lost_tasks_decide_even_where_others_are_missing():
    tasks = suite(swap=["cartpole-swingup", "fish-swim"])
    del tasks["walker-walk"]
    assert verdict(EIGHT, tasks).verdict == "does not hold"
    tasks = suite(swap=["cartpole-swingup"])
    del tasks["walker-walk"]
    found = verdict(EIGHT, tasks)
    assert found.verdict == "not enough runs"
    assert "GA-4 on walker-walk has 0 of 3 seeds" in found.because


def test_two_seeds_are_not_enough():
    tasks = suite()
    for task in SUITE:
        tasks[task]["UCT-50"] = seeds(500, count=2)
    assert verdict(EIGHT, tasks).verdict == "not enough runs"


def test_what_one_seed_says_is_no_verdict():
    tasks = {task: {"GA-4": seeds(500, count=1), "TD3": seeds(300)} for task in SUITE}
    (one,) = [one for one in judged(tasks) if "GA-4 alone" in one.claim.sentence]
    assert (one.verdict, one.so_far) == ("not enough runs", "holds")
    for task in SUITE:
        tasks[task]["GA-4"] = seeds(500)
    (one,) = [one for one in judged(tasks) if "GA-4 alone" in one.claim.sentence]
    assert (one.verdict, one.so_far) == ("holds", None)
    assert counted(judged(tasks)) == "1 hold, 1 do not, 13 have not enough runs"


def test_agents_are_compared_over_the_steps_that_both_have():
    # TD3 goes on for ten times as long; at GA-4's last step it is far below.
    tasks = {"walker-walk": {"GA-4": seeds(500), "TD3": seeds(1000, last=1000)}}
    assert versus(tasks, "walker-walk", "GA-4", "TD3").higher


def test_the_exception_is_an_exception_only_if_nobody_wins():
    part = "on cartpole-swingup no GrASP agent"
    tasks = suite(swap=["cartpole-swingup"])
    tasks["cartpole-swingup"]["GA-1"] = seeds(10)
    assert verdict(part, tasks).verdict == "holds"
    tasks["cartpole-swingup"]["UCT-50"] = seeds(950)
    found = verdict(part, tasks)
    assert (found.verdict, found.because) == ("does not hold", "UCT-50 did better than TD3")


def test_speed_and_end_are_told_apart():
    steps = np.linspace(10, 100, 10)
    early = [(steps, np.minimum(steps * 10, 300) + seed) for seed in range(3)]
    late = [(steps, np.where(steps < 90, 0, 400) + seed) for seed in range(3)]
    tasks = {"fish-swim": {"GA-4-depth-1": early, "GA-4-depth-2": late, "GA-4-depth-3": seeds(100)}}
    assert verdict("1 deep learns fastest", tasks).verdict == "holds"
    assert verdict("2 deep ends highest", tasks).verdict == "holds"
    tasks["fish-swim"]["GA-4-depth-1"] = late
    tasks["fish-swim"]["GA-4-depth-2"] = early
    assert verdict("1 deep learns fastest", tasks).verdict == "does not hold"
    assert verdict("2 deep ends highest", tasks).verdict == "does not hold"


@pytest.mark.parametrize(("level", "expected"), [(100, "holds"), (200, "does not hold")])
def test_random_affordances_must_stay_below_a_quarter(level, expected):
    agents = {"GA-4": seeds(500), "A-8": seeds(500), "RND-GA-4": seeds(level), "RND-A-8": seeds(9)}
    assert verdict("random affordances", {"fish-swim": agents}).verdict == expected


@pytest.mark.parametrize(
    ("gains", "ga1", "expected"),
    [
        ({0: 5.0, 1: 1.0}, 100, "holds"),
        ({0: 5.0, 1: -1.0}, 100, "does not hold"),
        ({0: 5.0, 1: -1.0}, 900, "not enough runs"),  # GA-4 does not beat GA-1 there
    ],
)
def test_planning_must_beat_every_head_where_more_heads_help(gains, ga1, expected):
    tasks = {"finger-spin": {"GA-4": seeds(500), "GA-1": seeds(ga1)}}
    (_, found) = findings(tasks, {"finger-spin": gains})[-1]
    assert found.verdict == expected


def test_as_good_means_that_intervals_overlap():
    assert verdict("UCT-50 is about as good", suite()).verdict == "holds"
    assert verdict("UCT-50 is about as good", suite(uct=900)).verdict == "does not hold"
    assert set(GOOD) == {"GA-4", "UCT-50", "A-8"}
