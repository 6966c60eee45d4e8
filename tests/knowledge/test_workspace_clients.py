"""Workspaces for the SDK's own client over each transport: which folders it may read, and which not."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from core.test_keys_process import bearer, create
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ListRootsResult, Root, TextContent
from pydantic import FileUrl
from support.sdk_clients import TRANSPORTS, Transport, answer, listening, read, served
from support.workspaces import WITHOUT_VECTORS, folder_of_code

from greenroom.transports import websocket_client

# The SDK's client over HTTP leaves streams that it has read enough of to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:Async generator 'http(x|core)2:ResourceWarning")
everywhere = pytest.mark.parametrize("transport", TRANSPORTS)
FLAGS = WITHOUT_VECTORS
OUTSIDE = ("/", "/etc/passwd", "..", "../other/secret.py", "out/secret.py", "/proc/self/environ", "a\0b")


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """Return the code with which a tool refuses."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.structured_content
    (said,) = result.content
    assert isinstance(said, TextContent)
    return str(json.loads(said.text)["code"])


async def watched(client: Client) -> dict[str, Any]:
    while True:
        found = await answer(client, "search_code_semantic", query="anchor")
        if found["freshness"]["state"] == "watching":
            return found


@everywhere
@pytest.mark.promise("code.roots", "code.found", "code.resource")
async def test_a_client_searches_and_reads_its_workspace_and_nothing_outside(
    tmp_path: Path, transport: Transport
) -> None:
    code = folder_of_code(tmp_path)
    other = folder_of_code(tmp_path / "elsewhere")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/secret.py").write_text("def secret(): ...\n")
    (code / "out").symlink_to(tmp_path / "other")
    (code / "id_rsa").write_text("key\n")
    (code / "main.py").write_text("import part_1\n\n\ndef main():\n    return part_1.part_1()\n")
    async with (
        served(tmp_path, transport, *FLAGS, "--workspace", str(code)) as connect,
        connect("2026-07-28") as client,
    ):
        found = await watched(client)
        assert {each["file_path"] for each in found["results"]} == {
            f"part_{number}.py" for number in range(5)
        }
        assert (found["workspace"], found["freshness"]["indexed"]) == (str(code), 6)
        symbols = await answer(client, "symbol_search", symbol="part_1")
        assert [each["file_path"] for each in symbols["definitions"]] == ["part_1.py"]
        needed = await answer(client, "dependency_search", target="./main.py")
        assert [each["file_path"] for each in needed["dependencies"]] == ["part_1.py"]
        assert "def main()" in (await answer(client, "outline", path="main.py"))["outline"]
        assert len((await answer(client, "code_search", pattern="calls part_1"))["matches"]) == 1
        (file,) = (await answer(client, "read_file", path="main.py", symbol="main"))["files"]
        assert file["lines"] == [4, 5]
        corpora = (await answer(client, "list_corpora"))["corpora"]
        (name,) = [each["corpus"] for each in corpora if each.get("root") == str(code)]
        assert (await read(client, f"greenroom://workspace/{name}"))["freshness"]["state"] == "watching"
        for path in (*OUTSIDE, str(other), f"{other}/part_1.py", "id_rsa", f"{tmp_path}/store"):
            for tool, arguments in {
                "read_file": {"path": path},
                "search_code_semantic": {"query": "secret", "scope": path},
                "code_search": {"pattern": "regex secret", "scope": path},
                "outline": {"path": path},
                "dependency_search": {"target": path if "/" in path else f"./{path}"},
            }.items():
                said = await refused(client, tool, **arguments)
                assert said in {"PERMISSION_DENIED", "VALIDATION_ERROR"}, (tool, path)
            (file,) = (await answer(client, "read_file", paths=[path]))["files"]
            assert file["error"]
        filters = {"exclude_paths": ["..", "/", "/etc/*", "[", "*" * 100]}
        found = await answer(client, "search_code_semantic", query="anchor secret", filters=filters)
        assert "secret" not in str(found["results"])
        assert (await answer(client, "code_search", pattern="regex secret"))["matches"] == []


@everywhere
@pytest.mark.promise("code.roots")
async def test_folders_that_a_client_tells_count_over_standard_input_and_output_alone(
    tmp_path: Path, transport: Transport
) -> None:
    code = folder_of_code(tmp_path)

    async def roots(_: object) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=FileUrl(code.as_uri()))])

    async with served(tmp_path, transport, *FLAGS) as connect:
        async with connect("legacy", list_roots_callback=roots) as client:
            if transport == "stdio":
                (file,) = (await answer(client, "read_file", path="part_1.py"))["files"]
                assert file["total_lines"] == 2
            else:
                assert await refused(client, "read_file", path="part_1.py") == "VALIDATION_ERROR"
                assert await refused(client, "search_code_semantic", query="x", scope=str(code))
        async with connect("2026-07-28") as client:
            await answer(client, "start_session", workspace_path=str(code), tool_id="claude-code")
            if transport == "stdio":
                assert (await watched(client))["workspace"] == str(code)
            else:
                assert await refused(client, "read_file", path=f"{code}/part_1.py") == "VALIDATION_ERROR"


@pytest.mark.parametrize("transport", ["ws", "http"])
@pytest.mark.promise("code.policy", "code.roots")
async def test_over_sockets_code_is_for_keys_that_may_read_it(tmp_path: Path, transport: Transport) -> None:
    code = folder_of_code(tmp_path)
    often = ("--rate-limit", "1000000", "--rate-burst", "1000000")  # until a busy machine has read the code
    async with listening(tmp_path, transport, *FLAGS, *often, "--workspace", str(code)) as url:

        @asynccontextmanager
        async def connected(*scopes: str) -> AsyncIterator[Client]:
            shown = bearer(create(tmp_path, "--name", "n", "--scopes", ",".join(scopes)))
            async with httpx2.AsyncClient(headers=shown) as http:
                over_http = streamable_http_client(url, http_client=http)
                target = over_http if transport == "http" else websocket_client(url, headers=shown)
                async with Client(target) as client:
                    yield client

        async with connected("code:read") as client:
            assert (await watched(client))["workspace"] == str(code)
            (file,) = (await answer(client, "read_file", path="part_1.py"))["files"]
            assert file["total_lines"] == 2
        async with connected("memory:*", "knowledge:*", "sessions:*") as client:
            assert await refused(client, "read_file", path="part_1.py") == "PERMISSION_DENIED"
            assert await refused(client, "search_code_semantic", query="anchor") == "PERMISSION_DENIED"
            assert str(code) not in str(await answer(client, "list_corpora"))
