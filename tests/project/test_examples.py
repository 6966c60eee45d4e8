"""The example projects: each runs, and prints what its page shows."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from harness import clean_environment

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = ROOT / "docs" / "examples"
RUNS = [
    ("client", "notebook.py"),
    ("team", "review.py"),
    ("embedding", "help_desk.py", "asyncio"),
    ("embedding", "help_desk.py", "trio"),
    ("web", "try_it.py", "1"),
    ("web", "try_it.py", "2"),
]
MOST_TOKENS = 5_000
LEAST_ANSWERED = 8
METHODS = {
    "sessions": "create_session get_session append_event update_status get_state set_state",
    "memory": "add_memory get_memory update_memory delete_memory list_versions search_memories",
}
"""What the page of the services has, against which alone the embedding program was written."""


def printed_by(project: str, program: str, arguments: Sequence[str], folder: Path) -> str:
    """Return what a program of an example prints; it must end well, and say nothing else."""
    scripts = Path(sys.executable).parent  # where `greenroom` is
    done = subprocess.run(
        [sys.executable, EXAMPLES / project / program, *arguments, "data"],
        cwd=folder,
        env=clean_environment(folder, PATH=f"{scripts}{os.pathsep}{os.environ['PATH']}"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def shown_by(project: str) -> str:
    return (EXAMPLES / project / "README.md").read_text().partition("```text\n")[2].partition("```")[0]


@pytest.mark.promise("service.database", "service.by-key")
@pytest.mark.parametrize(("project", "program", "arguments"), [(*run[:2], run[2:]) for run in RUNS])
def test_it_prints_what_its_page_shows(
    project: str, program: str, arguments: tuple[str, ...], tmp_path: Path
) -> None:
    printed = printed_by(project, program, arguments, tmp_path)
    assert re.fullmatch(re.escape(shown_by(project)).replace("…", ".*"), printed), printed


class Costs(NamedTuple):
    """The end of an agent's table, by ways: tokens of a question, and how many are answered."""

    tokens: list[int]
    answered: list[int]


def costs(table: str) -> Costs:
    *_, tokens, answered = table.splitlines()
    return Costs(
        [int(each.replace(",", "")) for each in re.findall(r"[\d,]+", tokens.partition("average")[2])],
        [int(each) for each in re.findall(r"(\d+) of 10", answered)],
    )


def test_metadata_first_answers_with_a_few_tokens_as_its_page_shows(tmp_path: Path) -> None:
    printed = printed_by("reading", "reader.py", [], tmp_path)
    shown, now = costs(shown_by("reading")), costs(printed)
    assert now.tokens == [pytest.approx(each, rel=0.25) for each in shown.tokens], printed
    assert now.answered == [pytest.approx(each, abs=1) for each in shown.answered], printed
    questions = printed.splitlines()[1:-2]
    assert max(int(line[60:78].rstrip(" +-").replace(",", "")) for line in questions) <= MOST_TOKENS
    assert now.answered[0] >= max(now.answered[2], LEAST_ANSWERED), printed


def test_the_pages_say_what_the_reading_agent_asks() -> None:
    program = runpy.run_path(str(EXAMPLES / "reading" / "reader.py"))
    texts = [path.read_text() for path in program["FILES"]]
    for question, sentence in program["QUESTIONS"].items():
        assert any(program["is_among"](sentence, [text]) for text in texts), question


@pytest.mark.parametrize("flags", [(), ("--vocabulary",)])
def test_who_asks_for_code_reads_a_third_at_most_of_what_whole_files_cost(
    flags: tuple[str, ...], tmp_path: Path
) -> None:
    printed = printed_by("code", "compare.py", flags, tmp_path)
    now = costs(printed)
    assert now.tokens[0] <= now.tokens[1] / 3, printed
    assert now.answered[0] >= max(now.answered[1], LEAST_ANSWERED), printed
    if not flags:
        shown = costs(shown_by("code"))
        assert now.tokens == [pytest.approx(each, rel=0.25) for each in shown.tokens], printed
        assert now.answered == [pytest.approx(each, abs=1) for each in shown.answered], printed


def test_the_source_has_the_lines_that_the_code_example_looks_for() -> None:
    for task in runpy.run_path(str(EXAMPLES / "code" / "tasks.py"))["TASKS"]:
        portion, _, path = task.path.partition("/")
        assert task.line in (ROOT / portion / "greenroom" / portion / path).read_text(), task


def test_each_project_is_run() -> None:
    assert {page.parent.name for page in EXAMPLES.glob("*/README.md")} == {
        "code",
        "reading",
        *(run[0] for run in RUNS),
    }


def test_the_embedding_program_uses_every_method_of_the_services() -> None:
    source = (EXAMPLES / "embedding" / "help_desk.py").read_text()
    missing = [
        f"{service}.{method}"
        for service, methods in METHODS.items()
        for method in methods.split()
        if f"{service}.{method}(" not in source
    ]
    assert missing == []
