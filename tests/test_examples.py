"""The example projects: each runs, and prints what its page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from harness import clean_environment

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parent.parent / "docs" / "examples"
RUNS = [
    ("client", "notebook.py"),
    ("team", "review.py"),
    ("embedding", "help_desk.py", "asyncio"),
    ("embedding", "help_desk.py", "trio"),
]
METHODS = {
    "sessions": "create_session get_session append_event update_status get_state set_state",
    "memory": "add_memory get_memory update_memory delete_memory list_versions search_memories",
}
"""What the page of the services has, against which alone the embedding program was written."""


@pytest.mark.promise("service.database", "service.by-key")
@pytest.mark.parametrize(("project", "program", "arguments"), [(*run[:2], run[2:]) for run in RUNS])
def test_it_prints_what_its_page_shows(
    project: str, program: str, arguments: tuple[str, ...], tmp_path: Path
) -> None:
    page = (EXAMPLES / project / "README.md").read_text()
    shown = page.partition("```text\n")[2].partition("```")[0]
    scripts = Path(sys.executable).parent  # where `greenroom` is
    done = subprocess.run(
        [sys.executable, EXAMPLES / project / program, *arguments, "data"],
        cwd=tmp_path,
        env=clean_environment(tmp_path, PATH=f"{scripts}{os.pathsep}{os.environ['PATH']}"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(re.escape(shown).replace("…", ".*"), done.stdout), done.stdout


def test_each_project_is_run() -> None:
    assert {page.parent.name for page in EXAMPLES.glob("*/README.md")} == {run[0] for run in RUNS}


def test_the_embedding_program_uses_every_method_of_the_services() -> None:
    source = (EXAMPLES / "embedding" / "help_desk.py").read_text()
    missing = [
        f"{service}.{method}"
        for service, methods in METHODS.items()
        for method in methods.split()
        if f"{service}.{method}(" not in source
    ]
    assert missing == []
