"""An MCP server in this process, with clients over streams in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from importlib import import_module
from typing import Any, TypedDict, Unpack

import trio
from trio.testing import memory_stream_pair

from greenroom.actors.core.auth.tool_profiles import SchemaForm
from greenroom.runtime.base.arguments import check_options
from greenroom.testing.client import McpClient
from greenroom.transports.base.observability.tracing import Tracer
from greenroom.transports.mcp.agent_port import AgentPort
from greenroom.transports.mcp.clients.subscriptions import ListChanges
from greenroom.transports.mcp.connection import Connection
from greenroom.transports.mcp.frames.calls import Limits
from greenroom.transports.mcp.frames.line_io import LineSink, LineSource
from greenroom.transports.mcp.server import McpServer
from greenroom.transports.mcp.server_info import ServerInfo
from greenroom.transports.mcp.tools.tools import TOOLS, Tool

Streams = trio.StapledStream[Any, Any]
"""One end of a connection."""


class ServerOptions(TypedDict, total=False):
    """The options of the server in a test.

    Attributes:
        profile: The server's information about itself.
        request_timeout: Seconds that a request may take.
        debounce: Seconds within which changes of one resource become one notification.
        profiles: The tool profiles of clients that chose none.
        schemas: The form of parameters' schemas for clients that chose none.
        lists: The changes of the list of prompts, if any.
        extend: Handles requests before the table of methods; returns whether it handled one.
        now: Returns the wall clock in nanoseconds since 1970 UTC.
        tracer: Makes the spans of requests.
        run_ready: Handles posted requests at once.
        hold_dispatch: Returns a block that ends with ``run_ready``.
        logs_requests: Whether each request has a line in the log at its end.
    """

    profile: ServerInfo
    request_timeout: float
    debounce: float
    profiles: tuple[str, ...]
    schemas: SchemaForm
    lists: ListChanges | None
    extend: Callable[[Any, Any], bool] | None
    now: Callable[[], int]
    tracer: Tracer | None
    run_ready: Callable[[], None]
    hold_dispatch: Callable[[], AbstractContextManager[None]]
    logs_requests: bool


class ClientOptions(ServerOptions, total=False):
    """The options of the server of one client.

    Attributes:
        limits: The limits of the client.
        stop: Set it to end gracefully, as a signal ends a server.
    """

    limits: Limits | None
    stop: trio.Event | None


def import_sdk() -> None:
    """Import MCP's SDK now; otherwise a server imports it in a thread when first needed.

    Call it before a test in virtual time: that time runs on during a wait for a thread.
    """
    import_module("greenroom.transports.mcp.frames.checks")


class InMemoryServer:
    """A server without sockets and processes, made by `mcp_server`."""

    def __init__(
        self, server: McpServer, limits: Limits, stop: trio.Event | None, nursery: trio.Nursery
    ) -> None:
        self._server = server
        self._limits = limits
        self._stop = stop
        self._nursery = nursery

    def connect(self, streams: tuple[Streams, Streams] | None = None) -> McpClient:
        """Connect one more client and return it.

        Args:
            streams: The client's end and the server's; trio's ``memory_stream_pair()`` unless given.
        """
        ours, theirs = streams or memory_stream_pair()
        self._nursery.start_soon(self._serve, theirs.receive_stream, theirs.send_stream)
        return McpClient(ours.receive_stream, ours.send_stream)

    async def _serve(self, source: trio.abc.ReceiveStream, sink: trio.abc.SendStream) -> None:
        connection = Connection(
            LineSource(source, self._limits.max_message_bytes), LineSink(sink), self._limits
        )
        await connection.serve(self._server, stop=self._stop)
        await sink.aclose()


@check_options(ServerOptions)
@asynccontextmanager
async def mcp_server(
    agent_for: Callable[[str], AgentPort],
    tools: Mapping[str, Tool] = TOOLS,
    *,
    limits: Limits | None = None,
    stop: trio.Event | None = None,
    **options: Unpack[ServerOptions],
) -> AsyncIterator[InMemoryServer]:
    """Serve MCP in this process to a test's clients; cancel them at the end.

    Args:
        agent_for: Returns the agent of a client by the client's name, such as
            ``lambda name: Agent(runtime, Principal(agent_id=name))``.
        tools: The tools by name.
        limits: The limits of each client.
        stop: Set it to end gracefully, as a signal ends a server.
        options: The same as the settings of `greenroom serve`; see `ServerOptions`.

    Raises:
        TypeError: there is no such option; the call itself raises it.
    """
    server = McpServer(tools, agent_for, **options)
    async with server.running(), trio.open_nursery() as nursery:
        yield InMemoryServer(server, limits or Limits(), stop, nursery)
        nursery.cancel_scope.cancel()


@check_options(ClientOptions)
@asynccontextmanager
async def mcp_client(
    agent_for: Callable[[str], AgentPort],
    tools: Mapping[str, Tool] = TOOLS,
    **options: Unpack[ClientOptions],
) -> AsyncIterator[McpClient]:
    """Connect one client to its own `mcp_server`, with the same arguments."""
    async with mcp_server(agent_for, tools, **options) as server:
        yield server.connect()
