"""The SDK is imported when a request first needs it, and nobody waits for that but who asked."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import trio
from harness import server_process
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from support.websocket_programs import answer, connected, server, until

from greenroom.testing import MODERN_META, McpClient

ARGUMENT = {"name": "session_id", "value": ""}
COMPLETION = {"ref": {"type": "ref/resource", "uri": "session://{session_id}"}, "argument": ARGUMENT}

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at the server's maps in /proc")


def has_the_sdk(process: int) -> bool:
    """Return whether the SDK's native half is in a process's memory."""
    return "pydantic_core" in Path(f"/proc/{process}/maps").read_text()


async def begin(client: McpClient, *, modern: bool) -> None:
    if modern:
        client.meta = MODERN_META
        await client.request("server/discover")
    else:
        await client.initialize()
        await client.request("ping")


@pytest.mark.promise("mcp.sdk-on-demand")
@pytest.mark.parametrize("modern", [False, True])
async def test_what_is_frequent_never_imports_the_sdk(tmp_path: Path, *, modern: bool) -> None:
    async with server_process(tmp_path) as served:
        client = served.client
        await begin(client, modern=modern)
        for method in ("tools/list", "resources/list", "resources/templates/list"):
            assert "result" in await client.request(method)
        await client.call("create_session", session_id="s", purpose="p")
        assert (await client.call("add_message", session_id="s", content="hello"))["success"]
        assert len((await client.call("list_sessions"))["sessions"]) == 1
        assert not (await client.call("get_memory", key="none"))["success"]
        assert "result" in await client.request("resources/read", {"uri": "session://s"})
        assert "error" in await client.request("tools/call", {"name": "no such tool"})
        if modern:
            heard = {"notifications": {"resourceSubscriptions": ["session://s"]}}
            await client.send_request("subscriptions/listen", heard)
        else:
            await client.send_request("resources/subscribe", {"uri": "session://s"})
        await client.receive()
        completed = await client.request("completion/complete", COMPLETION)
        assert completed["result"]["completion"]["values"] == ["s"]
        assert "result" in await client.request("prompts/list")
        refused = await client.request("prompts/get", {"name": "none of ours", "arguments": {}})
        assert refused["error"]["data"]["code"]
        assert not has_the_sdk(served.process.pid)
        odd = await client.request("tools/call", {"name": "get_memory", "arguments": {"key": "k"}, "odd": 1})
        assert "result" in odd
        assert has_the_sdk(served.process.pid)


@pytest.mark.promise("mcp.sdk-on-demand")
async def test_others_are_answered_while_the_sdk_is_imported(tmp_path: Path) -> None:
    async with (
        server(tmp_path) as (program, port),
        connected(f"ws://127.0.0.1:{port}/", mode="legacy") as first,
        connected(f"ws://127.0.0.1:{port}/", mode="legacy") as second,
        trio.open_nursery() as nursery,
    ):
        judged = trio.Event()

        async def be_judged() -> None:
            with pytest.warns(MCPDeprecationWarning), pytest.raises(MCPError, match="Method not found"):
                await first.set_logging_level("info")
            judged.set()

        nursery.start_soon(be_judged)
        await until(lambda: has_the_sdk(program.process.pid))  # its first part: the import is under way
        for number in range(3):
            assert (await answer(second, "set_memory", key=str(number), value=number))["version"] == 1
        assert not judged.is_set()
