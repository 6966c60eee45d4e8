"""smolagents: its tools check names and types of their inputs when they are made."""

from __future__ import annotations

from mcp import StdioServerParameters
from served import servers, tell
from smolagents import MCPClient
from smolagents.models import get_tool_json_schema

for profile, server in servers():
    for structured in (False, True):
        with MCPClient(StdioServerParameters(**server), structured_output=structured) as tools:
            for tool in tools:
                made = get_tool_json_schema(tool)["function"]
                tell(profile, made["name"], made["parameters"])
