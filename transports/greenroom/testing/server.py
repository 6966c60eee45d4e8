"""An MCP server in this process, whose clients are connected over streams in memory."""

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
from greenroom.transports.mcp.connection import Connection
from greenroom.transports.mcp.frames.line_io import LineSink, LineSource
from greenroom.transports.mcp.limits import Limits
from greenroom.transports.mcp.list_changes import ListChanges
from greenroom.transports.mcp.server import McpServer
from greenroom.transports.mcp.server_info import ServerInfo
from greenroom.transports.mcp.tools.tools import TOOLS, Tool

Streams = trio.StapledStream[Any, Any]
"""One end of a connection."""


class ServerOptions(TypedDict, total=False):
    """The options of the server in a test.

    Attributes:
        profile: What it says of itself.
        request_timeout: Seconds that a request may take.
        debounce: Seconds within which changes of one resource become one notification.
        profiles: The tool profiles of clients that chose none.
        schemas: The form of parameters' schemas of clients that chose none.
        lists: The changes of the list of prompts, where that changes.
        extend: Registers what else the SDK's server answers.
        now: Returns the wall clock in nanoseconds since 1970 UTC.
        tracer: Makes the spans of requests.
        run_ready: Has the domain do at once what was posted to it.
        hold_dispatch: A block that is ended with that.
        logs_requests: Whether each request that is over has a line in the log.
    """

    profile: ServerInfo
    request_timeout: float
    debounce: float
    profiles: tuple[str, ...]
    schemas: SchemaForm
    lists: ListChanges | None
    extend: Callable[[Any], None] | None
    now: Callable[[], int]
    tracer: Tracer | None
    run_ready: Callable[[], None]
    hold_dispatch: Callable[[], AbstractContextManager[None]]
    logs_requests: bool


class ClientOptions(ServerOptions, total=False):
    """The options of the server of one client.

    Attributes:
        limits: What the client may take.
        stop: Set it to end gracefully, as a signal ends a server.
    """

    limits: Limits | None
    stop: trio.Event | None


def import_sdk() -> None:
    """Import MCP's SDK, which a server otherwise does in a thread when a request first needs it.

    Call it before a test in virtual time: such a time runs on while it waits for a thread.
    """
    import_module("greenroom.transports.mcp.sdk_server")


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
        connection = Connection(LineSource(source, self._limits.frame), LineSink(sink), self._limits)
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
    """Serve MCP in this process to the clients that a test connects; cancel them at the end of the block.

    Args:
        agent_for: Returns the agent of a client by the name that it gives itself, such as
            ``lambda name: Agent(runtime, Principal(agent_id=name))``.
        tools: The tools by name.
        limits: What each client may take.
        stop: Set it to end gracefully, as a signal ends a server.
        options: As the settings of `greenroom serve` say; see `ServerOptions`.

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
    """Connect one client to an `mcp_server` of its own, whose arguments it takes."""
    async with mcp_server(agent_for, tools, **options) as server:
        yield server.connect()
