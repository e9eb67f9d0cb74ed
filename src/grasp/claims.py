"""The paper's claims, each computed from runs: holds, does not hold, or not enough runs.

A comparison of two agents on a task counts only where each has at least three seeds; what fewer
seeds say so far is a second, weaker finding. Both are read up to the steps that all their seeds
have reached. "Ends higher" is the mean over seeds of the last tenth of evaluations, "learns faster"
the mean height of the curve up to there. No claim is softened where it fails, and none is decided
by an agent, task or seed that is not there.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from grasp.curves import Tasks
from grasp.environments import SUITE
from grasp.statistics import bootstrap_interval, final_scores, interquartile_mean, mean_heights

Verdict = Literal["holds", "does not hold", "not enough runs"]
MINIMUM = 3  # seeds of each agent on a task
Gains = Mapping[str, Mapping[int, float]]  # task, head: mean return of planning beyond the head's
HIERARCHICAL = ("collect", "point-mass", "ant-gather")


class Finding(NamedTuple):
    verdict: Verdict
    because: str


Test = Callable[[Tasks, int], Finding]  # of tasks, where each agent has so many seeds


@dataclasses.dataclass(frozen=True)
class Claim:
    place: str  # in the paper
    sentence: str
    test: Test


class Judgement(NamedTuple):
    claim: Claim
    verdict: Verdict
    so_far: Verdict | None  # by one seed of each agent or more, where the verdict lacks runs
    because: str  # of what was said last


class Versus(NamedTuple):
    """One agent against another on a task, or why there is no comparison."""

    missing: str = ""
    higher: bool = False
    faster: bool = False
    text: str = ""


def versus(tasks: Tasks, task: str, agent: str, other: str, least: int = MINIMUM) -> Versus:
    """The comparison over the steps that all seeds of both have."""
    agents = tasks.get(task, {})
    for name in (agent, other):
        seeds = len(agents.get(name, ()))
        if seeds < least:
            return Versus(missing=f"{name} on {task} has {seeds} of {least} seeds")
    mine, theirs = agents[agent], agents[other]
    until = min(steps[-1] for steps, _ in (*mine, *theirs))
    ends = [float(final_scores(curves, until).mean()) for curves in (mine, theirs)]
    heights = [float(mean_heights(curves, until).mean()) for curves in (mine, theirs)]
    return Versus(
        higher=ends[0] > ends[1],
        faster=heights[0] > heights[1],
        text=f"{task} {ends[0]:.3g} and {ends[1]:.3g}",
    )


Rule = Callable[[Versus], bool]


def better(found: Versus) -> bool:
    """The paper's "learn faster or achieve better asymptotic performance"."""
    return found.higher or found.faster


def higher(found: Versus) -> bool:
    return found.higher


def faster(found: Versus) -> bool:
    return found.faster


def beats(agents: Sequence[str], other: str, on: Sequence[str], least: int, rule: Rule) -> Test:
    """Every one of the agents is better than the other on at least so many of the tasks."""

    def test(tasks: Tasks, seeds: int) -> Finding:
        lost, won, missing = [], [], []
        for task in on:
            found = [versus(tasks, task, agent, other, seeds) for agent in agents]
            if any(not one.missing and not rule(one) for one in found):
                lost.append(task)
            elif any(one.missing for one in found):
                missing += [one.missing for one in found if one.missing][:1]
            else:
                won.append(task)
        said = f"won {_named(won)}, lost {_named(lost)}, of {len(on)}"
        if len(won) >= least:
            return Finding("holds", said)
        if len(on) - len(lost) < least:
            return Finding("does not hold", said)
        return Finding("not enough runs", f"{said}; {missing[0]}{_more(missing)}")

    return test


def fails(agents: Sequence[str], other: str, task: str) -> Test:
    """None of the agents is better than the other on the task."""

    def test(tasks: Tasks, seeds: int) -> Finding:
        found = {agent: versus(tasks, task, agent, other, seeds) for agent in agents}
        winners = [agent for agent, one in found.items() if not one.missing and better(one)]
        missing = [one.missing for one in found.values() if one.missing]
        if winners:
            return Finding("does not hold", f"{_named(winners)} did better than {other}")
        if missing:
            return Finding("not enough runs", f"{missing[0]}{_more(missing)}")
        return Finding("holds", f"none of {_named(list(agents))} did better than {other}")

    return test


def all_of(*tests: Test) -> Test:
    """One that fails decides; else one that lacks runs."""

    def test(tasks: Tasks, seeds: int) -> Finding:
        found = [one(tasks, seeds) for one in tests]
        for verdict in ("does not hold", "not enough runs", "holds"):
            same = [one for one in found if one.verdict == verdict]
            if same:
                return Finding(verdict, "; ".join(dict.fromkeys(one.because for one in same)))
        raise AssertionError("no test was given")

    return test


def as_good(agent: str, other: str, on: Sequence[str], scale: float | int) -> Test:
    """The 95 % intervals of the interquartile means over all tasks overlap."""

    def test(tasks: Tasks, seeds: int) -> Finding:
        missing = [
            found.missing
            for task in on
            if (found := versus(tasks, task, agent, other, seeds)).missing
        ]
        if missing:
            return Finding("not enough runs", f"{missing[0]}{_more(missing)}")
        said, intervals = [], []
        for name in (agent, other):
            strata = [final_scores(tasks[task][name]) / scale for task in on]
            low, high = bootstrap_interval(strata)
            intervals.append((low, high))
            said.append(
                f"{name} {interquartile_mean(np.concatenate(strata)):.3f} ({low:.3f} to {high:.3f})"
            )
        (low, high), (other_low, other_high) = intervals
        verdict: Verdict = "holds" if low <= other_high and other_low <= high else "does not hold"
        return Finding(verdict, " and ".join(said))

    return test


def barely_learns(agent: str, learner: str, task: str) -> Test:
    """The agent ends below a quarter of what the learner reaches."""

    def test(tasks: Tasks, seeds: int) -> Finding:
        found = versus(tasks, task, learner, agent, seeds)
        if found.missing:
            return Finding("not enough runs", found.missing)
        curves = tasks[task]
        until = min(steps[-1] for steps, _ in (*curves[agent], *curves[learner]))
        ends = [float(final_scores(curves[name], until).mean()) for name in (agent, learner)]
        verdict: Verdict = "holds" if ends[0] < ends[1] / 4 else "does not hold"
        return Finding(verdict, f"{agent} ends at {ends[0]:.3g}, {learner} at {ends[1]:.3g}")

    return test


def beats_its_heads(tasks: Tasks, seeds: int, switching: Gains) -> Finding:
    """On every task where GA-4 ends higher than GA-1, planning earned more than each head alone."""
    if not switching:
        return Finding("not enough runs", "no histograms of switching were given")
    missing, lost, won = [], [], []
    for task, heads in switching.items():
        found = versus(tasks, task, "GA-4", "GA-1", seeds)
        if found.missing:
            missing.append(found.missing)
        elif found.higher:
            (won if all(gain > 0 for gain in heads.values()) else lost).append(task)
    said = f"so on {_named(won)}, not on {_named(lost)}"
    if lost:
        return Finding("does not hold", said)
    if missing or not won:
        because = f"{missing[0]}{_more(missing)}" if missing else "GA-4 beats GA-1 on none of them"
        return Finding("not enough runs", f"{said}; {because}")
    return Finding("holds", said)


def _named(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "none"


def _more(missing: Sequence[str]) -> str:
    return f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""


GOOD = ("GA-4", "UCT-50", "A-8")
CLAIMS: tuple[Claim, ...] = (
    Claim("Section 3.1", "GA-4 and A-8 learn faster and end higher than TD3 on all option tasks",
          all_of(beats(("GA-4", "A-8"), "TD3", HIERARCHICAL, 3, faster),
                 beats(("GA-4", "A-8"), "TD3", HIERARCHICAL, 3, higher))),
    Claim("Section 3.1", "GA-4 beats A-8 on 2 of 3 option tasks",
          beats(("GA-4",), "A-8", HIERARCHICAL, 2, higher)),
    Claim("Section 3.1", "GA-4 learns faster than GA-1 on all option tasks",
          beats(("GA-4",), "GA-1", HIERARCHICAL, 3, faster)),
    Claim("Section 3.2", "GA-4, UCT-50 and A-8 learn faster or end higher than TD3 on 8 of 9 tasks",
          beats(GOOD, "TD3", SUITE, 8, better)),
    Claim("Section 3.2", "GA-4 alone learns faster or ends higher than TD3 on 8 of 9 tasks",
          beats(("GA-4",), "TD3", SUITE, 8, better)),
    Claim("Section 3.2", "on cartpole-swingup no GrASP agent improves over TD3",
          fails(("GA-1", *GOOD), "TD3", "cartpole-swingup")),
    Claim("Section 3.2", "GA-4 beats A-8 on 8 of 9 tasks",
          beats(("GA-4",), "A-8", SUITE, 8, higher)),
    Claim("Section 3.2", "on finger-spin A-8 beats GA-4",
          beats(("A-8",), "GA-4", ("finger-spin",), 1, higher)),
    Claim("Section 3.2", "GA-4 ends higher than GA-1 on at least 4 of 9 tasks",
          beats(("GA-4",), "GA-1", SUITE, 4, higher)),
    Claim("Section 3.2", "UCT-50 is about as good as the complete tree (intervals overlap)",
          as_good("UCT-50", "GA-4", SUITE, 1000)),
    Claim("Appendix", "planning 1 deep learns fastest on fish-swim",
          all_of(*(beats(("GA-4-depth-1",), f"GA-4-depth-{d}", ("fish-swim",), 1, faster)
                   for d in (2, 3)))),
    Claim("Appendix", "planning 2 deep ends highest on fish-swim",
          all_of(*(beats(("GA-4-depth-2",), f"GA-4-depth-{d}", ("fish-swim",), 1, higher)
                   for d in (1, 3)))),
    Claim("Appendix", "random affordances do not learn on fish-swim (below a quarter of learned)",
          all_of(barely_learns("RND-GA-4", "GA-4", "fish-swim"),
                 barely_learns("RND-A-8", "A-8", "fish-swim"))),
    Claim("Appendix", "hard copies of the targets do better than soft updates",
          beats(("GA-4-hard-targets",), "GA-4-soft-targets", ("point_mass-easy",), 1, better)),
)  # fmt: skip


def findings(
    tasks: Tasks, switching: Gains | None = None, seeds: int = MINIMUM
) -> list[tuple[Claim, Finding]]:
    """All claims, that of switching last, decided where each agent has so many seeds."""
    last = Claim(
        "Section 3.2",
        "planning over the heads beats each head alone where GA-4 beats GA-1",
        lambda tasks, seeds: beats_its_heads(tasks, seeds, switching or {}),
    )
    return [(claim, claim.test(tasks, seeds)) for claim in (*CLAIMS, last)]


def judged(tasks: Tasks, switching: Gains | None = None) -> list[Judgement]:
    """All claims as a reader wants them: decided, or what there is so far."""
    decided, so_far = findings(tasks, switching), findings(tasks, switching, seeds=1)
    return [
        Judgement(claim, one.verdict, weak.verdict, weak.because)
        if one.verdict == "not enough runs"
        else Judgement(claim, one.verdict, None, one.because)
        for (claim, one), (_, weak) in zip(decided, so_far, strict=True)
    ]


def counted(judgements: Iterable[Judgement]) -> str:
    """As in: 2 hold, 1 does not, 9 have not enough runs."""
    verdicts = [one.verdict for one in judgements]
    return (
        f"{verdicts.count('holds')} hold, {verdicts.count('does not hold')} do not, "
        f"{verdicts.count('not enough runs')} have not enough runs"
    )
