"""Pictures from run directories and result files; no JAX is needed here."""

import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

# Okabe and Ito's colours, told apart by colour-blind readers.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

Curve = tuple[np.ndarray, np.ndarray]  # environment steps, return


def draw_curve(evaluations: Sequence[Mapping[str, Any]], path: Path, title: str) -> None:
    """The evaluations of one run: the mean of each, and its single episodes as dots."""
    figure, axes = _canvas(1)
    axis = axes[0]
    steps = [row["environment_steps"] for row in evaluations]
    for step, row in zip(steps, evaluations, strict=True):
        returns = row["eval/returns"]
        axis.plot([step] * len(returns), returns, ".", color="0.8", markersize=4)
    axis.plot(steps, [row["eval/return"] for row in evaluations], "o-", color=COLOURS[0])
    _finish(figure, axis, title)
    axis.annotate(
        f"{evaluations[-1]['eval/return']:.0f}", (steps[-1], evaluations[-1]["eval/return"]),
        textcoords="offset points", xytext=(-4, 6), ha="right",
    )  # fmt: skip
    figure.savefig(path, dpi=120)


def draw_results(folder: Path, path: Path) -> list[str]:
    """One panel per task of a suite under `results/`, one line per agent: mean over its seeds;
    returns the tasks.
    """
    tasks = {task.name: read_results(task) for task in sorted(folder.iterdir()) if task.is_dir()}
    agents = sorted({agent for runs in tasks.values() for agent in runs})
    figure, axes = _canvas(len(tasks))
    for axis, (task, runs) in zip(axes, tasks.items(), strict=False):
        for agent, curves in sorted(runs.items()):
            colour = COLOURS[agents.index(agent) % len(COLOURS)]
            for steps, returns in curves:
                axis.plot(steps, returns, color=colour, alpha=0.35, linewidth=1)
            steps, mean = mean_curve(curves)
            axis.plot(steps, mean, color=colour, label=f"{agent} ({len(curves)})", linewidth=2)
        axis.legend(title="agent (seeds)", loc="lower right", fontsize=8, title_fontsize=8)
        _finish(figure, axis, task)
    figure.savefig(path, dpi=120)
    return list(tasks)


def read_results(task: Path) -> dict[str, list[Curve]]:
    """The curves of each agent in `results/<suite>/<task>/`, one per seed."""
    curves: dict[str, list[Curve]] = defaultdict(list)
    for file in sorted(task.glob("*-seed*.csv")):
        with file.open() as lines:
            rows = list(csv.DictReader(lines))
        steps = np.array([float(row["environment_steps"]) for row in rows])
        returns = np.array([float(row["return"]) for row in rows])
        curves[file.stem.rpartition("-seed")[0]].append((steps, returns))
    return dict(curves)


def mean_curve(curves: Sequence[Curve]) -> Curve:
    """The mean over seeds, where every seed has data."""
    last = min(steps[-1] for steps, _ in curves)
    grid = next(steps[steps <= last] for steps, _ in curves)
    return grid, np.mean([np.interp(grid, steps, returns) for steps, returns in curves], axis=0)


def _canvas(panels: int) -> tuple[Any, list[Any]]:
    """A figure with one axis per panel, three to a row; no window is ever opened."""
    from matplotlib.figure import Figure

    columns = min(panels, 3)
    rows = -(-panels // columns)
    figure = Figure(figsize=(4.2 * columns, 3.2 * rows), layout="constrained")
    axes = list(np.ravel(figure.subplots(rows, columns)))
    for unused in axes[panels:]:
        unused.set_visible(False)
    return figure, axes


def _finish(figure: Any, axis: Any, title: str) -> None:
    axis.set_title(title, fontsize=10)
    axis.set_xlabel("environment steps")
    axis.set_ylabel("return of greedy episodes")
    axis.margins(y=0.12)
    axis.set_ylim(bottom=min(0, axis.get_ylim()[0]))
    axis.xaxis.set_major_formatter(lambda steps, _: f"{steps / 1000:g}k" if steps else "0")
    axis.spines[["top", "right"]].set_visible(False)


def collect_frame(
    agent: np.ndarray, objects: np.ndarray, left: np.ndarray, order: Sequence[int]
) -> np.ndarray:
    """A frame of Collect: the objects still there, the agent, and the order asked for."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3, 3.2), dpi=80, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    axis = figure.subplots()
    draw_collect(axis, agent, objects, left)
    axis.set_title(" then ".join("ABC"[index] for index in order), fontsize=10)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def places_frame(
    mass: np.ndarray, places: np.ndarray, order: Sequence[int], passed: int
) -> np.ndarray:
    """A frame of Point-Mass, drawn as Collect is: side 0.6 m mapped to the unit square."""
    left = np.array([index not in order[:passed] for index in range(3)])
    return collect_frame(mass / 0.6 + 0.5, places / 0.6 + 0.5, left, order)


def draw_collect(axis: Any, agent: np.ndarray, objects: np.ndarray, left: np.ndarray) -> None:
    """The world of Collect on an axis; what is collected is pale."""
    for letter, place, there in zip("ABC", objects, left, strict=True):
        colour = "0.15" if there else "0.85"
        axis.plot(*place, "s", markersize=15, color="white", markeredgecolor=colour)
        axis.annotate(letter, place, ha="center", va="center", color=colour, fontsize=10)
    axis.plot(*agent, "o", markersize=9, color="black")
    axis.set(xlim=(-0.05, 1.05), ylim=(-0.05, 1.05), aspect="equal", xticks=[], yticks=[])
