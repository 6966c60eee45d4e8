"""Test doubles for programs that embed Greenroom or have their own actors.

A clock that a test moves, committers that wait, a disk that fails, and an MCP client without sockets or processes.
All are passed as arguments, so a test patches nothing in Greenroom.

    disk = FaultyDisk("full", at=2)
    async with open_runtime("data", actors=[Counter], clock=VirtualClock(), committer=InlineCommitter(disk)):
        ...

No part of Greenroom imports this package, so a server never loads it.
"""

from __future__ import annotations

from greenroom.runtime.base.lazy import exports

TYPE_CHECKING = False  # see `lazy`
if TYPE_CHECKING:
    from greenroom.testing.client import MODERN_META as MODERN_META
    from greenroom.testing.client import McpClient as McpClient
    from greenroom.testing.clock import DAY as DAY
    from greenroom.testing.clock import HOUR as HOUR
    from greenroom.testing.clock import SECOND as SECOND
    from greenroom.testing.clock import START as START
    from greenroom.testing.clock import VirtualClock as VirtualClock
    from greenroom.testing.committer import CrashError as CrashError
    from greenroom.testing.committer import Fault as Fault
    from greenroom.testing.committer import FaultyDisk as FaultyDisk
    from greenroom.testing.committer import GatedCommitter as GatedCommitter
    from greenroom.testing.server import ClientOptions as ClientOptions
    from greenroom.testing.server import InMemoryServer as InMemoryServer
    from greenroom.testing.server import ServerOptions as ServerOptions
    from greenroom.testing.server import import_sdk as import_sdk
    from greenroom.testing.server import mcp_client as mcp_client
    from greenroom.testing.server import mcp_server as mcp_server

    __version__: str
else:  # a type checker would accept any name because of `__getattr__`
    __getattr__, __dir__ = exports(__name__)
