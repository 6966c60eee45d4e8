"""OpenAI Agents: strict where the schemas are listed with null, as it tells its users to ask for it."""

from __future__ import annotations

import asyncio

from agents.mcp import MCPServerStdio, MCPUtil
from served import ENVIRONMENT, servers, tell

STRICT = ENVIRONMENT.get("GREENROOM_SCHEMAS") == "nullable"


async def main() -> None:
    """Convert every tool."""
    for profile, parameters in servers():
        async with MCPServerStdio(params=parameters, client_session_timeout_seconds=60) as server:
            for tool in await server.list_tools():
                made = MCPUtil.to_function_tool(tool, server, convert_schemas_to_strict=STRICT)
                assert made.strict_json_schema is STRICT, f"{tool.name} is not strict"
                provider = "OpenAI, strict" if STRICT else "OpenAI"
                tell(profile, made.name, made.params_json_schema, provider)


asyncio.run(main())
