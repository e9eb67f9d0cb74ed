"""Pictures of one run: its curve, its scenes and where its options lead; no JAX is needed here."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

# Okabe and Ito's colours, told apart by colour-blind readers.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def draw_curve(evaluations: Sequence[Mapping[str, Any]], path: Path, title: str) -> None:
    """The evaluations of one run: the share that succeeded where the task has success, else the
    mean return of each and its single episodes as dots.
    """
    figure, axes = canvas(1)
    axis = axes[0]
    steps = [row["environment_steps"] for row in evaluations]
    success = "eval/success" in evaluations[-1]
    scores = [row["eval/success" if success else "eval/return"] for row in evaluations]
    for step, row in zip(steps, evaluations, strict=True):
        if not success:
            returns = row["eval/returns"]
            axis.plot([step] * len(returns), returns, ".", color="0.8", markersize=4)
    axis.plot(steps, scores, "o-", color=COLOURS[0])
    finish(axis, title, success)
    last = scores[-1]
    axis.annotate(
        f"{last:.0%}" if success else f"{last:.0f}", (steps[-1], last),
        textcoords="offset points", xytext=(-4, 6), ha="right",
    )  # fmt: skip
    figure.savefig(path, dpi=120)


def canvas(panels: int) -> tuple[Any, list[Any]]:
    """A figure with one axis per panel, three to a row; no window is ever opened."""
    from matplotlib.figure import Figure

    columns = min(panels, 3)
    rows = -(-panels // columns)
    width = 4.2 * columns if panels > 1 else 5.6
    figure = Figure(figsize=(width, 3.2 * rows + 0.8), layout="constrained")
    axes = list(np.ravel(figure.subplots(rows, columns)))
    for unused in axes[panels:]:
        unused.set_visible(False)
    return figure, axes


def finish(axis: Any, title: str, success: bool) -> None:
    """Title, names and units of the axes of a learning curve."""
    axis.set_title(title, fontsize=10)
    axis.set_xlabel("environment steps")
    axis.set_ylabel(f"{'success' if success else 'return'} of greedy episodes", fontsize=9)
    axis.margins(y=0.12)
    if success:
        axis.set_ylim(-0.02, 1.05)
    else:
        axis.set_ylim(bottom=min(0, axis.get_ylim()[0]))
    unit, letter = (1e6, "M") if axis.get_xlim()[1] > 2e6 else (1e3, "k")
    axis.xaxis.set_major_formatter(lambda steps, _: f"{steps / unit:g}{letter}" if steps else "0")
    axis.spines[["top", "right"]].set_visible(False)


class Scene(NamedTuple):
    """A moment of a world with objects, in the unit square."""

    agent: np.ndarray  # [2]
    objects: np.ndarray  # [M, 2]
    left: np.ndarray  # [M] bool: still there
    order: Sequence[int]  # of the objects asked for; none where any marked A will do
    marks: str = "ABC"  # of the objects

    def wanted(self) -> list[int]:
        """The objects to take at the start: the first of the order, or all that are marked A."""
        any_of = [index for index, mark in enumerate(self.marks) if mark == "A"]
        return list(self.order[:1]) or any_of


class Outlook(NamedTuple):
    """A scene, and where each of the K heads' options leads from it."""

    scene: Scene
    paths: list[np.ndarray]  # K x [steps + 1, 2]
    picked: list[int | None]  # K: the object that the option takes


def scene_frame(scene: Scene) -> np.ndarray:
    """The scene as an image [height, width, 3]."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3, 3.2), dpi=80, layout="constrained")
    agg = FigureCanvasAgg(figure)
    draw_scene(figure.subplots(), scene)
    agg.draw()
    return np.asarray(agg.buffer_rgba())[..., :3].copy()


def draw_scene(axis: Any, scene: Scene) -> None:
    """The objects, pale once they are taken, the agent, and the order asked for."""
    for letter, place, there in zip(scene.marks, scene.objects, scene.left, strict=True):
        colour = "0.15" if there else "0.85"
        shape = "s" if scene.order or letter == "A" else "o"
        axis.plot(*place, shape, markersize=15, color="white", markeredgecolor=colour, zorder=2)
        axis.annotate(letter, place, ha="center", va="center", color=colour, fontsize=10)
    axis.plot(*scene.agent, "o", markersize=9, color="black", zorder=4)
    axis.set(xlim=(-0.05, 1.05), ylim=(-0.05, 1.05), aspect="equal", xticks=[], yticks=[])
    axis.set_title(" then ".join(scene.marks[index] for index in scene.order), fontsize=10)


def draw_outlook(axis: Any, outlook: Outlook) -> None:
    """A scene with the path of each head's option."""
    draw_scene(axis, outlook.scene)
    for head, places in enumerate(outlook.paths):
        shift = 0.008 * (head - (len(outlook.paths) - 1) / 2)  # paths in common stay seen
        along = np.asarray(places) + shift
        axis.plot(*along.T, color=COLOURS[head % len(COLOURS)], lw=2, zorder=3)
        axis.plot(*along[-1], "o", ms=5, color=COLOURS[head % len(COLOURS)], zorder=5)


def draw_outlooks(rows: dict[str, list[Outlook]], path: Path, title: str) -> None:
    """Trajectories of the option that each head picks, one colour per head, one panel per scene."""
    from matplotlib.figure import Figure

    columns = max(len(outlooks) for outlooks in rows.values())
    figure = Figure(figsize=(2.7 * columns, 2.9 * len(rows) + 0.7), layout="constrained")
    axes = figure.subplots(len(rows), columns, squeeze=False)
    for line, (label, outlooks) in zip(axes, rows.items(), strict=True):
        line[0].set_ylabel(label)
        for axis, outlook in zip(line, outlooks, strict=False):
            draw_outlook(axis, outlook)
    heads = range(len(next(iter(rows.values()))[0].paths))
    handles = [axes[0][0].plot([], [], color=COLOURS[h % len(COLOURS)], lw=2)[0] for h in heads]
    labels = [f"head {head}" for head in heads]
    figure.legend(handles, labels, loc="outside lower center", ncols=len(handles), frameon=False)
    figure.suptitle(title, fontsize=11)
    figure.savefig(path, dpi=130)
