"""Do the heads work together? (Section 3.2, "Analysis of switching between affordance mappings")

The strip shows which head the planner picks at each decision of an episode. The histograms show,
over many start-goal configurations, the return of planning over the heads minus the return of one
head alone as the policy, from the same start to the same goal.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from grasp.curves import save, write_rows
from grasp.errors import UsageError
from grasp.figures import COLOURS
from grasp.session import LoadedAgent


class Switching(NamedTuple):
    """Returns from N start-goal configurations."""

    planned: np.ndarray  # [N] by the most probable head
    alone: np.ndarray  # [K, N] by each head alone

    def differences(self) -> np.ndarray:
        """[K, N]: above zero where planning over the heads earned more."""
        return self.planned - self.alone


def switching(agent: LoadedAgent, configurations: int = 1_000, seed: int = 0) -> Switching:
    """Play every configuration K + 1 times; many side by side, one compiled call for all."""
    K = heads_of(agent)
    planned = agent.evaluate(configurations, seed)
    alone = [agent.evaluate(configurations, seed, heads=head) for head in range(K)]
    starts = [[episode.seed for episode in played] for played in (planned, *alone)]
    assert all(same == starts[0] for same in starts)  # a difference of unlike starts says nothing
    return Switching(
        np.array([episode.returned for episode in planned]),
        np.array([[episode.returned for episode in played] for played in alone]),
    )


def heads_of(agent: LoadedAgent) -> int:
    """K; an agent without heads is refused."""
    K = getattr(agent.compiled.agent, "num_affordances", None)
    if K is None:
        raise UsageError(
            f"{agent.run.path} holds an agent without heads, "
            f"{type(agent.compiled.agent).__name__}; take a run of GA-4"
        )
    return K


def draw_histograms(tasks: Mapping[str, Switching], path: Path) -> list[Path]:
    """One row per task, one panel per head."""
    from matplotlib.figure import Figure

    K = max(len(found.alone) for found in tasks.values())
    figure = Figure(figsize=(2.9 * K, 2.4 * len(tasks) + 0.6), layout="constrained")
    axes = figure.subplots(len(tasks), K, squeeze=False)
    for line, (task, found) in zip(axes, tasks.items(), strict=True):
        differences = found.differences()
        most = max(float(np.abs(differences).max()), 1e-9)
        bins = list(np.linspace(-most, most, 42))
        for head, axis in enumerate(line):
            if head >= len(differences):
                axis.set_visible(False)
                continue
            one = differences[head]
            axis.hist(one, bins, color=COLOURS[head % len(COLOURS)])
            axis.axvline(0, color="black", lw=0.8)
            axis.set_title(
                f"head {head}: {one.mean():+.3g}, above 0 in {np.mean(one > 0):.0%}", fontsize=9
            )
            axis.spines[["top", "right"]].set_visible(False)
        line[0].set_ylabel(f"{task}\nconfigurations")
    figure.supxlabel("return of planning minus return of one head alone", fontsize=10)
    rows = (
        (task, index, round(float(found.planned[index]), 4), head, round(float(alone[index]), 4))
        for task, found in tasks.items()
        for head, alone in enumerate(found.alone)
        for index in range(len(found.planned))
    )
    header = ("task", "configuration", "planned", "head", "alone")
    return [*save(figure, path), write_rows(path.with_suffix(".csv"), header, rows)]


def draw_strip(
    episodes: Mapping[str, Sequence[int]], heads: int, path: Path, decisions: int = 150
) -> list[Path]:
    """The head picked at each of the first decisions of some episodes, a row for each head."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 0.7 + 1.2 * len(episodes)), layout="constrained")
    axes = figure.subplots(len(episodes), 1, squeeze=False)[:, 0]
    for axis, (label, chosen) in zip(axes, episodes.items(), strict=True):
        shown = np.asarray(chosen[:decisions])
        for head in range(heads):
            at = np.flatnonzero(shown == head)
            bars = [(int(step) - 0.5, 1) for step in at]
            axis.broken_barh(bars, (head - 0.4, 0.8), color=COLOURS[head % len(COLOURS)])
        axis.set(xlim=(-0.5, len(shown) - 0.5), ylim=(heads - 0.5, -0.5), yticks=range(heads))
        axis.set_ylabel("head")
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.set_title(
            f"{label}: changes of head {switches(shown)} in {len(shown)} decisions", fontsize=9
        )
        axis.spines[["top", "right"]].set_visible(False)
    axes[-1].set_xlabel("decision")
    rows = (
        (label, step, head) for label, all_ in episodes.items() for step, head in enumerate(all_)
    )
    table = write_rows(path.with_suffix(".csv"), ("episode", "decision", "head"), rows)
    return [*save(figure, path), table]


def switches(heads: Sequence[int] | np.ndarray) -> int:
    """How often the next decision is by another head."""
    return int(np.count_nonzero(np.diff(np.asarray(heads))))
