"""Pydantic AI: what its models of several providers make of the tools of its MCP toolset.

Where the schemas are listed with null, that is OpenAI's model with strict tools, as a program asks for them.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.bedrock import BedrockConverseModel
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.mistral import MistralModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.bedrock import BedrockProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.mistral import MistralProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.tools import ToolDefinition
from served import ENVIRONMENT, servers, tell

STRICT = ENVIRONMENT.get("GREENROOM_SCHEMAS") == "nullable"


def models() -> dict[str, Model]:
    """Return a model of each provider."""
    openai = OpenAIChatModel("gpt-4o", provider=OpenAIProvider(api_key="none"))
    if STRICT:
        return {"OpenAI, strict": openai}
    region = BedrockProvider(region_name="us-east-1", api_key="none")
    return {
        "OpenAI": openai,
        "Gemini": GoogleModel("gemini-2.5-flash", provider=GoogleProvider(api_key="none")),
        "Anthropic": AnthropicModel("claude-sonnet-4-5", provider=AnthropicProvider(api_key="none")),
        "Mistral": MistralModel("mistral-large-latest", provider=MistralProvider(api_key="none")),
        "Bedrock": BedrockConverseModel("us.amazon.nova-pro-v1:0", provider=region),
    }


async def listed(server: dict[str, Any]) -> list[ToolDefinition]:
    """Return the tools as an agent gives them to its model."""
    given: list[ToolDefinition] = []

    def take(_messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        given.extend(info.function_tools)
        return ModelResponse(parts=[TextPart("done")])

    transport = StdioTransport(server["command"], server["args"], env=server["env"])
    async with Agent(FunctionModel(take), toolsets=[MCPToolset(transport)]) as agent:
        await agent.run("hi")
    return given


async def main() -> None:
    """Convert every tool for every provider."""
    for profile, server in servers():
        tools = await listed(server)
        if STRICT:
            tools = [replace(tool, strict=True) for tool in tools]
        asked = ModelRequestParameters(function_tools=tools)
        for name, model in models().items():
            for tool in model.customize_request_parameters(asked).function_tools:
                assert not STRICT or tool.strict, f"{tool.name} is not strict"
                tell(profile, tool.name, tool.parameters_json_schema, name)


asyncio.run(main())
