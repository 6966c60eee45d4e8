"""Bytes to messages and replies to bytes: MCP over standard input and output and WebSocket, the command line.

For programs there is the client's side of WebSocket; the door to a runtime in the same process
is `greenroom.actors`, and the one for people the command `greenroom`. Tests serve the tools with
`greenroom.testing`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from greenroom.runtime.base.lazy import exports

if TYPE_CHECKING:
    from greenroom.transports.mcp.agent_port import AgentPort as AgentPort
    from greenroom.transports.mcp.limits import Limits as Limits
    from greenroom.transports.mcp.tools import TOOLS as TOOLS
    from greenroom.transports.mcp.tools import Tool as Tool
    from greenroom.transports.websocket.client import WebSocketRefusedError as WebSocketRefusedError
    from greenroom.transports.websocket.client import websocket_client as websocket_client
else:  # a type checker would take it for any name at all
    __getattr__ = exports(__name__)
