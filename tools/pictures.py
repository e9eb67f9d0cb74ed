"""The pictures of docs/concepts.md, into docs/pictures: `python tools/pictures.py`."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import grasp
from grasp.figures import COLOURS, draw_outlook

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
GREY, INK = "0.55", "0.15"


def decision(path: Path, starts: int = 100) -> None:
    """One decision of collect-GA-4: the world with the heads' options, and its tree. Of several
    starts the one at which the heads differ most, so that there is something to see.
    """
    agent = grasp.load("collect-GA-4")
    reset = agent.world.environment.reset
    plans = [agent.plan(reset(seed=start, options={})[0]) for start in range(starts)]
    start = int(np.argmax([np.std(plan.actions, axis=0).sum() for plan in plans]))
    plan, (outlook,) = plans[start], agent.outlooks([{"seed": start}])
    figure = Figure(figsize=(9, 3.9), layout="constrained")
    world, tree = figure.subplots(1, 2, width_ratios=(1, 1.45))
    draw_outlook(world, outlook)
    order = " then ".join("ABC"[index] for index in outlook.scene.order)
    world.set_title("what each head proposes", fontsize=10)
    world.set_xlabel(f"asked for: {order}")
    tree.set(xlim=(0, 10), ylim=(-0.6, len(plan.q_values) - 0.4))
    tree.invert_yaxis()
    tree.axis("off")
    middle = (len(plan.q_values) - 1) / 2
    chosen = int(np.argmax(plan.policy))
    for head, (q_value, share) in enumerate(zip(plan.q_values, plan.policy, strict=True)):
        colour = COLOURS[head]
        taken = outlook.picked[head]
        takes = "takes nothing" if taken is None else f"takes {'ABC'[taken]}"
        wide = 3.5 if head == chosen else 1.5
        tree.plot([1.3, 3.3], [middle, head], color=colour, lw=wide, zorder=1)
        node(tree, 3.3, head, colour)
        said = f"head {head}: {takes}"
        tree.text(3.75, head, said, va="center", fontsize=10, color=INK)
        tree.text(6.75, head, f"Q = {q_value:.2f}", va="center", fontsize=10, color=INK)
        bar = 1.4 * float(share)
        tree.barh(head, bar, left=8.45, height=0.3, color=colour, zorder=2)
        tree.text(8.5 + bar, head, f"π = {share:.2f}", va="center", fontsize=9, color=INK)
    node(tree, 1.3, middle, "black")
    tree.text(1.1, middle, f"s\nV = {plan.value:.2f}", ha="right", va="center", fontsize=10)
    tree.set_title("what the planner makes of it; the thick edge is taken", fontsize=10)
    figure.savefig(path, dpi=130)


def learning(path: Path) -> None:
    """Two losses, and which parameters each of them may move."""
    figure = Figure(figsize=(9, 3.3), layout="constrained")
    axis = figure.subplots()
    axis.set(xlim=(0, 18), ylim=(-0.9, 7.1))
    axis.axis("off")
    box(axis, 0.2, 3.6, 3.2, "replay\nwindows of n decisions", GREY)
    box(axis, 5.2, 3.6, 4.6, "model\nencode, step, value", COLOURS[0])
    box(axis, 12.4, 3.6, 5.2, "model loss\nrewards and values come true", COLOURS[0])
    box(axis, 0.2, 0.6, 3.2, "affordances\nK heads", COLOURS[1])
    box(axis, 5.2, 0.6, 4.6, "planner\na tree over the heads", GREY)
    box(axis, 12.4, 0.6, 5.2, "affordance loss\nminus the root's value", COLOURS[1])
    arrow(axis, (3.4, 4.6), (5.2, 4.6), INK)
    arrow(axis, (9.8, 4.6), (12.4, 4.6), INK)
    arrow(axis, (3.4, 1.6), (5.2, 1.6), INK)
    arrow(axis, (9.8, 1.6), (12.4, 1.6), INK)
    arrow(axis, (7.5, 3.6), (7.5, 2.6), INK)
    axis.text(7.8, 3.1, "predicts, and stays as it is", fontsize=9, color=INK, va="center")
    back(axis, (15, 5.65), (7.5, 5.65), COLOURS[0], bend=0.12)
    back(axis, (15, 0.55), (1.8, 0.55), COLOURS[1], bend=-0.08)
    axis.text(11.25, 6.75, "gradient: into the model only", fontsize=9, color=COLOURS[0],
              ha="center")  # fmt: skip
    axis.text(8.4, -0.85, "gradient: through the planner, into the heads only", fontsize=9,
              color=COLOURS[1], ha="center")  # fmt: skip
    figure.savefig(path, dpi=130)


def options(path: Path) -> None:
    """An option is one decision that lasts."""
    figure = Figure(figsize=(9, 2.3), layout="constrained")
    axis = figure.subplots()
    axis.set(xlim=(-0.9, 12.4), ylim=(-1.5, 1.75))
    axis.axis("off")
    for step in range(12):
        axis.plot(step, 0, "o", color=GREY, ms=5, zorder=2)
        axis.plot([step, step + 1], [0, 0], color="0.8", lw=1, zorder=1)
    axis.text(-0.9, -0.55, "primitive steps", fontsize=9, color=GREY)
    spans = [(0, 5, "option b₁, n = 5", COLOURS[0]), (5, 7, "b₂, n = 2", COLOURS[1]),
             (7, 12, "b₃, n = 5", COLOURS[2])]  # fmt: skip
    for first, last, label, colour in spans:
        arrow(axis, (first, 0.1), (last, 0.1), colour, bend=-0.35)
        height = 0.55 + 0.15 * (last - first)
        axis.text((first + last) / 2, height, label, ha="center", fontsize=10, color=colour)
    for place in (0, 5, 7, 12):
        node(axis, place, 0, "black")
    formula = r"$r_1 + \gamma r_2 + \dots + \gamma^{n-1} r_n$, then $\gamma^n V(s')$"
    axis.text(5.6, -1.3, f"the agent sees the black points, and between them {formula}",
              fontsize=10, ha="center", color=INK)  # fmt: skip
    figure.savefig(path, dpi=130)


def node(axis: Any, x: float, y: float, colour: str) -> None:
    axis.plot(x, y, "o", ms=10, color=colour, zorder=3)


def box(axis: Any, x: float, y: float, width: float, label: str, colour: str) -> None:
    from matplotlib.patches import FancyBboxPatch

    style = "round,pad=0,rounding_size=0.25"
    axis.add_patch(FancyBboxPatch((x, y), width, 2, style, fc="white", ec=colour, lw=2, zorder=2))
    head, _, rest = label.partition("\n")
    middle = x + width / 2
    axis.text(middle, y + 1.3, head, ha="center", va="center", fontsize=11, weight="bold", zorder=3)
    axis.text(middle, y + 0.6, rest, ha="center", va="center", fontsize=9, zorder=3)


def arrow(
    axis: Any, start: tuple, end: tuple, colour: str, bend: float = 0, line: str = "-"
) -> None:
    shape = {"arrowstyle": "-|>", "color": colour, "lw": 1.6, "linestyle": line}
    shape |= {"connectionstyle": f"arc3,rad={bend}", "shrinkA": 0, "shrinkB": 0}
    axis.annotate("", end, start, arrowprops=shape, zorder=1)


def back(axis: Any, start: tuple, end: tuple, colour: str, bend: float = 0) -> None:
    """What flows back: dashed."""
    arrow(axis, start, end, colour, bend, line="--")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for draw in (decision, learning, options):
        draw(FOLDER / f"{draw.__name__}.png")
