"""Learning curves of many runs, as the paper draws them: mean and standard error over seeds; or
interquartile mean and bootstrap interval. Each picture is PNG and SVG, its numbers a CSV beside it.

No JAX is needed here.
"""

import csv
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from grasp.figures import COLOURS, canvas, finish
from grasp.statistics import (
    Band,
    Curve,
    final_scores,
    interquartile_band,
    interquartile_mean,
    mean_band,
    standard_error,
)

Statistic = Literal["mean", "interquartile"]
Tasks = Mapping[str, Mapping[str, Sequence[Curve]]]  # task, then agent, then seeds

# The paper's agents keep their colour in every figure.
STYLES: dict[str, tuple[str, str]] = {
    "TD3": ("#000000", "-"), "GA-4": (COLOURS[0], "-"), "A-8": (COLOURS[1], "-"),
    "GA-1": (COLOURS[2], "-"), "UCT-50": (COLOURS[3], "-"), "GA-2": (COLOURS[5], "--"),
    "GA-8": (COLOURS[0], ":"), "A-4": (COLOURS[4], "--"), "UCT-20": (COLOURS[3], "--"),
    "RND-GA-4": (COLOURS[0], "--"), "RND-A-8": (COLOURS[1], "--"),
}  # fmt: skip


MARKERS = {  # of published scores; others as TD3
    "TD3": "D", "SAC": "^", "TD-MPC2": "s", "Dreamer": "D", "CURL": "^", "DrQ-v2": "v",
    "DreamerV3": "s",
}  # fmt: skip


class Anchor(NamedTuple):
    """Published scores of a method on a task."""

    method: str
    steps: np.ndarray
    means: np.ndarray
    source: str


def anchors(task: str, observation: str = "state") -> list[Anchor]:
    """The published scores that are kept for a task."""
    with resources.files("grasp").joinpath("anchors.csv").open() as lines:
        rows = [
            row
            for row in csv.DictReader(lines)
            if row["task"] == task and row["observation"] == observation
        ]
    found = []
    for method in dict.fromkeys(row["method"] for row in rows):
        mine = [row for row in rows if row["method"] == method]
        steps, means = (
            np.array([float(row[name]) for row in mine]) for name in ("environment_steps", "mean")
        )
        found.append(Anchor(method, steps, means, mine[0]["source"]))
    return found


def save(figure: Any, path: Path) -> list[Path]:
    """The picture as PNG and as SVG."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pictures = [path.with_suffix(".png"), path.with_suffix(".svg")]
    figure.savefig(pictures[0], dpi=120)
    # The same numbers give the same bytes: no date, no random names.
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "grasp"}):
        figure.savefig(pictures[1], metadata={"Date": None})
    return pictures


def write_title(figure: Any, *lines: str) -> None:
    """Above all panels, broken to the figure's width."""
    letters = int(11 * figure.get_figwidth())  # of 11 points that fit
    broken = [part for line in lines if line for part in textwrap.wrap(line, letters)]
    figure.suptitle("\n".join(broken), fontsize=11)


def write_rows(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    """The numbers of a picture."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def draw_curves(
    tasks: Tasks,
    path: Path,
    *,
    statistic: Statistic = "mean",
    success: Iterable[str] = (),
    order: Sequence[str] = (),
    title: str = "",
) -> list[Path]:
    """One panel per task, one line per agent; `success` names the tasks whose scores are success,
    `order` the agents in the order of the legend.
    """
    successes = set(success)
    figure, axes = canvas(len(tasks))
    shown = [a for a in order if any(a in agents for agents in tasks.values())]
    shown += sorted({agent for agents in tasks.values() for agent in agents} - set(shown))
    bands: dict[tuple[str, str], Band] = {}
    published: set[str] = set()
    for axis, (task, agents) in zip(axes, tasks.items(), strict=False):
        for agent in shown:
            if agent in agents:
                bands[task, agent] = _draw_agent(axis, agent, agents[agent], statistic, shown)
        published |= _draw_anchors(axis, task)
        finish(axis, task, task in successes)
    _legend(figure, axes, tasks, shown, published)
    named = {
        "mean": "mean and standard error over seeds",
        "interquartile": "interquartile mean and 95 % bootstrap interval over seeds",
    }
    write_title(figure, title, named[statistic])
    rows = (
        (task, agent, len(tasks[task][agent]), int(band.steps[i]),
         *(round(float(part[i]), 4) for part in band[1:]))
        for (task, agent), band in bands.items() for i in range(len(band.steps))
    )  # fmt: skip
    header = ("task", "agent", "seeds", "environment_steps", statistic, "low", "high")
    return [*save(figure, path), write_rows(path.with_suffix(".csv"), header, rows)]


def _draw_agent(
    axis: Any, agent: str, curves: Sequence[Curve], statistic: Statistic, shown: Sequence[str]
) -> Band:
    band = mean_band(curves) if statistic == "mean" else interquartile_band(curves, resamples=500)
    colour, line = style(agent, shown)
    marker = "o" if len(band.steps) == 1 else ""
    axis.plot(band.steps, band.centre, line, marker=marker, color=colour, linewidth=1.8)
    if len(curves) > 1:
        axis.fill_between(band.steps, band.low, band.high, color=colour, alpha=0.18, linewidth=0)
    return band


def style(agent: str, shown: Sequence[str]) -> tuple[str, str]:
    """Colour and line; agents that the paper does not name take turns at what is left."""
    if agent in STYLES:
        return STYLES[agent]
    taken = {STYLES[name] for name in shown if name in STYLES}
    lines = ("-", "--", ":", "-.")
    free = [(c, line) for line in lines for c in COLOURS if (c, line) not in taken]
    others = [name for name in shown if name not in STYLES]
    return free[others.index(agent) % len(free)]


def _draw_anchors(axis: Any, task: str) -> set[str]:
    """Published scores inside the panel's steps, in grey; whose they are."""
    observation = "pixels" if task.startswith("pixels:") else "state"
    limits, drawn = axis.get_xlim(), set()
    for anchor in anchors(task.removeprefix("pixels:"), observation):
        inside = anchor.steps <= limits[1] * 1.001
        if inside.any():
            axis.plot(anchor.steps[inside], anchor.means[inside], **_mark(anchor.method))
            drawn.add(anchor.method)
    axis.set_xlim(limits)
    return drawn


def _mark(method: str) -> dict[str, Any]:
    marker = MARKERS.get(method, "D")
    return {"marker": marker, "linestyle": ":", "color": "0.5", "markersize": 4, "linewidth": 1}


def _legend(
    figure: Any, axes: Sequence[Any], tasks: Tasks, shown: Sequence[str], published: set[str]
) -> None:
    handles, labels = [], []
    for agent in shown:
        colour, line = style(agent, shown)
        counts = sorted({len(agents[agent]) for agents in tasks.values() if agent in agents})
        seeds = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        handles += axes[0].plot([], [], line, color=colour, linewidth=1.8)
        labels.append(f"{agent} ({seeds} seed{'' if counts == [1] else 's'})")
    for method in sorted(published):
        handles += axes[0].plot([], [], **_mark(method))
        labels.append(f"{method}, published")
    columns = min(len(labels), 2 * min(len(tasks), 3))
    figure.legend(
        handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=9
    )


def final_rows(tasks: Tasks) -> list[tuple[str, str, int, int, float, float, float]]:
    """Task, agent, seeds, steps, mean, standard error, interquartile mean of the last tenth of the
    evaluations that all seeds have.
    """
    rows = []
    for task, agents in tasks.items():
        for agent, curves in agents.items():
            until = min(steps[-1] for steps, _ in curves)
            scores = final_scores(curves, until)
            rows.append(
                (task, agent, len(curves), int(until), float(scores.mean()),
                 float(standard_error(scores)), float(interquartile_mean(scores)))
            )  # fmt: skip
    return rows


def draw_values(tasks: Tasks, path: Path, *, title: str = "") -> list[Path]:
    """Final scores over the value of one flag, for labels `<agent>-<flag>-<value>`: a line for
    each agent and flag.
    """
    figure, axes = canvas(len(tasks))
    rows = []
    for axis, (task, agents) in zip(axes, tasks.items(), strict=False):
        lines: dict[str, list[tuple[float, float, float, int]]] = {}
        for _, agent, seeds, _, mean, error, _ in final_rows({task: agents}):
            flag, value = _value(agent)
            lines.setdefault(flag, []).append((value, mean, error, seeds))
            rows.append((task, flag, value, seeds, round(mean, 4), round(error, 4)))
        for turn, (flag, points) in enumerate(sorted(lines.items())):
            values, means, errors, _ = map(np.array, zip(*sorted(points), strict=True))
            axis.errorbar(
                values, means, np.nan_to_num(errors), marker="o", capsize=3,
                color=COLOURS[turn % len(COLOURS)], label=flag,
            )  # fmt: skip
        axis.set_xscale("log")
        axis.set(title=task, xlabel="learning rate", ylabel="final return of greedy episodes")
        axis.set_ylim(bottom=min(0, axis.get_ylim()[0]))
        axis.spines[["top", "right"]].set_visible(False)
        figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", frameon=False)
    write_title(figure, title)
    header = ("task", "agent_and_flag", "value", "seeds", "mean", "standard_error")
    return [*save(figure, path), write_rows(path.with_suffix(".csv"), header, rows)]


def _value(label: str) -> tuple[str, float]:
    """`TD3-actor-learning-rate-1e-4` as the flag and 0.0001."""
    for cut in range(1, len(label)):
        if label[cut] == "-":
            try:
                return label[:cut], float(label[cut + 1 :])
            except ValueError:
                continue
    raise ValueError(f"{label} does not end in a value")
