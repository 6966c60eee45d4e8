"""One story: a tool on the Python SDK works and ends, one on the TypeScript SDK goes on, and nothing is lost.

Each client starts a server of its own on the same folder, as AI tools do.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio
from conformance import node
from harness import PATIENCE, PROGRAM, clean_environment
from support.several import relay_statistics

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

TYPESCRIPT = Path(__file__).parent / "conformance" / "typescript_client.cjs"

# Reads [tool, arguments] as JSON, one a line, and prints each answer as one, as the TypeScript program does.
PYTHON = """
import json, os, sys
import trio
from mcp import Client, StdioServerParameters
from mcp_types import Implementation

async def main(name, command, *arguments):
    server = StdioServerParameters(command=command, args=list(arguments), env=dict(os.environ))
    async with Client(server, client_info=Implementation(name=name, version="1")) as client:
        while line := await trio.to_thread.run_sync(sys.stdin.readline):
            tool, given = json.loads(line)
            result = await client.call_tool(tool, given)
            print(result.model_dump_json(by_alias=True), flush=True)

trio.run(main, *sys.argv[1:])
"""


class Tool:
    """A client in a process of its own."""

    def __init__(self, process: trio.Process) -> None:
        self.process = process
        self._printed = b""

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return what a tool answers, which must not be a failure."""
        assert self.process.stdin is not None
        await self.process.stdin.send_all(json.dumps([tool, arguments]).encode() + b"\n")
        result = json.loads(await self._line())
        assert not result.get("isError"), result
        answer: dict[str, Any] = result["structuredContent"]
        return answer

    async def _line(self) -> bytes:
        assert self.process.stdout is not None
        while b"\n" not in self._printed:
            more = await self.process.stdout.receive_some()
            assert more, "the client ended"
            self._printed += more
        line, _, self._printed = self._printed.partition(b"\n")
        return line

    async def end(self) -> None:
        """End as a tool does that is closed."""
        assert self.process.stdin is not None
        await self.process.stdin.aclose()
        assert await self.process.wait() == 0


@asynccontextmanager
async def running(home: Path, client: list[str], name: str) -> AsyncIterator[Tool]:
    command = [*client, name, *PROGRAM, "serve", "--data", str(home / "store")]
    async with trio.open_nursery() as nursery:
        start: Callable[..., Any] = trio.run_process
        process = await nursery.start(
            lambda task_status: start(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                check=False,
                env=clean_environment(home),
                task_status=task_status,
            )
        )
        try:
            with trio.fail_after(PATIENCE):
                yield Tool(process)
        finally:
            nursery.cancel_scope.cancel()


async def works(tool: Tool) -> dict[str, Any]:
    """Work as an agent does that plans a release; return what was answered."""
    started = await tool.call("start_session", purpose="Ship release 2")
    session = started["session_id"]
    await tool.call(
        "record_context",
        files_accessed=[{"path": "CHANGELOG.md", "importance": 0.9}],
        recent_searches=["what broke release 1"],
        decisions=[{"what": "no release on a Friday", "why": "nobody is there"}],
        workflow_state={"task": "release 2", "step": "notes", "next": ["tag it"]},
    )
    said = await tool.call("add_message", session_id=session, content="the notes are half done")
    await tool.call("update_session", session_id=session, state={"tests": "green", "n": 10**20})
    stored = await tool.call("store_memory", content="releases are tagged by hand", key="tagging")
    return {"session": session, "message": said["message_id"], "memory": stored["memory_id"]}


@pytest.mark.promise("passport.taken-up", "passport.held")
@pytest.mark.parametrize("ending", ["closed", "killed"])
async def test_what_a_python_client_left_a_typescript_client_goes_on_with(
    tmp_path: Path, ending: str
) -> None:
    typescript = node.script("typescript-client", TYPESCRIPT)
    async with running(tmp_path, [sys.executable, "-c", PYTHON], "claude-code") as first:
        left = await works(first)
        if ending == "closed":
            await first.end()
        else:  # with the server that it started
            for process in ((await relay_statistics(tmp_path))["owner_pid"], first.process.pid):
                os.kill(process, signal.SIGKILL)
            await first.process.wait()
    async with running(tmp_path, typescript, "cursor-vscode") as second:
        began = await second.call("start_session")
        assert (began["session_id"], began["restored"]) == (left["session"], True)
        assert (began["tool"], began["taken_up"]["from_tool"]) == ("cursor", "claude-code")
        assert "Took up 'Ship release 2' from claude-code" in began["notice"]
        context = began["context"]
        files = [(file["path"], file["importance"]) for file in context["files_accessed"]]
        assert files == [("CHANGELOG.md", 0.9)]
        assert [search["query"] for search in context["recent_searches"]] == ["what broke release 1"]
        assert [(made["what"], made["why"]) for made in context["decisions"]] == [
            ("no release on a Friday", "nobody is there")
        ]
        assert context["workflow_state"]["next"] == ["tag it"]
        assert [memory["memory_id"] for memory in context["memories"]] == [left["memory"]]
        assert "Next: tag it" in began["briefing"]
        read = await second.call("get_session", session_id=left["session"])
        assert read["session"]["state"]["tests"] == "green"
        assert [(each["message_id"], each["content"]) for each in read["messages"]] == [
            (left["message"], "the notes are half done")
        ]
        found = await second.call("retrieve_memory", key="tagging")
        assert [each["content"] for each in found["memories"]] == ["releases are tagged by hand"]
        await second.call("add_message", session_id=left["session"], content="the other half, too")
        await second.end()
