"""The tools that talk back while they work: they log, report progress, and ask the client.

Asking is a request of the server here, as in the handshake era; `asking` has the other
way. Handlers of the SDK, since Greenroom has no tool of this kind and takes such tools
through the SDK's server.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import trio
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolRequestParams,
    CallToolResult,
    ClientCapabilities,
    ElicitResult,
    SamplingCapability,
    SamplingMessage,
    TextContent,
)

Context = ServerRequestContext[Any, Any]

PAUSE = 0.05
"""Seconds between a tool's messages; the suite asks for them, and looks that none gets lost."""


async def log_thrice(context: Context, _params: CallToolRequestParams) -> CallToolResult:
    """Log three messages."""
    for number, words in enumerate(
        ("Tool execution started", "Tool processing data", "Tool execution completed")
    ):
        await trio.sleep(PAUSE if number else 0)
        await _log(context, words)
    return said("Tool with logging executed successfully")


async def log_once(context: Context, _params: CallToolRequestParams) -> CallToolResult:
    """Log a message, which in the later era only those get who asked for it."""
    await _log(context, "Logged for those who asked")
    return said("Logged")


async def report_progress(context: Context, _params: CallToolRequestParams) -> CallToolResult:
    """Report progress three times."""
    for progress in (0, 50, 100):
        await trio.sleep(PAUSE if progress else 0)
        await context.session.report_progress(progress, 100, f"Completed step {progress} of 100")
    return said("Tool with progress executed successfully")


async def close_stream(context: Context, _params: CallToolRequestParams) -> CallToolResult:
    """Close the stream that waits for the answer, and answer to the client that comes back."""
    if context.close_sse_stream is not None:
        await context.close_sse_stream()
    await trio.sleep(2 * PAUSE)
    return said("Reconnection test completed successfully")


async def _log(context: Context, words: str) -> None:
    await context.session.send_log_message(
        "info", words, logger="fixture", related_request_id=context.request_id
    )


async def need_sampling(context: Context, _params: CallToolRequestParams) -> CallToolResult:
    """Refuse clients that have not declared sampling."""
    needed = ClientCapabilities(sampling=SamplingCapability())
    if not context.session.check_client_capability(needed):
        raise MCPError(
            MISSING_REQUIRED_CLIENT_CAPABILITY,
            "the client has not declared the capability to sample",
            {"requiredCapabilities": needed.model_dump(mode="json", by_alias=True, exclude_none=True)},
        )
    return said("The client can sample")


async def sample(context: Context, params: CallToolRequestParams) -> CallToolResult:
    """Ask the client's model."""
    result = await context.session.create_message(
        [message((params.arguments or {})["prompt"])], max_tokens=100, related_request_id=context.request_id
    )
    words = result.content.text if isinstance(result.content, TextContent) else "(no text)"
    return said(f"LLM response: {words}")


async def elicit(context: Context, params: CallToolRequestParams) -> CallToolResult:
    """Ask the user."""
    schema = form(
        username={"type": "string", "description": "User's response"},
        email={"type": "string", "description": "User's email address"},
    )
    result = await _elicited(context, (params.arguments or {})["message"], schema)
    return said(f"User response: action={result.action}, content={json.dumps(result.content)}")


async def elicit_with_defaults(context: Context, _params: CallToolRequestParams) -> CallToolResult:
    """Ask the user with a form that has defaults."""
    schema = form(
        name={"type": "string", "description": "User name", "default": "John Doe"},
        age={"type": "integer", "description": "User age", "default": 30},
        score={"type": "number", "description": "User score", "default": 95.5},
        status={
            "type": "string",
            "description": "User status",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        verified={"type": "boolean", "description": "Verification status", "default": True},
    )
    result = await _elicited(context, "Please review and update the form fields with defaults", schema)
    return said(f"Elicitation completed: action={result.action}, content={json.dumps(result.content)}")


async def elicit_choices(context: Context, _params: CallToolRequestParams) -> CallToolResult:
    """Ask the user with a form that has choices of every kind."""
    plain = ["option1", "option2", "option3"]
    titled = [
        {"const": "value1", "title": "First Option"},
        {"const": "value2", "title": "Second Option"},
        {"const": "value3", "title": "Third Option"},
    ]
    schema = form(
        untitledSingle={"type": "string", "enum": plain},
        titledSingle={"type": "string", "oneOf": titled},
        legacyEnum={
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        untitledMulti={"type": "array", "items": {"type": "string", "enum": plain}},
        titledMulti={"type": "array", "items": {"anyOf": titled}},
    )
    result = await _elicited(context, "Please select options from the enum fields", schema)
    return said(f"Elicitation completed: action={result.action}, content={json.dumps(result.content)}")


async def _elicited(context: Context, question: str, schema: dict[str, Any]) -> ElicitResult:
    return await context.session.elicit_form(question, schema, related_request_id=context.request_id)


def said(words: str) -> CallToolResult:
    """Return a tool's answer in text."""
    return CallToolResult(content=[TextContent(text=words)])


def message(words: str) -> SamplingMessage:
    """Return a user's message to a model."""
    return SamplingMessage(role="user", content=TextContent(text=words))


def form(**properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a form in which every field is to be filled in."""
    return {"type": "object", "properties": properties, "required": list(properties)}
