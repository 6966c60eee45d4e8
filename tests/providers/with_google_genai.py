"""google-genai: its own conversion of MCP tools, which it uses for a session among a model's tools."""

from __future__ import annotations

import asyncio

from google.genai import types
from google.genai._mcp_utils import mcp_to_gemini_tool
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
                (declared,) = mcp_to_gemini_tool(tool).function_declarations
                tell(profile, declared.name, declared.parameters.model_dump(mode="json", exclude_none=True))
                types.GenerateContentConfig(tools=[types.Tool(function_declarations=[declared])])


asyncio.run(main())
