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

    Returns when every request that was read is answered (within `Limits.drain` seconds of
    the end of input, or `Limits.stop` seconds of `stop`), or when the client is gone.
    Cancelling ends it at once. Pipes, sockets, terminals and regular files will do; meanwhile
    the process's own standard input and output are elsewhere (`claim_stdio`).

    Args:
        server: What the client speaks to.
        limits: What the client may take.
        stop: Set it to end gracefully.
        tools: How tools are listed to the client.
        folder_of: Returns the folder in which a client of this name works, as the process that started
            this one shows.

    Raises:
        OSError: standard input or output is closed.
        StoreFailedError: the store failed for good; the process should end.
    """
    with claim_stdio() as pipe:
        # FdStream closes what it is given, and waits only where a descriptor would block: a
        # regular file, which epoll refuses, is simply read.
        async with (
            trio.lowlevel.FdStream(duplicate(pipe.input)) as source,
            trio.lowlevel.FdStream(duplicate(pipe.output)) as sink,
        ):
            connection = Connection(LineSource(source, limits.frame), LineSink(sink, sink.fileno), limits)
            await connection.serve(server, stop=stop, tools=tools, folder_of=folder_of)


async def refuse_stdio(sentence: str, *, limit: int) -> None:
    """Answer the first request of a client that cannot be served; its input may end without one.

    Args:
        sentence: Why it is not served.
        limit: The longest frame, in bytes.

    Raises:
        OSError: standard input or output is closed.
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
