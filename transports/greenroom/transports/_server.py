"""MCP for one connection: the SDK's server behind our streams, our tools behind it.

The SDK does the handshake, both protocol eras and the shape of every result. Tool calls
pass through it as an envelope only: their arguments and replies travel beside it, as the
bytes they are, on the `Call`.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import trio
from mcp.server.caching import CacheHint
from mcp.server.lowlevel import Server
from mcp.server.runner import serve_dual_era_loop
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
)

from greenroom.runtime import StoreFailedError
from greenroom.transports._connection import Call, Connection, Inbound, Limits, Outbound
from greenroom.transports._tool_errors import overdue, tool_error

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from greenroom.transports._tools import Tool

    Context = ServerRequestContext["_Served", Call]

DEADLINE_META_KEY = "greenroom/deadline_ms"
REQUEST_TIMEOUT = 30.0
AGENT_ID_LENGTH = 100
NAMELESS_AGENT = "agent"
INSTRUCTIONS = (
    "Shared sessions and private memory for agents that work together. "
    "Create or list sessions, add messages to them, search what others wrote; "
    "keep your own notes with set_memory and get_memory."
)

# Tool results without their JSON, which goes past the SDK on `Call.reply`.
_SUCCESS = CallToolResult(content=[TextContent(text="")], structured_content={})
_FAILURE = CallToolResult(content=[TextContent(text="")], is_error=True)


class Door(Protocol):
    """Where requests go: an agent of the domain."""

    async def ask(
        self, request: Any, *, checked: bool = False, on_accepted: Callable[[], None] | None = None
    ) -> Any:
        """Return the reply to a request; call `on_accepted` once its place in the order is sure."""


def fit_agent_id(name: str | None) -> str:
    """Return a client's own name as an agent id: 1-100 characters of ``A-Za-z0-9_.-``."""
    plain = unicodedata.normalize("NFKD", name or "").encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", plain).strip("-")[:AGENT_ID_LENGTH] or NAMELESS_AGENT


class McpServer:
    """The tools of Greenroom, served to one client at a time or to many.

    Args:
        tools: The tools by name.
        door_for: Opens the door for a client, given its name made to fit (`fit_agent_id`).
        request_timeout: Seconds that a tool call may take.
    """

    def __init__(
        self,
        tools: Mapping[str, Tool],
        door_for: Callable[[str], Door],
        *,
        request_timeout: float = REQUEST_TIMEOUT,
    ) -> None:
        self._tools = tools
        self._door_for = door_for
        self._request_timeout = request_timeout
        self._listing = ListToolsResult.model_validate({"tools": [tool.listing() for tool in tools.values()]})
        self._server: Server[_Served] = Server(
            "greenroom",
            version=version("greenroom"),
            title="Greenroom",
            instructions=INSTRUCTIONS,
            cache_hints={"tools/list": CacheHint(ttl_ms=3_600_000, scope="public")},
        )
        self._server.middleware.clear()  # tracing spans that nobody collects
        self._server.add_request_handler("tools/list", PaginatedRequestParams, self._list_tools)
        self._server.add_request_handler("tools/call", CallToolRequestParams, self._call_tool)

    async def serve(
        self,
        source: trio.abc.ReceiveStream,
        sink: trio.abc.SendStream,
        *,
        limits: Limits = Limits(),  # noqa: B008  (frozen)
        stop: trio.Event | None = None,
    ) -> None:
        """Serve one client until its input ends and its requests are answered.

        A client that goes away ends this without an error. Cancelling ends it at once.

        Args:
            source: The client's bytes.
            sink: Where answers go.
            limits: What the client may take.
            stop: Once set, nothing more is read, and open requests get `Limits.stop` seconds.

        Raises:
            StoreFailedError: the store failed for good; nothing that was not durable was answered.
        """
        connection = Connection(source, sink, limits)
        served = _Served(connection, self._door_for)
        async with trio.open_nursery() as nursery:

            async def pump() -> None:
                try:
                    await connection.pump()
                except trio.BrokenResourceError:
                    nursery.cancel_scope.cancel()

            async def watch(stop: trio.Event) -> None:
                await stop.wait()
                connection.stop()

            served.abort = nursery.cancel_scope.cancel
            nursery.start_soon(pump)
            if stop is not None:
                nursery.start_soon(watch, stop)
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
            call.reply, failed = await served.answer(tool, call)
            return _FAILURE if failed else _SUCCESS
        call.reply = overdue(seconds)
        return _FAILURE

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


class _Served:
    """One client being served: its connection, and the door that its first tool call opens."""

    def __init__(self, connection: Connection, door_for: Callable[[str], Door]) -> None:
        self.failed: StoreFailedError | None = None
        self.abort: Callable[[], None] = connection.stop
        self._connection = connection
        self._door_for = door_for
        self._door: Door | None = None

    async def answer(self, tool: Tool, call: Call) -> tuple[bytes, bool]:
        """Return the JSON that answers a call, and whether it is a failure's."""
        assert call.turn is not None, "tool calls have turns"
        await call.turn.come()
        try:
            if self._door is None:
                self._door = self._door_for(fit_agent_id(self._connection.client_name))
            async with self._connection.room_for_answer(large=tool.large_answer):
                request = tool.parse(call.frame.arguments)
                reply = await self._door.ask(request, checked=True, on_accepted=call.turn.leave)
                return msgspec.json.encode(reply), False
        except StoreFailedError as error:
            self.failed = error
            self._connection.mute()
            self.abort()
            await trio.sleep_forever()
            raise AssertionError("cancelled above") from None
        except Exception as error:  # noqa: BLE001  (a tool's failure is an answer)
            return tool_error(error), True


def _unknown_tool(name: str, tools: Mapping[str, Tool]) -> str:
    near = difflib.get_close_matches(name[:AGENT_ID_LENGTH], tools, n=3)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"Unknown tool: {name[:AGENT_ID_LENGTH]}{hint}"
