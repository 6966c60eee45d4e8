"""The same fixture on nothing but the SDK: what fails here, too, is no fault of Greenroom.

Run as a program it serves over HTTP, at the address that it prints.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import trio
from conformance import answers
from conformance.extension import Context, extend
from hypercorn.config import Config
from hypercorn.trio import serve
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import EventCallback, EventId, EventMessage, EventStore, StreamId
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    EmptyResult,
    JSONRPCMessage,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    SubscribeRequestParams,
    UnsubscribeRequestParams,
)


def listings() -> list[dict[str, Any]]:
    """Return the tools as ``tools/list`` shows them."""
    tools: dict[str, answers.Answer | answers.Talk] = {**answers.TOOLS, **answers.TALKS}
    return [
        {"name": name, "description": tool.description, "inputSchema": tool.input_schema}
        for name, tool in tools.items()
    ]


def floor() -> Server[Any]:
    """Return the SDK's server with all that the suite asks for."""
    server = Server(
        "floor",
        version="1",
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,
        on_list_resources=_list_resources,
        on_list_resource_templates=_list_templates,
        on_read_resource=_read_resource,
        on_subscribe_resource=_subscribe,
        on_unsubscribe_resource=_unsubscribe,
        on_subscriptions_listen=ListenHandler(InMemorySubscriptionBus()),
    )
    extend(server)
    return server


class Events(EventStore):
    """What streams have sent, kept as long as the program runs."""

    def __init__(self) -> None:
        self._events: list[tuple[StreamId, JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: StreamId, message: JSONRPCMessage | None) -> EventId:
        """Keep an event and return its id."""
        self._events.append((stream_id, message))
        return str(len(self._events))

    async def replay_events_after(
        self, last_event_id: EventId, send_callback: EventCallback
    ) -> StreamId | None:
        """Send what the stream had after an event."""
        last = int(last_event_id)
        stream_id, _ = self._events[last - 1]
        for number, (stream, message) in enumerate(self._events[last:], last + 1):
            if stream == stream_id and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream_id


async def _list_tools(_context: Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
    return ListToolsResult.model_validate({"tools": listings()})


async def _call_tool(_context: Context, params: CallToolRequestParams) -> CallToolResult:
    answer = answers.TOOLS.get(params.name)
    if answer is None:
        raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name}")
    return CallToolResult.model_validate({"content": answer.blocks, "isError": answer.is_error})


async def _list_resources(_context: Context, _params: PaginatedRequestParams | None) -> ListResourcesResult:
    return ListResourcesResult.model_validate(
        {
            "resources": [
                {
                    "uri": resource.uri,
                    "name": resource.name,
                    "description": resource.description,
                    "mimeType": resource.mime_type,
                }
                for resource in answers.RESOURCES
            ]
        }
    )


async def _list_templates(
    _context: Context, _params: PaginatedRequestParams | None
) -> ListResourceTemplatesResult:
    template = {"uriTemplate": answers.TEMPLATE, "name": "data", "mimeType": "application/json"}
    return ListResourceTemplatesResult.model_validate({"resourceTemplates": [template]})


async def _read_resource(_context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
    found = answers.contents(params.uri)
    if found is None:
        raise MCPError(INVALID_PARAMS, "Resource not found", {"uri": params.uri})
    held = {"text": found.text} if found.text is not None else {"blob": found.blob}
    return ReadResourceResult.model_validate(
        {"contents": [{"uri": found.uri, "mimeType": found.mime_type, **held}]}
    )


async def _subscribe(_context: Context, _params: SubscribeRequestParams) -> EmptyResult:
    return EmptyResult()


async def _unsubscribe(_context: Context, _params: UnsubscribeRequestParams) -> EmptyResult:
    return EmptyResult()


async def main() -> None:
    """Serve until the program is killed."""
    app = floor().streamable_http_app(event_store=Events(), retry_interval=500)
    config = Config()
    config.bind = ["127.0.0.1:0"]
    config.errorlog = None
    async with trio.open_nursery() as nursery:
        (bound,) = await nursery.start(serve, app, config)
        sys.stdout.write(json.dumps({"url": f"{bound}/mcp"}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    trio.run(main)
