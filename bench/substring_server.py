"""The peer of `heavy`: a server on the SDK that keeps its items in a JSON file and scans it for substrings.

It does what most small memory servers do: each search reads the whole file and returns the items that
hold the query's text, in the order in which they were stored.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
LIMIT = 10


async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
    """Answer the one tool."""
    return types.ListToolsResult(tools=[types.Tool(name="search", description="Find.", input_schema=SCHEMA)])


async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    """Answer the first items that hold the text."""
    said = {"memories": _holding((params.arguments or {})["query"].lower())[:LIMIT]}
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=json.dumps(said))], structured_content=said
    )


def _holding(text: str) -> list[dict[str, str]]:
    items: list[dict[str, str]] = json.loads(Path(sys.argv[1]).read_bytes())
    return [item for item in items if text in item["content"].lower()]


server: Server[Any] = Server("substrings", on_list_tools=list_tools, on_call_tool=call_tool)


async def main() -> None:
    """Serve standard input and output."""
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
