"""The peers of `http`, on hypercorn's trio worker as Greenroom is: an app that does nothing, the SDK's own.

The argument says which: a number for an app that answers every request with so many bytes; `sse`
or `json` for the SDK's, by how it answers a POST.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from functools import partial
from typing import Any

import trio
from hypercorn.config import Config
from hypercorn.trio import serve

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Scope]]
Send = Callable[[Scope], Awaitable[None]]


async def empty(length: int, scope: Scope, receive: Receive, send: Send) -> None:
    """Read a request to its end and answer it."""
    while scope["type"] == "lifespan":
        phase = (await receive())["type"]
        await send({"type": f"{phase}.complete"})
        if phase == "lifespan.shutdown":
            return
    while (await receive()).get("more_body"):
        pass
    body = b'"%b"' % (b"x" * (length - 2))
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % length)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def sdk(*, json: bool) -> Any:
    """Return the SDK's app around the echo server."""
    from bench.echo_server import server  # noqa: PLC0415  the empty app must not hold the SDK

    return server.streamable_http_app(json_response=json)


async def main(which: str) -> None:
    """Serve any free port of this machine."""
    app = partial(empty, int(which)) if which.isdecimal() else sdk(json=which == "json")
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        config = Config()
        config.bind = [f"fd://{listener.fileno()}"]
        port = listener.getsockname()[1]
        print(f"listening on http://127.0.0.1:{port}/mcp", file=sys.stderr, flush=True)
        await serve(app, config, mode="asgi")


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
