"""Google's ADK: the declarations of its MCP toolset."""

from __future__ import annotations

import asyncio

from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams
from mcp import StdioServerParameters
from served import stdio, tell


async def main() -> None:
    """Convert every tool."""
    toolset = McpToolset(
        connection_params=StdioConnectionParams(server_params=StdioServerParameters(**stdio()), timeout=60)
    )
    for tool in await toolset.get_tools():
        shown = tool._get_declaration().model_dump(mode="json", exclude_none=True)
        tell(shown["name"], shown.get("parameters") or shown.get("parameters_json_schema") or {})
    await toolset.close()


asyncio.run(main())
