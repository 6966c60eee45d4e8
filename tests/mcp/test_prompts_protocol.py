"""Prompts of real servers, asked by the SDK's client over every transport and in both eras."""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio
from harness import PATIENCE, principal
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference, TextContent
from support.sdk_clients import ERAS, TRANSPORTS, Mode, Transport, answer, served

from greenroom.actors import Agent, Principal
from greenroom.runtime import RuntimeClient
from greenroom.testing import MODERN_META, McpClient, mcp_client
from greenroom.transports import ListChanges

if TYPE_CHECKING:
    from support.agents import Enter

# The SDK's client over HTTP leaves streams that it has read enough of to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:Async generator 'http(x|core)2:ResourceWarning")

LIST_CHANGED = "notifications/prompts/list_changed"
STREAM = "io.modelcontextprotocol/subscriptionId"
OWN = "---\ndescription: greet\narguments:\n  - name: who\n    required: true\n---\nHello {{who}}"


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A workspace that git keeps."""
    folder = (tmp_path / "code").resolve()
    (folder / "src").mkdir(parents=True)
    (folder / "src/ship.py").write_text("def sink(ship):\n    return ship\n")
    who = ("-c", "user.name=ann", "-c", "user.email=ann@example.org")
    for arguments in (("init", "-q"), ("add", "."), (*who, "commit", "-q", "-m", "first")):
        subprocess.run(["git", *arguments], cwd=folder, check=True)
    (folder / "src/ship.py").write_text("def sink(ship):\n    return None\n")
    return folder


async def text_of(client: Client, name: str, **arguments: str) -> str:
    (message,) = (await client.get_prompt(name, arguments)).messages
    assert message.role == "user"
    assert isinstance(message.content, TextContent)
    return message.content.text


async def completed(client: Client, argument: str, value: str, **given: str) -> list[str]:
    reference = PromptReference(name="explain-code")
    asked = {"name": argument, "value": value}
    return (await client.complete(reference, asked, context_arguments=given or None)).completion.values


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.promise("prompts.protocol")
@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_prompts_are_listed_filled_and_completed_over_every_transport(
    tmp_path: Path, code: Path, transport: Transport, mode: Mode
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "greet.md").write_text(OWN)
    flags = ("--embedder", "none", "--workspace", str(code), "--prompts", str(own))
    async with served(tmp_path, transport, *flags) as connect, connect(mode) as client:
        listed = (await client.list_prompts()).prompts
        assert [each.name for each in listed][:2] == ["explain-code", "find-similar"]
        assert listed[-1].name == "greet"
        assert len(listed) == 9
        assert await text_of(client, "greet", who="{{who}}") == "Hello {{who}}"
        while (await answer(client, "symbol_search", symbol="sink"))["freshness"]["state"] != "watching":
            pass
        assert await completed(client, "path", "sr") == ["src/ship.py"]
        assert await completed(client, "symbol", "s", path="src/ship.py") == ["sink"]
        explained = await text_of(client, "explain-code", path="src/ship.py", symbol="sink")
        assert "Source: src/ship.py:1-2" in explained
        reviewed = await text_of(client, "review-changes")
        assert "-    return ship\n+    return None\n" in reviewed
        with pytest.raises(MCPError, match="there is no prompt 'nothing'"):
            await client.get_prompt("nothing")
        with pytest.raises(MCPError, match="path: give path or symbol"):
            await client.get_prompt("explain-code")


@pytest.mark.slow
@pytest.mark.promise("prompts.protocol")
async def test_over_the_relay_git_and_files_are_read_by_the_process_that_is_asked(
    tmp_path: Path, code: Path
) -> None:
    """The first server owns the folder; the second one alone may read the workspace."""
    async with (
        served(tmp_path, "stdio", "--embedder", "none") as connect_first,
        connect_first("legacy") as first,
        served(tmp_path, "stdio", "--embedder", "none", "--workspace", str(code)) as connect_second,
        connect_second("legacy") as second,
    ):
        assert "it is not known which folder" in await text_of(first, "review-changes")
        assert "+    return None" in await text_of(second, "review-changes")
        await answer(first, "store_memory", key="note", content="review ship: mind the pelicans")
        assert "pelicans" in await text_of(second, "review-changes", focus="ship pelicans")


# -- the list changes --------------------------------------------------------------------------------


@asynccontextmanager
async def visitor(
    runtime: RuntimeClient, lists: ListChanges, who: Principal | None = None, *, modern: bool = False
) -> AsyncIterator[McpClient]:
    async with mcp_client(lambda name: Agent(runtime, who or principal(name)), lists=lists) as client:
        if modern:
            client.meta = MODERN_META
        else:
            await client.initialize("ann")
        yield client


async def silence(client: McpClient) -> None:
    with trio.move_on_after(5):
        raise AssertionError(await client.receive())


@pytest.mark.promise("prompts.changed")
async def test_clients_of_the_handshake_era_are_told_that_the_list_changed(enter: Enter) -> None:
    lists = ListChanges()
    stranger = Principal(agent_id="s", scopes=frozenset({"knowledge:read"}))
    async with (
        enter() as at,
        visitor(at.runtime, lists) as ann,
        visitor(at.runtime, lists) as bob,
        visitor(at.runtime, lists, stranger) as other,
    ):
        for _ in range(2):
            lists.announce()
            for each in (ann, bob):
                assert await each.receive() == {"jsonrpc": "2.0", "method": LIST_CHANGED}
        await silence(other)
        for _ in range(3):
            lists.announce()
        assert (await ann.receive())["method"] == LIST_CHANGED
        await silence(ann)


@pytest.mark.quick
@pytest.mark.promise("prompts.changed")
@pytest.mark.parametrize("extra", [{}, {"odd": 1}])  # by ourselves, and by way of the SDK
async def test_streams_that_ask_for_it_are_told_that_the_list_changed(
    enter: Enter, extra: dict[str, Any]
) -> None:
    lists = ListChanges()
    async with enter() as at, visitor(at.runtime, lists, modern=True) as client:
        said = (await client.request("server/discover"))["result"]["capabilities"]
        assert said["prompts"] == {"listChanged": True}
        wanted = {"promptsListChanged": True, "toolsListChanged": True}
        hears = await client.send_request("subscriptions/listen", {"notifications": wanted, **extra})
        acknowledged = (await client.receive())["params"]
        assert acknowledged == {"_meta": {STREAM: hears}, "notifications": {"promptsListChanged": True}}
        await client.send_request("subscriptions/listen", {"notifications": {}, **extra})
        assert (await client.receive())["params"]["notifications"] == {}
        for _ in range(2):
            lists.announce()
            told = {"jsonrpc": "2.0", "method": LIST_CHANGED, "params": {"_meta": {STREAM: hears}}}
            assert await client.receive() == told
        await silence(client)
        await client.send(
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": hears}}
        )
        await trio.testing.wait_all_tasks_blocked()
        lists.announce()
        await silence(client)


@pytest.mark.promise("prompts.changed")
@pytest.mark.parametrize("modern", [False, True])
async def test_where_there_is_no_folder_of_prompts_the_list_is_said_not_to_change(
    enter: Enter, *, modern: bool
) -> None:
    async with enter() as at, mcp_client(lambda name: Agent(at.runtime, principal(name))) as client:
        if modern:
            client.meta = MODERN_META
            said = (await client.request("server/discover"))["result"]
            await client.send_request("subscriptions/listen", {"notifications": {"promptsListChanged": True}})
            assert (await client.receive())["params"]["notifications"] == {}
        else:
            said = await client.initialize("ann")
        assert said["capabilities"]["prompts"] == {"listChanged": False}


@pytest.mark.slow
@pytest.mark.promise("prompts.changed")
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_file_that_comes_is_heard_of_and_listed(tmp_path: Path, transport: Transport) -> None:
    own = tmp_path / "own"
    own.mkdir()
    heard = trio.Event()

    async def hear(message: Any) -> None:
        if json.loads(message.model_dump_json(by_alias=True)).get("method") == LIST_CHANGED:
            heard.set()

    async with (
        served(tmp_path, transport, "--embedder", "none", "--prompts", str(own)) as connect,
        connect("legacy", message_handler=hear) as client,
    ):
        assert len((await client.list_prompts()).prompts) == 8
        (own / "greet.md").write_text(OWN)
        with trio.fail_after(PATIENCE):
            await heard.wait()
        assert [each.name for each in (await client.list_prompts(cache_mode="bypass")).prompts][8:] == [
            "greet"
        ]
