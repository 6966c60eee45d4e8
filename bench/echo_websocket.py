"""The peer of `ws` and `subscriptions`: trio-websocket's own server, which says every message again."""

from __future__ import annotations

import sys

import trio
from trio_websocket import ConnectionClosed, WebSocketRequest, WebSocketServer, serve_websocket


async def echo(request: WebSocketRequest) -> None:
    """Serve one client until it hangs up."""
    websocket = await request.accept(subprotocol=request.proposed_subprotocols[0])
    try:
        while True:
            await websocket.send_message(await websocket.get_message())
    except ConnectionClosed:
        pass


async def main() -> None:
    """Serve any free port of this machine."""
    async with trio.open_nursery() as nursery:
        server: WebSocketServer = await nursery.start(serve_websocket, echo, "127.0.0.1", 0, None)
        print(f"listening on ws://127.0.0.1:{server.port}/", file=sys.stderr, flush=True)


if __name__ == "__main__":
    trio.run(main)
