"""Google's ADK: the declarations of its MCP toolset."""

from __future__ import annotations

import asyncio

from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams
from mcp import StdioServerParameters
from served import servers, tell


async def main() -> None:
    """Convert every tool."""
    for profile, server in servers():
        started = StdioConnectionParams(server_params=StdioServerParameters(**server), timeout=300)
        toolset = McpToolset(connection_params=started)
        for tool in await toolset.get_tools():
            shown = tool._get_declaration().model_dump(mode="json", exclude_none=True)
            made = shown.get("parameters") or shown.get("parameters_json_schema") or {}
            tell(profile, shown["name"], made)
        await toolset.close()


asyncio.run(main())
