"""crewAI: a model of Pydantic made of each tool's schema, and the function made of that."""

from __future__ import annotations

from crewai.utilities.agent_utils import convert_tools_to_openai_schema
from crewai_tools import MCPServerAdapter
from mcp import StdioServerParameters
from served import servers, tell

for profile, server in servers():
    with MCPServerAdapter(StdioServerParameters(**server), connect_timeout=300) as tools:
        for tool in tools:
            tell(profile, tool.name, tool.args_schema.model_json_schema())
        convert_tools_to_openai_schema(tools)
