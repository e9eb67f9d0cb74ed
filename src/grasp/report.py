"""One page of a set of runs: the paper's claims, curves, scores, pictures, configurations.

The HTML page holds its pictures and style in itself and asks nothing of a network. The Markdown
page has the same claims and scores and no pictures.
"""

import base64
import html
import json
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from grasp.claims import MINIMUM, Gains, counted, judged
from grasp.curves import Tasks, draw_curves, final_rows
from grasp.results import Record, by_task, notes
from grasp.statistics import bootstrap_interval, final_scores

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem;
       color: #1a1a1a; background: #fff }
table { border-collapse: collapse; margin: 1rem 0; width: 100% }
th, td { text-align: left; padding: .3rem .7rem; border-bottom: 1px solid #ddd;
         vertical-align: top }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums }
img { max-width: 100% }
.holds { color: #00694b; font-weight: 600 }
.fails { color: #a33e00; font-weight: 600 }
.open { color: #555 }
pre { overflow-x: auto; background: #f6f6f6; padding: .7rem }
.verdict, td:first-child { white-space: nowrap }
"""
CLASSES = {"holds": "holds", "does not hold": "fails", "not enough runs": "open"}
RULES = (
    f"Each comparison needs {MINIMUM} seeds of both agents; where there are fewer, the column "
    "after the verdict holds what they say so far, which may be chance. Agents are compared up to "
    "the steps that all their seeds have. The final score is the mean of the last tenth of "
    "evaluations; ± is the standard error over seeds; brackets hold the interquartile mean's 95 % "
    "bootstrap interval."
)
JUDGED = ("where", "claim", "verdict", "so far", "because")
GOALS = {"walker-walk": 800, "finger-spin": 800, "cartpole-swingup": 700}  # returns worth a wait
WAITING = ("task", "agent", "return", "seeds that reached it", "minutes", "environment steps")
WAITED = (
    "Minutes until an evaluation first returned that much, evaluations before it included; means "
    "over the seeds that got there. Minutes compare only what ran on the same machine."
)
PAPER = ("dm_control", "hierarchical", "pixels")  # suites
SETTINGS = "settings"  # the suite of runs with one setting changed (`grasp reproduce settings`)
ONE_CHANGED = "One setting changed at a time"
CHANGED = (
    "Returns of the last evaluation, mean over the seeds that follow in brackets, in their order; "
    "the first row is the default preset, every other one changes what its name says, of the "
    "default or of the older one that its name begins with."
)
SCORES = ("task", "agent", "seeds", "steps", "final score", "interquartile mean", "hours")


def suites(records: Iterable[Record]) -> dict[str, list[Record]]:
    """The records of each suite; the paper's first. Changed settings have a table of their own."""
    found: dict[str, list[Record]] = {}
    for record in records:
        if record.suite != SETTINGS:
            found.setdefault(record.suite, []).append(record)
    first = [name for name in PAPER if name in found]
    return {name: found[name] for name in (*first, *sorted(found.keys() - set(first)))}


def paper_tasks(records: Iterable[Record]) -> Tasks:
    """What the claims are computed from: runs of the paper's figures, no ablations."""
    figures = (*PAPER, "depth", "targets")
    return by_task(record for record in records if record.suite in figures)


def score_rows(records: Sequence[Record]) -> list[tuple[str, ...]]:
    """One row per task and agent."""
    tasks = by_task(records)
    success = {record.task for record in records if record.has_success}
    rows = []
    for task, agent, seeds, steps, mean, error, middle in final_rows(tasks):
        low, high = bootstrap_interval([final_scores(tasks[task][agent], steps)])
        hours = [r.facts.get("hours") for r in records if (r.task, r.label) == (task, agent)]
        known = [hour for hour in hours if hour is not None]
        spread = "" if np.isnan(error) else f" ± {_score(error, task in success)}"
        interval = f" [{_score(low, task in success)}, {_score(high, task in success)}]"
        rows.append(
            (
                task, agent, str(seeds), f"{steps:,}", _score(mean, task in success) + spread,
                _score(middle, task in success) + (interval if seeds > 1 else ""),
                f"{np.mean(known):.2g}" if known else "",
            )
        )  # fmt: skip
    return rows


def settings_table(records: Iterable[Record]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """What each setting does to each task: a row per setting, the default first."""
    found = by_task(record for record in records if record.suite == SETTINGS)
    labels = {label for agents in found.values() for label in agents}
    rows = []
    for label in sorted(labels):  # the default's name begins all others
        ends = [[curve[1][-1] for curve in agents.get(label, ())] for agents in found.values()]
        rows.append((label, *(_mean_of(each) for each in ends)))
    return ("setting", *found), rows


def _mean_of(scores: Sequence[float]) -> str:
    each = ", ".join(f"{score:.0f}" for score in scores)
    return f"{np.mean(scores):.0f} ({each})" if scores else ""


def minutes_rows(records: Iterable[Record]) -> list[tuple[str, ...]]:
    """How long agents took to what is worth waiting for; the quickest first. Runs that were made
    to be compared (`make waiting`) count alone where there are any.
    """
    records = list(records)
    made_for_it = any(record.suite == "waiting" for record in records)
    suite = "waiting" if made_for_it else "dm_control"
    waits: dict[tuple[str, str], list[tuple[float, float] | None]] = {}
    for record in records:
        seconds, goal = record.facts.get("seconds"), GOALS.get(record.task)
        steps, returns = record.curve
        if record.suite != suite or goal is None or seconds is None:
            continue
        at = int(np.argmax(returns >= goal)) if np.any(returns >= goal) else None
        wait = None if at is None else (seconds[at] / 60, float(steps[at]))
        waits.setdefault((record.task, record.label), []).append(wait)
    rows = []
    for (task, agent), each in waits.items():
        got = [wait for wait in each if wait is not None]
        minutes, steps = np.mean(got, axis=0) if got else (np.inf, np.inf)
        shown = (f"{minutes:.1f}", f"{steps:,.0f}") if got else ("", "")
        reached = f"{len(got)} of {len(each)}"
        row = (task, agent, str(GOALS[task]), reached, *shown)
        rows.append((list(GOALS).index(task), minutes, row))
    return [row for *_, row in sorted(rows)]


def _score(value: float | int, success: bool) -> str:
    return f"{value:.1%}" if success else f"{value:.1f}"


def as_html(records: Sequence[Record], title: str, switching: Gains | None = None) -> str:
    """The page."""
    found = judged(paper_tasks(records), switching)
    parts = [f"<h1>{html.escape(title)}</h1>", f"<p>{_about(records)}</p>"]
    parts += ["<h2>Claims of the paper</h2>", f"<p>{counted(found)}. {html.escape(RULES)}</p>"]
    rows = "".join(
        f"<tr><td>{one.claim.place}</td><td>{html.escape(one.claim.sentence)}</td>"
        f'<td class="verdict {CLASSES[one.verdict]}">{one.verdict}</td>'
        f'<td class="verdict">{one.so_far or ""}</td><td>{html.escape(one.because)}</td></tr>'
        for one in found
    )
    parts.append(f"<table>{_head(JUDGED)}{rows}</table>")
    for suite, mine in suites(records).items():
        parts += _suite(suite, mine)
    names, changed = settings_table(records)
    if changed:
        parts += [f"<h2>{ONE_CHANGED}</h2>", f"<p>{CHANGED}</p>", _table(names, changed)]
    if waits := minutes_rows(records):
        parts += ["<h2>How long one waits</h2>", f"<p>{WAITED}</p>", _table(WAITING, waits)]
    parts += ["<h2>How each run was made</h2>", *(_configuration(record) for record in records)]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{STYLE}</style></head>\n"
        f"<body>{chr(10).join(parts)}</body></html>\n"
    )


def _suite(suite: str, records: Sequence[Record]) -> list[str]:
    """Curves, notes, scores and the runs' own pictures."""
    tasks = by_task(records)
    success = {record.task for record in records if record.has_success}
    parts = [f"<h2>{html.escape(suite)}</h2>"]
    parts += [f"<p>{html.escape(sentence)}.</p>" for sentence in notes(records)]
    with tempfile.TemporaryDirectory() as folder:
        picture = draw_curves(tasks, Path(folder) / "curves.png", success=success)[0]
        parts.append(_image(picture, f"learning curves of {suite}"))
    parts.append(_table(SCORES, score_rows(records)))
    for record in records:
        for picture in pictures_of(record):
            name = f"{record.label} on {record.task}, seed {record.seed}: {picture.stem}"
            parts += [f"<h3>{html.escape(name)}</h3>", _image(picture, name)]
    return parts


def pictures_of(record: Record) -> list[Path]:
    """Where the heads' options lead, if `grasp look` has drawn it for the run or beside a file."""
    if record.source.is_dir():
        return sorted(record.source.glob("affordances.png"))
    return sorted(record.source.parent.glob(f"{record.label}-affordances.png"))[: record.seed == 0]


def _image(picture: Path, text: str) -> str:
    content = base64.b64encode(picture.read_bytes()).decode()
    return f'<img alt="{html.escape(text)}" src="data:image/png;base64,{content}">'


def _table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Two columns of words, then numbers."""
    cells = "".join(
        "<tr>" + "".join(_cell(index, value) for index, value in enumerate(row)) + "</tr>"
        for row in rows
    )
    return f"<table>{_head(names, numbers_from=2)}{cells}</table>"


def _cell(index: int, value: str) -> str:
    return f'<td class="number">{html.escape(value)}</td>' if index > 1 else f"<td>{value}</td>"


def _head(names: Sequence[str], numbers_from: int = 99) -> str:
    kinds = [' class="number"' if index >= numbers_from else "" for index in range(len(names))]
    cells = (f"<th{kind}>{name}</th>" for kind, name in zip(kinds, names, strict=True))
    return "<tr>" + "".join(cells) + "</tr>"


def _configuration(record: Record) -> str:
    name = html.escape(f"{record.label} on {record.task}, seed {record.seed}")
    command = html.escape(str(record.facts.get("command", "not recorded")))
    content = html.escape(json.dumps(record.facts.get("configuration", {}), indent=1))
    return (
        f"<details><summary>{name}: <code>{command}</code></summary><pre>{content}</pre></details>"
    )


def _about(records: Sequence[Record]) -> str:
    agents, tasks = {r.label for r in records}, {(r.suite, r.task) for r in records}
    hours = sum(record.facts.get("hours") or 0 for record in records)
    return (
        f"{len(records)} runs of {len(agents)} agents on {len(tasks)} tasks, {hours:.1f} hours of "
        "computing in all."
    )


def as_markdown(
    records: Sequence[Record], title: str, command: str, switching: Gains | None = None
) -> str:
    """Claims and scores, for a file that is committed."""
    found = judged(paper_tasks(records), switching)
    lines = [f"# {title}", "", f"Written by `{command}`; not edited by hand. {_about(records)}", ""]
    lines += ["## Claims of the paper", "", f"{counted(found)}. {RULES}", ""]
    rows = [
        (one.claim.place, one.claim.sentence, one.verdict, one.so_far or "", one.because)
        for one in found
    ]
    lines += _markdown_table(JUDGED, rows)
    for suite, mine in suites(records).items():
        lines += ["", f"## {suite}", ""]
        lines += [f"{sentence}.\n" for sentence in notes(mine)]
        lines += _markdown_table(SCORES, score_rows(mine))
    names, changed = settings_table(records)
    if changed:
        lines += ["", f"## {ONE_CHANGED}", "", CHANGED, "", *_markdown_table(names, changed)]
    if waits := minutes_rows(records):
        lines += ["", "## How long one waits", "", WAITED, "", *_markdown_table(WAITING, waits)]
    return "\n".join(lines) + "\n"


def _markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [
        "| " + " | ".join(header) + " |",
        "|" + "---|" * len(header),
        *("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows),
    ]
