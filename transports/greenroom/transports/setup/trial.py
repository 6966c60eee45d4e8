"""A server started as a client would start it, to see whether its tools come."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import trio

from greenroom.transports.clients.setup.change import SetupError

_PATIENCE = 60.0  # seconds; the first start makes a store


class Found(NamedTuple):
    """What a server said of itself."""

    version: str
    tools: int


async def tried(command: str, arguments: list[str]) -> Found:
    """Start a server with no more in its environment than a program of the desktop has; list its tools.

    Raises:
        SetupError: It does not start, or does not answer.
    """
    from mcp import Client, StdioServerParameters  # noqa: PLC0415 - it takes long, and no other command needs it

    environment = {"HOME": str(Path.home()), "PATH": "/usr/bin:/bin"}
    server = StdioServerParameters(command=command, args=arguments, env=environment)
    try:
        with trio.fail_after(_PATIENCE):
            async with Client(server) as client:
                listed = await client.list_tools()
                info = client.server_info
                return Found(info.version if info else "of no version", len(listed.tools))
    except Exception as error:  # noqa: BLE001 - whatever a foreign program does is one sentence
        raise SetupError(
            f"{command} does not answer as a server ({error}); run it on a terminal to see why"
        ) from None
