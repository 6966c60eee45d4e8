"""Empty answers: each says why it is empty, with one of the codes of one table."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from support.agents import FAST

from greenroom.actors import Agent, Principal, Reach, open_greenroom
from greenroom.actors.base.emptiness import REASONS
from greenroom.actors.schemas.replies import ListReply
from greenroom.actors.workspace.keeper import open_workspaces
from greenroom.testing import McpClient, mcp_client
from greenroom.transports import TOOLS, Tool

NO_LISTS: Final = {
    **dict.fromkeys(
        ("create_session", "update_session", "reopen_session", "add_message", "record_context"), "it writes"
    ),
    **dict.fromkeys(("start_session", "restore_session", "migrate_session", "end_session"), "it writes"),
    **dict.fromkeys(("set_memory", "delete_memory", "store_memory", "update_memory", "rate_memory"), "it writes"),
    **dict.fromkeys(("set_preferences", "import_memories", "ingest_documents", "define_entities"), "it writes"),
    **dict.fromkeys(("record_workflow_step", "workflow_checkpoint"), "it writes"),
    **dict.fromkeys(("create_api_key", "rotate_api_key", "revoke_api_key", "erase_user"), "it writes"),
    "forget_memory": "it writes, and counts what fits its filters",
    "get_session": "it reads one session, whose messages are beside it",
    "get_session_context": "it reads one session",
    "get_memory": "it reads one memory, or refuses",
    "list_memory_versions": "a memory has versions, or there is none, which is refused",
    "read_file": "it reads files that are named, or refuses",
    "memory_stats": "it counts",
    "get_stats": "it counts",
    "health_check": "it names every part there is",
    "compress_text": "it answers a text",
    "export_memories": "it writes a file",
    "export_session": "it writes a file",
}
"""Tools that neither search nor list, and why not."""
LISTS: Final = {name: tool for name, tool in TOOLS.items() if issubclass(tool.answer, ListReply)}
NEEDED: Final[dict[str, Any]] = {
    "query": "zebra",
    "content": "zebra",
    "task": "zebra",
    "session_id": "plan",
    "sender": "tester",
    "start_time": "2020-01-01",
    "end_time": "2020-01-02",
    "start_date": "2020-01-01",
    "symbol": "zebra",
    "target": "zebra",
    "path": "empty.py",
    "pattern": "function zebra",
    "vendor_filter": "zebra",
    "chunk_ids": [1],
    "time_expr": "yesterday",
}
"""What is given for a parameter that has to be."""
REFUSED: Final = {"CORPUS_NOT_FOUND"}
"""What an empty store refuses instead: the corpus that is meant is not there."""


@asynccontextmanager
async def served(folder: Path, *files: str, **identity: Any) -> AsyncIterator[McpClient]:
    """Serve all tools on a store, and a workspace of some files."""
    code = (folder / "code").resolve()
    code.mkdir(exist_ok=True)
    (code / "empty.py").touch()
    for name in files:
        (code / name).parent.mkdir(exist_ok=True)
        (code / name).write_text(f"def {Path(name).stem}(depth):\n    return depth\n")
    own = (str(folder / "data"), str(folder / "secrets"))
    async with (
        open_greenroom(own[0], secrets=own[1], embedder="none", options=FAST) as runtime,
        open_workspaces(runtime) as kept,
    ):

        def agent_for(name: str) -> Agent:
            who = Principal(agent_id=name, user="ann", **identity)
            return Agent(runtime, who, reach=Reach(workspaces=(str(code),)), workspaces=kept)

        async with mcp_client(agent_for, profiles=("all",)) as client:
            await client.initialize()
            yield client


def arguments_of(tool: Tool) -> dict[str, Any]:
    """Return the least that a tool takes."""
    required = tool.listing()["inputSchema"].get("required", [])
    given = {name: NEEDED[name] for name in required}
    if tool.asks.__name__ == "MemorySearch" and not given:
        given = {"query": "zebra"} if "query" in tool.listing()["inputSchema"]["properties"] else given
    return given


def test_every_tool_that_searches_or_lists_can_say_why_it_is_empty() -> None:
    assert {name for name, tool in TOOLS.items() if tool.alias is None} - LISTS.keys() == NO_LISTS.keys()


@pytest.mark.parametrize("name", LISTS)
async def test_on_an_empty_store_it_is_said_that_nothing_is_stored(tmp_path: Path, name: str) -> None:
    async with served(tmp_path) as client:
        if "session_id" in arguments_of(LISTS[name]):
            await client.call("create_session", session_id="plan", purpose="plan")
        answer = await client.call(name, **arguments_of(LISTS[name]))
        if answer["success"]:
            assert answer["empty_because"]["code"] in REASONS
            print(name, answer["empty_because"])
        else:
            assert answer["code"] in REFUSED, answer
            print(name, answer)
