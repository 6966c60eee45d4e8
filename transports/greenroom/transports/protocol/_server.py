"""MCP for one connection: the SDK's server behind our streams, our tools behind it.

The SDK does the handshake, both protocol eras and the shape of every result. Tool calls
pass through it as an envelope only: their arguments and replies travel beside it, as the
bytes they are, on the `Call`.
"""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable, Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import trio
from mcp.server.caching import CacheHint
from mcp.server.lowlevel import Server
from mcp.server.runner import serve_dual_era_loop
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    CompleteRequestParams,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    RequestParams,
    ServerCapabilities,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    TextContent,
    UnsubscribeRequestParams,
)

from greenroom.transports.protocol import _resources
from greenroom.transports.protocol._connection import Call, Connection, Inbound, Outbound
from greenroom.transports.protocol._served import Door as Door
from greenroom.transports.protocol._served import Served
from greenroom.transports.protocol._served import fit_agent_id as fit_agent_id
from greenroom.transports.protocol._subscriptions import Subscriptions
from greenroom.transports.protocol._tool_errors import overdue, tool_error

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from greenroom.transports.protocol._tools import Tool

    Context = ServerRequestContext[Served, Call]
    Handler = Callable[[Context, Any], Awaitable[Any]]

DEADLINE_META_KEY = "greenroom/deadline_ms"
REQUEST_TIMEOUT = 30.0
DEBOUNCE = 0.1
NAME_SHOWN = 100
STATIC = CacheHint(ttl_ms=3_600_000, scope="public")
INSTRUCTIONS = (
    "Shared sessions and private memory for agents that work together. "
    "Create or list sessions, add messages to them, search what others wrote; "
    "keep your own notes with set_memory and get_memory. "
    "Sessions and your memory are resources, too: subscribe to hear of changes."
)

# Tool results without their JSON, which goes past the SDK on `Call.reply`.
_SUCCESS = CallToolResult(content=[TextContent(text="")], structured_content={})
_FAILURE = CallToolResult(content=[TextContent(text="")], is_error=True)


class McpServer:
    """The tools of Greenroom, served to one client at a time or to many.

    Args:
        tools: The tools by name.
        door_for: Opens the door for a client, given its name made to fit (`fit_agent_id`).
        request_timeout: Seconds that a tool call may take.
        debounce: Seconds within which changes of one resource become one notification.
    """

    def __init__(
        self,
        tools: Mapping[str, Tool],
        door_for: Callable[[str], Door],
        *,
        request_timeout: float = REQUEST_TIMEOUT,
        debounce: float = DEBOUNCE,
    ) -> None:
        self._tools = tools
        self._door_for = door_for
        self._request_timeout = request_timeout
        self._listing = ListToolsResult.model_validate({"tools": [tool.listing() for tool in tools.values()]})
        self._server = _HonestServer(
            "greenroom",
            version=version("greenroom"),
            title="Greenroom",
            instructions=INSTRUCTIONS,
            cache_hints={"tools/list": STATIC, "resources/templates/list": STATIC},
        )
        self._server.middleware.clear()  # tracing spans that nobody collects
        self._server.add_request_handler("tools/list", PaginatedRequestParams, self._list_tools)
        self._server.add_request_handler("tools/call", CallToolRequestParams, self._call_tool)
        subscriptions = Subscriptions(debounce)
        handlers: tuple[tuple[str, type[RequestParams], Handler], ...] = (
            ("resources/templates/list", PaginatedRequestParams, _resources.list_templates),
            ("resources/list", PaginatedRequestParams, self._in_time(_resources.list_resources)),
            ("resources/read", ReadResourceRequestParams, self._in_time(_resources.read_resource)),
            ("completion/complete", CompleteRequestParams, self._in_time(_resources.complete)),
            ("resources/subscribe", SubscribeRequestParams, subscriptions.subscribe),
            ("resources/unsubscribe", UnsubscribeRequestParams, subscriptions.unsubscribe),
            ("subscriptions/listen", SubscriptionsListenRequestParams, subscriptions.listen),
        )
        for method, params, handler in handlers:
            self._server.add_request_handler(method, params, handler)

    async def serve(
        self,
        connection: Connection,
        *,
        door_for: Callable[[str], Door] | None = None,
        stop: trio.Event | None = None,
    ) -> None:
        """Serve one client until its input ends and its requests are answered.

        A client that goes away ends this without an error. Cancelling ends it at once.

        Args:
            connection: The client's frames; nothing was read from it yet.
            door_for: Opens this client's door, where the transport knows who it is.
            stop: Once set, nothing more is read, and open requests get `Limits.stop` seconds.

        Raises:
            StoreFailedError: the store failed for good; nothing that was not durable was answered.
        """
        async with trio.open_nursery() as nursery:
            served = Served(connection, door_for or self._door_for, nursery)

            async def pump() -> None:
                try:
                    await connection.pump()
                except trio.BrokenResourceError:
                    nursery.cancel_scope.cancel()

            async def watch(stop: trio.Event) -> None:
                await stop.wait()
                connection.stop()

            if stop is not None:
                nursery.start_soon(watch, stop)
            if await connection.begun():
                nursery.start_soon(pump)
                await serve_dual_era_loop(
                    self._server, Inbound(connection), Outbound(connection), lifespan_state=served
                )
                await connection.flushed()
            nursery.cancel_scope.cancel()
        if served.failed is not None:
            raise served.failed

    async def _list_tools(self, _context: Context, _params: PaginatedRequestParams) -> ListToolsResult:
        return self._listing

    async def _call_tool(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        call, served = context.request, context.lifespan_context
        assert call is not None, "every request comes through Connection"
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, _unknown_tool(params.name, self._tools))
        seconds = self._seconds_for(call)
        with trio.CancelScope(deadline=call.arrived + seconds):
            try:
                call.reply = await served.ask(
                    call,
                    lambda: tool.parse(call.frame.arguments),
                    checked=True,
                    large=tool.large_answer,
                )
            except Exception as error:  # noqa: BLE001  (a tool's failure is an answer)
                call.reply = tool_error(error)
                return _FAILURE
            return _SUCCESS
        call.reply = overdue(seconds)
        return _FAILURE

    def _in_time(self, handler: Handler) -> Handler:
        """Return the handler with the deadline of a tool call."""

        async def timed(context: Context, params: Any) -> Any:
            call = context.request
            assert call is not None, "every request comes through Connection"
            seconds = self._seconds_for(call)
            with trio.CancelScope(deadline=call.arrived + seconds):
                return await handler(context, params)
            raise MCPError(INTERNAL_ERROR, f"the request was not answered within {seconds:g} s; repeat it")

        return timed

    def _seconds_for(self, call: Call) -> float:
        """Return the time for a call: the server's, or the client's when that is shorter."""
        meta = (call.frame.params or {}).get("_meta") or {}
        wanted = meta.get(DEADLINE_META_KEY)
        if wanted is None:
            return self._request_timeout
        if not isinstance(wanted, int | float) or type(wanted) is bool or not wanted > 0:
            raise MCPError(
                INVALID_PARAMS,
                f'_meta["{DEADLINE_META_KEY}"] must be a number of milliseconds greater than 0',
            )
        return min(self._request_timeout * 1000, wanted) / 1000  # an integer may be beyond every float


class _HonestServer(Server[Served]):
    """The SDK's server, which says in the later era, too, that its lists do not change.

    The SDK takes it that whoever serves listen streams announces changes of every list.
    """

    def get_capabilities(self, *args: Any, **options: Any) -> ServerCapabilities:
        """Return what the server can do."""
        said = super().get_capabilities(*args, **options)
        for lists in (said.tools, said.resources):
            if lists is not None:
                lists.list_changed = False
        return said


def _unknown_tool(name: str, tools: Mapping[str, Tool]) -> str:
    near = difflib.get_close_matches(name[:NAME_SHOWN], tools, n=3)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"Unknown tool: {name[:NAME_SHOWN]}{hint}"
