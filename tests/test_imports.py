"""What is imported only when it is needed."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from greenroom.actors._imports import imported

if TYPE_CHECKING:
    from pathlib import Path

SEARCH = """
import sys, trio
from greenroom.actors import AddMessage, Agent, CreateSession, Principal, SearchContext, open_greenroom

async def main():
    async with open_greenroom(sys.argv[1], embedder="none") as runtime:
        alice = Agent(runtime, Principal(agent_id="alice"))
        session = (await alice.ask(CreateSession(purpose="talk"))).session_id
        await alice.ask(AddMessage(session_id=session, content="the first of many"))
        before = "numpy" in sys.modules
        found = await alice.ask(SearchContext(session_id=session, query="frist of many"))
        print(before, "numpy" in sys.modules, found.message_count)

trio.run(main)
"""


def test_a_process_imports_numpy_at_its_first_search(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SEARCH, str(tmp_path / "data")], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True", "1"], done.stderr


def test_others_have_their_turns_while_a_module_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow_to_import.py").write_text(
        "import threading\ngoes_on = threading.Event()\ngoes_on.wait()\ndone = True\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    turns = 0
    for _ in imported("slow_to_import"):
        turns += 1
        module = sys.modules.get("slow_to_import")
        if turns >= 3 and module is not None and hasattr(module, "goes_on"):
            module.goes_on.set()
    assert turns >= 3
    assert sys.modules["slow_to_import"].done
    assert list(imported("slow_to_import")) == [], "it is there by now"
