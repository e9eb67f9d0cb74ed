"""What the documentation takes from the code and from results/: `python tools/reference.py`.

docs/commands.md is written whole: each command is called up to the point where it would read its
flags, and tyro then says what they are. In other pages a table stands between two marks, as in
<!-- agents --> ... <!-- /agents -->.
"""

import csv
import json
import re
import unittest.mock
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tyro

from grasp.__main__ import USAGE, main
from grasp.curves import Anchor, anchors
from grasp.environments import PIXEL_TASKS, PIXELS, SUITE
from grasp.releases import HEADER, card_of, row, size
from grasp.results import Record, read_records
from grasp.runs import RELEASED, Run, released_names

ROOT = Path(__file__).parents[1]
DOCS, RESULTS = ROOT / "docs", ROOT / "results"
STEPS = 100_000  # of the environment, where suite tasks are compared
AGENT = {"train": ["GA-4"]}  # whose defaults are shown
HEAD = """\
# Commands

Written by `make docs` from the code; not edited by hand.

```
{usage}```

Exit codes: 0 fine, 2 bad input, 3 the environment broke its contract, 4 learning diverged, 5
damaged checkpoint, 71 not enough memory, 74 disk full or read-only, 130 and 143 stopped by a signal
after saving.
"""


class Flag(NamedTuple):
    name: str
    takes: str
    default: str
    meaning: str


class Asked(Exception):
    """A command is about to read its flags."""


def commands() -> list[str]:
    return list(dict.fromkeys(re.findall(r"^  grasp ([\w-]+)", USAGE, re.MULTILINE)))


def parser(command: str) -> Any:
    """The flags of a command as argparse would hold them."""

    def stop(kind: Any, **settings: Any) -> None:
        del settings["args"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            raise Asked(tyro.extras.get_parser(kind, **settings))

    with unittest.mock.patch.object(tyro, "cli", stop):
        try:
            main([command, *AGENT.get(command, [])])
        except Asked as asked:
            return asked.args[0]
    raise AssertionError(f"grasp {command} reads no flags")


def flags(command: str) -> list[Flag]:
    found = []
    for action in parser(command)._actions:
        if action.dest == "help":
            continue
        meaning, _, default = str(action.help).rpartition("(")
        default = re.sub(r"^default: |[\[\]')]", "", default)
        values = re.sub(r"\{None\}\|", "", action.metavar or "").strip("[]")
        takes = {"STR": "", "PATH": ""}.get(values, re.sub(r"(\w+) \[.*", r"\1 ...", values))
        if len(action.option_strings) == 2:  # a switch
            default, takes = "", f"or `{action.option_strings[1]}`"
            if "(default: True)" in str(action.help):
                default = "on"
        name = f"`{action.option_strings[0]}`" if action.option_strings else action.dest.upper()
        shown = "" if default == "None" or default.startswith("/") else default
        found.append(Flag(name, takes.replace("|", " or "), shown, meaning.strip()))
    return found


def section(command: str) -> str:
    about = " ".join(parser(command).description.split())
    title = " ".join(["grasp", command, *AGENT.get(command, [])])
    rows = [
        f"| {flag.name} {flag.takes} | {flag.default} | {flag.meaning} |".replace("  ", " ")
        for flag in flags(command)
    ]
    header = ["| argument | default | |", "|---|---|---|"]
    return "\n".join([f"\n## {title}\n", about, "", *header, *rows, ""])


def table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines).replace("| --- ", "|---")


def agents() -> str:
    found = [row(card_of(Run(RELEASED / name)), size(RELEASED / name)) for name in released_names()]
    return table(HEADER, found)


def hours() -> str:
    """How long the committed runs of the default preset took."""
    rows = []
    for record in read_records([RESULTS / "dm_control", RESULTS / "hierarchical"]):
        steps, spent = int(record.curve[0][-1]), record.facts.get("hours")
        if spent:
            agent, speed = f"{record.label}, seed {record.seed}", f"{steps / spent / 3600:,.0f}"
            rows.append((record.task, agent, f"{steps:,}", f"{spent:.2f}", speed))
    return table(("task", "agent", "steps", "hours", "steps per second"), rows)


def suite() -> str:
    """GA-4 and TD3 on the suite at 100,000 steps, mean over seeds, beside published scores; of the
    last agents, 100 fresh episodes.
    """
    records = read_records([RESULTS / "dm_control"])
    rows = []
    for task in SUITE:
        runs, baseline = (_runs(records, task, agent) for agent in ("GA-4", "TD3"))
        if not runs:
            continue
        published = {anchor.method: anchor for anchor in anchors(task)}
        rows.append(
            (
                task,
                _at_the_end(runs),
                _mean([_fresh(run) for run in runs]),
                _at_the_end(baseline),
                *(_mean(_of(published.get(method))) for method in ("TD3", "SAC", "TD-MPC2")),
                f"{_mean([60 * run.facts['hours'] for run in runs])} min",
            )
        )
    return table(
        (
            "task", "GA-4 (seeds)", "100 fresh episodes", "our TD3 (seeds)", "TD3, published",
            "SAC, published", "TD-MPC2, published", "GA-4 on one core",
        ),
        rows,
    )  # fmt: skip


def baseline() -> str:
    """TD3: ours, Stable-Baselines3's and the published one, after 100,000 steps."""
    records = read_records([RESULTS / "dm_control"])
    rows = []
    for task in SUITE:
        labels = ("TD3", "SB3-TD3-like-ours")
        ours, peer = (_runs(records, task, label) for label in labels)
        published = next(anchor for anchor in anchors(task) if anchor.method == "TD3")
        if ours:
            rows.append((task, _at_the_end(ours), _at_the_end(peer), _mean(_of(published))))
    header = ("task", "ours (seeds)", "Stable-Baselines3 (seeds)", "published (10 seeds)")
    return table(header, rows)


def pixels() -> str:
    """GA-4 from images at 100,000 steps beside published scores."""
    records = read_records([RESULTS / "pixels"])
    rows, methods = [], ("Dreamer", "CURL", "DrQ-v2", "DreamerV3")
    for task in PIXEL_TASKS:
        runs = _runs(records, task, "GA-4")
        name = task.removeprefix(PIXELS)
        published = {anchor.method: anchor for anchor in anchors(name, "pixels")}
        if runs:
            scores = [_mean(_of(published.get(method))) for method in methods]
            minutes = f"{_mean([60 * run.facts['hours'] for run in runs])} min"
            rows.append((name, _at_the_end(runs), *scores, minutes))
    return table(("task", "GA-4 (seeds)", *methods, "GA-4 on one core"), rows)


def heads() -> str:
    """One head, four and eight, in the fresh episodes of their last agents; and whether GA-4's
    heads are apart and in use there.
    """
    records = read_records([RESULTS / "dm_control"])
    rows = []
    for task in SUITE:
        one, four, fixed = (_runs(records, task, agent) for agent in ("GA-1", "GA-4", "A-8"))
        if not four:
            continue
        used = [_by_use(run) for run in four if _played(run)]
        apart = f"{np.mean([_apart(run) for run in four]):.2f}"
        shares = [f"{100 * share:.0f}" for share in np.mean(used, axis=0)] if used else []
        rows.append(
            (task, *(_played_by(runs) for runs in (one, four, fixed)), apart, " ".join(shares))
        )
    return table(
        ("task", "GA-1 (seeds)", "GA-4 (seeds)", "A-8 (seeds)", "heads apart", "% by each head"),
        rows,
    )


def _runs(records: Sequence[Record], task: str, agent: str) -> list[Record]:
    return [record for record in records if (record.task, record.label) == (task, agent)]


def _mean(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{np.mean(known):.0f}" if known else ""


def _at_the_end(runs: Sequence[Record]) -> str:
    """The mean of what whole runs returned at 100,000 steps, and how many they are."""
    ends = [dict(zip(*run.curve, strict=True)).get(STEPS) for run in runs]
    known = [end for end in ends if end is not None]
    return f"{_mean(known)} ({len(known)})" if known else ""


def _played_by(runs: Sequence[Record]) -> str:
    """The mean of the fresh episodes of the runs whose last agents played some, and how many."""
    known = [score for run in runs if (score := _fresh(run)) is not None]
    return f"{_mean(known)} ({len(known)})" if known else ""


def _fresh(run: Record) -> float | None:
    return _played(run).get("mean")


def _played(run: Record) -> dict[str, Any]:
    """100 greedy episodes of a run's last agent, where they were played."""
    file = run.source.with_name(f"{run.source.stem}-evaluation.json")
    return json.loads(file.read_text()) if file.exists() else {}


def _by_use(run: Record) -> list[float]:
    """The share of decisions by each head, in those episodes, the most used first."""
    shares = _played(run)["heads"]
    K = run.facts["configuration"]["agent"]["num_affordances"]
    return sorted((shares.get(str(head), 0.0) for head in range(K)), reverse=True)


def _of(anchor: Anchor | None) -> list[float | None]:
    return [] if anchor is None else [dict(zip(anchor.steps, anchor.means, strict=True)).get(STEPS)]


def _apart(run: Record) -> float:
    return run.facts["heads"]["affordances/head_spread"]


def options() -> str:
    """Wins on the option tasks, of the fresh episodes that the last agents played."""
    rows = []
    for file in sorted((RESULTS / "hierarchical").glob("*/*-seed*-greedy.json")):
        name = file.stem.removesuffix("-greedy")
        with file.with_name(f"{name}.csv").open() as lines:
            *_, last = csv.DictReader(lines)
        greedy = json.loads(file.read_text())
        sampled = file.with_name(f"{name}-sampled.json")
        drawn = f"{json.loads(sampled.read_text())['success']:.1%}" if sampled.exists() else ""
        counts = [f"{int(last[column]):,}" for column in ("decisions", "environment_steps")]
        agent = name.replace("-seed", ", seed ")
        looked = file.with_name(f"{name}-look.json")
        three = (
            f"{json.loads(looked.read_text())['all_three_objects']:.1%}" if looked.exists() else ""
        )
        wins = f"{greedy['success']:.1%}"
        rows.append((file.parent.name, agent, *counts, wins, drawn, three))
    header = ("task", "agent", "decisions", "steps", "greedy", "heads drawn", "three objects")
    return table(header, rows)


def bench() -> str:
    """The ratios of `make bench`, where they are committed."""
    file = ROOT / "bench" / "latest.json"
    if not file.exists():
        return "No measurement is committed yet; `make bench` makes one."
    rows = []
    for r in json.loads(file.read_text()):
        peer = "" if r["peer"] is None else f"{r['peer']:.4g}"
        ratio = "" if r["ratio"] is None else f"{r['ratio']:.2f}"
        rows.append((r["name"], f"{r['ours']:.4g}", peer, r["unit"], ratio))
    return table(("what", "ours", "theirs", "unit", "ratio (above 1: ours is better)"), rows)


def images() -> str:
    """What the image encoder learned under some settings (`tools/image_probe.py`)."""
    with (RESULTS / "ablations" / "images.csv").open() as file:
        rows = [
            (line["task"], line["scale"], line["random_shift"], line["learning_rate"],
             line["explained_1_4"], line["explained_4_4"])
            for line in csv.DictReader(file)
        ]  # fmt: skip
    return table(("task", "scale", "shift", "rate", "after a quarter", "at the end"), rows)


def filled(text: str, mark: str, content: str) -> str:
    pattern = rf"(<!-- {mark} -->\n).*?(<!-- /{mark} -->)"
    found, count = re.subn(pattern, lambda m: f"{m[1]}\n{content}\n\n{m[2]}", text, flags=re.DOTALL)
    assert count == 1, f"no page has the marks of {mark}"
    return found


def pages() -> dict[Path, str]:
    """Every page that has something of this, as it should be."""
    commands_page = HEAD.format(usage=USAGE) + "".join(section(name) for name in commands())
    agents_page, performance_page = DOCS / "agents.md", DOCS / "performance.md"
    readme_page, choices_page = ROOT / "README.md", DOCS / "choices.md"
    readme = filled(readme_page.read_text(), "suite", suite())
    readme = filled(readme, "heads", heads())
    readme = filled(readme, "pixels", pixels())
    choices = filled(choices_page.read_text(), "baseline", baseline())
    performance = filled(performance_page.read_text(), "hours", hours())
    pixels_page = DOCS / "pixels.md"
    return {
        DOCS / "commands.md": commands_page,
        choices_page: filled(choices, "images", images()),
        readme_page: filled(readme, "options", options()),
        agents_page: filled(agents_page.read_text(), "agents", agents()),
        performance_page: filled(performance, "bench", bench()),
        pixels_page: filled(pixels_page.read_text(), "pixels", pixels()),
    }


if __name__ == "__main__":
    for path, content in pages().items():
        path.write_text(content)
