"""Folders of code, and servers that are asked about them at their pipes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import trio

from greenroom.testing import McpClient

WITHOUT_VECTORS = ("--embedder", "none", "--tools", "core,code")


def folder_of_code(home: Path, files: int = 5) -> Path:
    """Make a folder of small files, each with the word anchor and a function of its own."""
    folder = (home / "code").resolve()
    folder.mkdir(parents=True)
    for number in range(files):
        (folder / f"part_{number}.py").write_text(f"def part_{number}():\n    return 'anchor {number}'\n")
    return folder


async def search(client: McpClient, query: str = "anchor", **arguments: Any) -> dict[str, Any]:
    """Search the workspace."""
    return await client.call("search_code_semantic", query=query, **arguments)


async def watched(client: McpClient) -> dict[str, Any]:
    """Search until the index is as the folder is; return that answer."""
    while (found := await search(client))["freshness"]["state"] != "watching":
        assert found["success"], found
        await trio.lowlevel.checkpoint()
    return found


def paths(found: dict[str, Any]) -> set[str]:
    """Return which files were found."""
    return {each["file_path"] for each in found["results"]}
