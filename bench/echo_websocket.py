"""The peer of `ws` and `subscriptions`: trio-websocket's own server, which says every message again.

With a number as its argument it says it with blanks up to so many characters, for frames as
long as those that it is compared with.
"""

from __future__ import annotations

import sys
from functools import partial

import trio
from trio_websocket import ConnectionClosed, WebSocketRequest, WebSocketServer, serve_websocket


async def echo(length: int, request: WebSocketRequest) -> None:
    """Serve one client until it hangs up."""
    websocket = await request.accept(subprotocol=request.proposed_subprotocols[0])
    try:
        while True:
            message = await websocket.get_message()
            await websocket.send_message(message.ljust(length))
    except ConnectionClosed:
        pass


async def main(length: int) -> None:
    """Serve any free port of this machine."""
    async with trio.open_nursery() as nursery:
        handler = partial(echo, length)
        server: WebSocketServer = await nursery.start(serve_websocket, handler, "127.0.0.1", 0, None)
        print(f"listening on ws://127.0.0.1:{server.port}/", file=sys.stderr, flush=True)


if __name__ == "__main__":
    trio.run(main, int(sys.argv[1]) if len(sys.argv) > 1 else 0)
