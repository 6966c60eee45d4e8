"""`/metrics`: the ASGI app that answers a scrape.

The app itself checks no caller. `HttpApp` checks `Host` and `Origin` as for every other path. If keys are
required, it admits only administrators.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Final

import trio

from greenroom.runtime import GreenroomError
from greenroom.transports.base.observability.snapshot import ObservedServer

if TYPE_CHECKING:
    Message = MutableMapping[str, Any]
    App = Callable[
        [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
    ]

_ALLOWED: Final = ("GET", "HEAD")
PLAIN: Final = "text/plain; charset=utf-8"


def metrics_app(observed: ObservedServer) -> App:
    """Return the ASGI app that answers GET and HEAD with a server's figures."""
    # One scrape at a time, so that impatient scrapers cannot use up the threads.
    place = trio.CapacityLimiter(1)

    async def app(
        scope: Message, _receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        if scope["method"] not in _ALLOWED:
            await _answer(send, 405, PLAIN, b"GET or HEAD\n", {b"allow": b"GET, HEAD"})
            return
        accept = b",".join(value for name, value in scope["headers"] if name == b"accept")
        try:
            snapshot = observed.snapshot()
        except GreenroomError as error:
            await _answer(send, 503, PLAIN, f"{error}\n".encode(), {})
            return
        text, media_type = await trio.to_thread.run_sync(
            _render, snapshot, accept.decode("latin-1"), limiter=place
        )
        headers = {b"cache-control": b"no-store"}
        await _answer(send, 200, media_type, text, headers, bodiless=scope["method"] == "HEAD")

    return app


def _render(snapshot: Any, accept: str) -> tuple[bytes, str]:
    from greenroom.transports.base.observability.prometheus import render  # noqa: PLC0415 - takes 60 ms; only scrapes need it

    return render(snapshot, accept)


async def _answer(
    send: Callable[[Message], Awaitable[None]],
    status: int,
    media_type: str,
    body: bytes,
    headers: Mapping[bytes, bytes],
    *,
    bodiless: bool = False,
) -> None:
    told = {b"content-type": media_type.encode(), b"content-length": str(len(body)).encode(), **headers}
    await send({"type": "http.response.start", "status": status, "headers": list(told.items())})
    await send({"type": "http.response.body", "body": b"" if bodiless else body})
