"""Bytes to messages and replies to bytes: MCP over standard input and output and WebSocket, the command line.

For programs there is the client's side of WebSocket; the door to a runtime in the same process
is `greenroom.actors`, and the one for people the command `greenroom`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from greenroom.transports.websocket.client import WebSocketRefusedError as WebSocketRefusedError
    from greenroom.transports.websocket.client import websocket_client as websocket_client


def __getattr__(name: str) -> object:
    # Only when asked for: every command imports this package, and few need what a client does.
    if name not in {"WebSocketRefusedError", "websocket_client"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from greenroom.transports.websocket import client as websocket_client  # noqa: PLC0415 - see above

    return getattr(websocket_client, name)
