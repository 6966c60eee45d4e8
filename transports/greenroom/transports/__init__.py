"""Bytes to messages and replies to bytes: MCP over standard input and output and WebSocket, the command line.

For programs there is the client's side of WebSocket; the door to a runtime in the same process
is `greenroom.actors`, and the one for people the command `greenroom`. Tests serve the tools with
`greenroom.testing`.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from greenroom.transports.mcp.agent_port import AgentPort as AgentPort
    from greenroom.transports.mcp.limits import Limits as Limits
    from greenroom.transports.mcp.tools import TOOLS as TOOLS
    from greenroom.transports.mcp.tools import Tool as Tool
    from greenroom.transports.websocket.client import WebSocketRefusedError as WebSocketRefusedError
    from greenroom.transports.websocket.client import websocket_client as websocket_client

_NAMES = {
    "mcp.agent_port": "AgentPort",
    "mcp.limits": "Limits",
    "mcp.tools": "TOOLS Tool",
    "websocket.client": "WebSocketRefusedError websocket_client",
}
"""The public names of each module. A module is imported when one of its names is first asked for."""

_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}


if not TYPE_CHECKING:  # a type checker would take it for any name at all

    def __getattr__(name: str) -> object:
        # Only when asked for: every command imports this package, and few need what a client does.
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(_import_module(f"{__name__}.{_MODULES[name]}"), name)
        return value
