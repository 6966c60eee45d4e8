"""The peer of `start`, `mcp` and `http`: a server with one tool, on the SDK alone, as documented there."""

from __future__ import annotations

from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
    """Answer the one tool."""
    return types.ListToolsResult(
        tools=[types.Tool(name="echo", description="Say it again.", input_schema=SCHEMA)]
    )


async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    """Answer what was said."""
    said = (params.arguments or {})["text"]
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=said)], structured_content={"text": said}
    )


server: Server[Any] = Server("echo", on_list_tools=list_tools, on_call_tool=call_tool)


async def main() -> None:
    """Serve standard input and output."""
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
