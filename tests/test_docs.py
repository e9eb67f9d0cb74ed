"""The documentation: its programs run, its commands and flags exist, its links lead somewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import reference

import grasp
from grasp.agents import check_agent
from grasp.environments import check_task
from grasp.errors import UsageError
from grasp.experiments import EXPERIMENTS
from grasp.runs import released_names

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SMALL = {"steps": 120, "evaluate_every": 60, "evaluation_episodes": 1, "num_envs": 1}


def blocks(page, language):
    return [code for kind, code in FENCE.findall(page.read_text()) if kind == language]


def commands(page):
    """Every grasp command of a page's shell blocks, as words without comments."""
    lines = "\n".join(blocks(page, "sh")).replace("\\\n", " ").splitlines()
    found = [line.partition(" #")[0].split() for line in lines]
    return [words[1:] for words in found if words[:1] == ["grasp"]]


def names(pages):
    return [page.name for page in pages]


WITH_PYTHON = [page for page in PAGES if blocks(page, "python")]
WITH_COMMANDS = [page for page in (*PAGES, ROOT / "README.md") if commands(page)]


@pytest.mark.parametrize("page", WITH_PYTHON, ids=names(WITH_PYTHON))
def test_the_programs_of_a_page_run(page, tmp_path, monkeypatch):
    """One after the other, as a reader would, with trainings cut short."""
    real = grasp.train

    def short(agent="GA-4", task="cartpole-swingup", **settings):
        return real(agent, task, **(settings | SMALL))

    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(ROOT / "examples")
    monkeypatch.setattr(grasp, "train", short, raising=False)
    written = {"__name__": "__main__"}
    for code in blocks(page, "python"):
        exec(compile(code, page.name, "exec"), written)


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=names(WITH_COMMANDS))
def test_commands_of_a_page_and_their_flags_exist(page):
    for command, *words in commands(page):
        assert command in reference.commands(), command
        passed_on = "train" if command in ("sweep", "reproduce") else command
        known = {flag.name.strip("`") for c in (command, passed_on) for flag in reference.flags(c)}
        known |= {f"--no-{name.removeprefix('--')}" for name in known}
        assert {word for word in words if word.startswith("--")} <= known | {"--help"}, words
        if command == "train" and not words[0].startswith('"'):
            check_agent(words[0])
        if command == "reproduce" and not words[0].startswith("-"):
            assert words[0] in EXPERIMENTS
        if "--task" in words and "$" not in words[words.index("--task") + 1]:
            check_task(words[words.index("--task") + 1])
        if command in ("lens", "evaluate", "look", "agents") and words and "/" not in words[0]:
            assert words[0] in (*released_names(), "RUN"), words


def test_a_command_that_is_not_there_would_be_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```sh\ngrasp train GA-4 --task walker-wakl  # a comment\n```\n")
    assert commands(page) == [["train", "GA-4", "--task", "walker-wakl"]]
    with pytest.raises(UsageError):
        test_commands_of_a_page_and_their_flags_exist(page)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.name)
def test_links_and_pictures_are_there(page):
    prose = FENCE.sub("", page.read_text())
    for target in re.findall(r"\]\(([^)]+)\)", prose):
        if not target.startswith("https://"):
            place = (page.parent / target.partition("#")[0]).resolve()
            assert place.exists(), target
            assert page.parent == ROOT or place.is_relative_to(ROOT / "docs"), target


def test_every_page_is_in_the_table_of_contents_once():
    listed = re.findall(r": ([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(listed) == names(PAGES)


def test_what_is_written_from_the_code_is_current():
    for page, content in reference.pages().items():
        assert page.read_text() == content, f"{page.name} is old: run `make reference`"


def test_every_flag_says_what_it_is():
    silent = [
        (c, f.name) for c in reference.commands() for f in reference.flags(c) if not f.meaning
    ]
    assert silent == []


def test_the_readers_environment_is_found_where_the_command_is_typed(tmp_path):
    """The page's own way: a file in the folder, and the installed command."""
    (tmp_path / "hover.py").write_text(blocks(ROOT / "docs" / "own-environment.md", "python")[0])
    program = (
        "import sys; sys.path[:] = [p for p in sys.path if p]; from grasp.__main__ import main; "
    )
    program += "sys.exit(main(['check-env', 'gym:hover:Hover-v0', '--steps', '20']))"
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        cwd=tmp_path, env=os.environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "nothing wrong was found" in done.stdout
