"""langchain-mcp-adapters fetches the tools, langchain-google-genai declares and binds them."""

from __future__ import annotations

import asyncio

from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_google_genai._function_utils import convert_to_genai_function_declarations
from langchain_mcp_adapters.client import MultiServerMCPClient
from served import servers, tell


async def main() -> None:
    """Convert every tool."""
    for profile, server in servers():
        tools = await MultiServerMCPClient({"greenroom": {"transport": "stdio", **server}}).get_tools()
        for tool in tools:
            (made,) = convert_to_genai_function_declarations([tool])
            (declared,) = made.function_declarations
            shown = declared.model_dump(mode="json", exclude_none=True)
            parameters = shown.get("parameters") or shown.get("parameters_json_schema") or {}
            tell(profile, declared.name, parameters)
        ChatGoogleGenerativeAI(model="gemini-2.5-flash", api_key="none").bind_tools(tools)


asyncio.run(main())
