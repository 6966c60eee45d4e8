"""MCP on standard input and output."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from greenroom.transports._connection import Connection, Limits
from greenroom.transports._server import REQUEST_TIMEOUT, McpServer
from greenroom.transports._streams import LineSink, LineSource
from greenroom.transports._wire import claimed_wire, duplicate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from greenroom.transports._server import Door
    from greenroom.transports._tools import Tool


async def serve_stdio(
    tools: Mapping[str, Tool],
    door_for: Callable[[str], Door],
    *,
    request_timeout: float = REQUEST_TIMEOUT,
    limits: Limits | None = None,
    stop: trio.Event | None = None,
) -> None:
    """Serve one MCP client, in either protocol era, until its input ends.

    Returns when every request that was read is answered (within `Limits.drain` seconds of
    the end of input, or `Limits.stop` seconds of `stop`), or when the client is gone.
    Cancelling ends it at once. Pipes, sockets, terminals and regular files will do; meanwhile
    the process's own standard input and output are elsewhere (`claimed_wire`).

    Args:
        tools: The tools by name.
        door_for: Opens the domain for the client, given the client's own name made to fit an
            agent id. Called once, at the first tool call.
        request_timeout: Seconds that a tool call may take.
        limits: What the client may take; unless given, `Limits.drain` is long enough for every tool call.
        stop: Set it to end gracefully.

    Raises:
        OSError: standard input or output is closed.
        StoreFailedError: the store failed for good; the process should end.
    """
    if limits is None:
        limits = Limits(drain=request_timeout + 1)
    server = McpServer(tools, door_for, request_timeout=request_timeout)
    with claimed_wire() as wire:
        # FdStream closes what it is given, and waits only where a descriptor would block: a
        # regular file, which epoll refuses, is simply read.
        async with (
            trio.lowlevel.FdStream(duplicate(wire.input)) as source,
            trio.lowlevel.FdStream(duplicate(wire.output)) as sink,
        ):
            connection = Connection(LineSource(source, limits.frame), LineSink(sink), limits)
            await server.serve(connection, stop=stop)
