"""MCP on standard input and output."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import trio

from greenroom.transports.auth.caller import NO_CHOICE, ToolChoice
from greenroom.transports.mcp.connection import Connection, Limits
from greenroom.transports.mcp.frames.frames import (
    INVALID_REQUEST,
    FrameError,
    Oversized,
    error_line,
    parse_frame,
)
from greenroom.transports.mcp.frames.line_io import LineSink, LineSource
from greenroom.transports.mcp.server import McpServer
from greenroom.transports.sockets.stdio.pipe import claim_stdio, duplicate


async def serve_stdio(
    server: McpServer,
    *,
    limits: Limits,
    stop: trio.Event | None = None,
    tools: ToolChoice = NO_CHOICE,
    folder_of: Callable[[str | None], str | None] = lambda _: None,
) -> None:
    """Serve one MCP client, in either protocol era, until its input ends.

    Returns when every request that was read is answered (within `Limits.drain` seconds of the end of input,
    or `Limits.stop` seconds of `stop`), or when the client has disconnected. Cancelling ends it at once.
    Pipes, sockets, terminals and regular files are supported; meanwhile the process's own standard input and
    output are redirected (`claim_stdio`).

    Args:
        server: The MCP server.
        limits: The limits of the client.
        stop: Set it to end gracefully.
        tools: How tools are listed to the client.
        folder_of: Returns the working folder of a client with this name, from the parent process.

    Raises:
        OSError: Standard input or output is closed.
        StoreFailedError: The store failed permanently; the process should end.
    """
    with claim_stdio() as pipe:
        # FdStream closes its descriptors, and waits only where one would block: a regular file, which epoll
        # rejects, is simply read.
        async with (
            trio.lowlevel.FdStream(duplicate(pipe.input)) as source,
            trio.lowlevel.FdStream(duplicate(pipe.output)) as sink,
        ):
            connection = Connection(
                LineSource(source, limits.max_message_bytes), LineSink(sink, sink.fileno), limits
            )
            await connection.serve(server, stop=stop, tools=tools, folder_of=folder_of)


async def refuse_stdio(sentence: str, *, limit: int) -> None:
    """Answer the first request, if any, of a client that cannot be served.

    Raises:
        OSError: Standard input or output is closed.
    """
    with claim_stdio() as pipe:
        async with (
            trio.lowlevel.FdStream(duplicate(pipe.input)) as stream,
            trio.lowlevel.FdStream(duplicate(pipe.output)) as sink,
        ):
            source = LineSource(stream, limit)
            while (lines := await source.receive()) is not None:
                for line in lines:
                    with suppress(FrameError):
                        frame = None if isinstance(line, Oversized) else parse_frame(line)
                        if frame is not None and frame.is_request and frame.id is not None:
                            with suppress(trio.BrokenResourceError):
                                await sink.send_all(error_line(frame.id, INVALID_REQUEST, sentence))
                            return
