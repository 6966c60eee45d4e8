"""The peer of `ws`: trio-websocket alone, which sends every message back as it came."""

from __future__ import annotations

import trio
from trio_websocket import ConnectionClosed, WebSocketRequest, serve_websocket


async def echo(request: WebSocketRequest) -> None:
    """Serve one client."""
    websocket = await request.accept(subprotocol="mcp")
    while True:
        try:
            await websocket.send_message(await websocket.get_message())
        except ConnectionClosed:
            return


async def main() -> None:
    """Serve any free port and say which."""
    async with trio.open_nursery() as nursery:
        server = await nursery.start(serve_websocket, echo, "127.0.0.1", 0, None)
        print(f"listening on ws://127.0.0.1:{server.port}/", flush=True)


if __name__ == "__main__":
    trio.run(main)
