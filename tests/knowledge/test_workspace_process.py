"""Workspaces of real servers: which folders a client gives them, several on one folder, and their ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from harness import server_process

from greenroom.testing import McpClient


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A workspace of many files."""
    folder = (tmp_path / "code").resolve()
    folder.mkdir()
    for number in range(200):
        (folder / f"part_{number}.py").write_text(f"def part_{number}():\n    return 'anchor {number}'\n")
    return folder


async def search(client: McpClient, **arguments: Any) -> dict[str, Any]:
    return await client.call("search_code_semantic", **{"query": "anchor", **arguments})


async def watched(client: McpClient) -> dict[str, Any]:
    """Search until the index is as the folder is."""
    while (found := await search(client))["freshness"]["state"] != "watching":
        assert found["success"], found
    return found


@pytest.mark.quick
@pytest.mark.promise("code.one-keeper", "code.freshness", "code.killed")
async def test_two_servers_index_one_folder_once_and_one_goes_on_when_the_other_is_killed(
    tmp_path: Path, code: Path
) -> None:
    flags = ("--embedder", "none", "--workspace", str(code))
    async with server_process(tmp_path, *flags) as first:
        await first.client.initialize()
        assert (await search(first.client))["success"]
        async with server_process(tmp_path, *flags) as second:
            await second.client.initialize()
            said = (await search(second.client))["freshness"]
            assert said["state"] in {"indexing", "watching"}
            first.process.kill()
            await first.process.wait()
            found = await watched(second.client)
            assert found["freshness"]["indexed"] == found["freshness"]["of"] == 200
            (code / "more.py").write_text("def late(): return 'kelp'\n")
            while not (found := await search(second.client, query="kelp"))["results"]:
                pass
            assert [each["file_path"] for each in found["results"]] == ["more.py"]


@pytest.mark.promise("code.freshness")
async def test_a_server_that_indexes_nothing_says_how_old_the_index_is(tmp_path: Path, code: Path) -> None:
    flags = ("--embedder", "none", "--workspace", str(code))
    async with server_process(tmp_path, *flags, "--no-index") as server:
        await server.client.initialize()
        never = await search(server.client)
        assert (never["freshness"]["state"], never["freshness"]["as_of"]) == ("off", None)
    async with server_process(tmp_path, *flags) as server:
        await server.client.initialize()
        await watched(server.client)
        await server.client.end_input()
        await server.process.wait()
    async with server_process(tmp_path, *flags, "--no-index") as server:
        await server.client.initialize()
        while not (found := await search(server.client))["results"]:
            assert found["partial"]  # the index is being read
        assert (found["freshness"]["state"], found["freshness"]["indexed"]) == ("off", 200)
        assert found["freshness"]["as_of"]


@pytest.mark.promise("code.roots")
async def test_a_client_at_the_pipes_names_its_folders_once_until_it_says_that_they_changed(
    tmp_path: Path, code: Path
) -> None:
    other = (tmp_path / "other").resolve()
    other.mkdir()
    (other / "b.py").write_text("x = 2\n")
    async with server_process(tmp_path, "--embedder", "none") as server:
        client = server.client
        greeting = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"roots": {"listChanged": True}},
            "clientInfo": {"name": "claude-code", "version": "1"},
        }
        await client.request("initialize", greeting)
        await client.send({"method": "notifications/initialized"})

        async def read_first(path: str, folder: Path) -> dict[str, Any]:
            """Read a file where the client is asked for its roots before."""
            await client.send_call("read_file", {"path": path})
            asked = await client.receive()
            assert asked["method"] == "roots/list"
            await client.send({"id": asked["id"], "result": {"roots": [{"uri": folder.as_uri()}]}})
            answer = await client.receive()
            found: dict[str, Any] = json.loads(answer["result"]["content"][0]["text"])
            return found

        assert (await read_first("part_1.py", code))["files"][0]["total_lines"] == 2
        assert (await client.call("read_file", path="part_2.py"))["files"][0]["total_lines"] == 2
        await client.send({"method": "notifications/roots/list_changed"})
        assert (await read_first("b.py", other))["files"][0]["total_lines"] == 1
        assert (await client.call("read_file", path=f"{code}/part_1.py"))["code"] == "PERMISSION_DENIED"
