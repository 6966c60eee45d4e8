"""Anthropic's SDK: MCP tools for its tool runner."""

from __future__ import annotations

import asyncio

from anthropic.lib.tools.mcp import async_mcp_tool
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from served import servers, tell


async def main() -> None:
    """Convert every tool."""
    for profile, server in servers():
        async with (
            stdio_client(StdioServerParameters(**server)) as streams,
            ClientSession(*streams) as session,
        ):
            await session.initialize()
            for tool in (await session.list_tools()).tools:
                made = async_mcp_tool(tool, session).to_dict()
                tell(profile, made["name"], made["input_schema"])


asyncio.run(main())
