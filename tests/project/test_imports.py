"""What is imported only when it is needed."""

from __future__ import annotations

import subprocess
import sys
from shutil import copytree
from typing import TYPE_CHECKING, Any

import pytest

from greenroom.actors.core.base.threads import import_in_thread

if TYPE_CHECKING:
    from pathlib import Path

FILL = """
import sys, trio
from greenroom.actors import Agent, Principal, StoreMemory, open_greenroom

async def main():
    async with open_greenroom(sys.argv[1], embedder="none") as runtime:
        alice = Agent(runtime, Principal(agent_id="a", user="alice"))
        await alice.ask(StoreMemory(content="the ferry leaves at seven", key="k"))

trio.run(main)
"""
WATCH = """
import sys, threading, trio
from greenroom.actors import (
    AddMessage, Agent, CreateSession, ImportMemories, MemorySearch, Principal, RecallContext, SearchContext,
    StoreMemory, open_greenroom
)
from greenroom.actors.core.auth.namespaces import memory_address
from greenroom.actors.memories.requests.requests import VerifyIndex

heavy = {{"numpy", "rapidfuzz", "tokenizers", "dateparser"}}
by_thread = {{True: set(), False: set()}}

class Watch:
    def find_spec(self, name, path=None, target=None):
        by_thread[threading.current_thread() is threading.main_thread()].add(name.split(".")[0])

async def main():
    async with open_greenroom(sys.argv[1], **{options}) as runtime:
        sys.meta_path.insert(0, Watch())
        alice = Agent(runtime, Principal(agent_id="a", user="alice"))
        {action}
    print(*sorted(by_thread[True] & heavy), "numpy" in sys.modules)

trio.run(main)
"""
STORE = 'await alice.ask(StoreMemory(content="the ferry leaves at eight", key="l"))'
FIRST = {
    "a search": 'await alice.ask(MemorySearch(query="fery at sevn", include_debug=True))',
    "a search by time": 'await alice.ask(MemorySearch(time_expr="last week"))',
    "an exact search": 'await alice.ask(MemorySearch(query="ferry", mode="exact"))',
    "a recall": 'await alice.ask(RecallContext(task="take the ferry", max_tokens=500))',
    "a memory": STORE,
    "an import": """await alice.ask(ImportMemories(source='{"key": "m", "content": "the ferry"}'))
        await alice.ask(MemorySearch(query="ferry"))""",
    "a check": "await runtime.ask(memory_address('user:alice'), VerifyIndex(rebuild=True))",
    "a search in a session": """await alice.ask(CreateSession(purpose="talk", session_id="session_01234567"))
        await alice.ask(AddMessage(session_id="session_01234567", content="the ferry"))
        await alice.ask(SearchContext(session_id="session_01234567", query="fery"))""",
}

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
    for _ in import_in_thread("slow_to_import"):
        turns += 1
        module = sys.modules.get("slow_to_import")
        if turns >= 3 and module is not None and hasattr(module, "goes_on"):
            module.goes_on.set()
    assert turns >= 3
    assert sys.modules["slow_to_import"].done
    assert list(import_in_thread("slow_to_import")) == [], "it is there by now"


def test_what_numpy_imports_later_comes_with_it() -> None:
    program = """
import sys
from greenroom.actors.core.base.threads import import_in_thread
for _ in import_in_thread("greenroom.actors.search.index.compaction"):
    pass
before = set(sys.modules)
import numpy
numpy.unique(numpy.arange(3))
print(*set(sys.modules) - before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("filled") / "data"
    subprocess.run([sys.executable, "-c", FILL, str(folder)], check=True)
    return folder


@pytest.mark.parametrize(
    ("first", "options"),
    [
        *((first, {"embedder": "none"}) for first in FIRST),
        *((first, {"embedder": "static"}) for first in ("a search", "a memory", "an import")),
        ("a search", {"embedder": "none", "languages": ["german"]}),
    ],
    ids=str,
)
def test_what_takes_long_to_import_is_imported_beside_the_loop(
    tmp_path: Path, filled: Path, first: str, options: dict[str, Any]
) -> None:
    folder = str(copytree(filled, tmp_path / "data"))
    script = WATCH.format(options=options, action=FIRST[first])
    done = subprocess.run([sys.executable, "-c", script, folder], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"], done.stderr
