"""The example of a program with Greenroom in it: written against the page of the services alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent.parent / "docs" / "examples" / "embedding"
METHODS = {
    "sessions": "create_session get_session append_event update_status get_state set_state",
    "memory": "add_memory get_memory update_memory delete_memory list_versions search_memories",
}


@pytest.mark.promise("service.database", "service.by-key")
@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_it_prints_what_its_page_shows_on_either_loop(loop: str, folder: Path) -> None:
    shown = (EXAMPLE / "README.md").read_text().partition("```text\n")[2].partition("```")[0]
    done = subprocess.run(
        [sys.executable, EXAMPLE / "help_desk.py", loop, folder], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == shown


def test_it_uses_every_method_of_the_page() -> None:
    source = (EXAMPLE / "help_desk.py").read_text()
    missing = [
        f"{service}.{method}"
        for service, methods in METHODS.items()
        for method in methods.split()
        if f"{service}.{method}(" not in source
    ]
    assert missing == []
