"""A TCP proxy that a test can cut, so that connections break between two healthy ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import trio


class Proxy:
    """Relays every connection to the target of the moment.

    Attributes:
        target: The port on this machine that new connections go to; None refuses them.
        arrivals: How many connections came.
    """

    def __init__(self, listener: trio.SocketListener, target: int | None) -> None:
        self.target = target
        self.arrivals = 0
        self._listener = listener
        self._open: set[trio.CancelScope] = set()
        self._arrived = trio.Event()

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self._listener.socket.getsockname()[1]}/"

    def cut(self) -> None:
        """Break every connection, mid-message as it may be."""
        for scope in self._open:
            scope.cancel()

    async def another(self) -> None:
        """Wait until one more connection comes."""
        await self._arrived.wait()

    async def relay(self, client: trio.SocketStream) -> None:
        self.arrivals += 1
        self._arrived.set()
        self._arrived = trio.Event()
        with trio.CancelScope() as scope, suppress(OSError):
            self._open.add(scope)
            try:
                if self.target is not None:
                    async with await trio.open_tcp_stream("127.0.0.1", self.target) as server:
                        await self._both_ways(client, server, scope)
            finally:
                self._open.remove(scope)
        await trio.aclose_forcefully(client)

    async def _both_ways(
        self, client: trio.SocketStream, server: trio.SocketStream, scope: trio.CancelScope
    ) -> None:
        async def pump(source: trio.SocketStream, sink: trio.SocketStream) -> None:
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                async for chunk in source:
                    await sink.send_all(chunk)
            scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(pump, client, server)
            nursery.start_soon(pump, server, client)


@asynccontextmanager
async def proxy_to(target: int | None) -> AsyncIterator[Proxy]:
    """Run a proxy."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    proxy = Proxy(listener, target)
    async with trio.open_nursery() as nursery:
        await nursery.start(trio.serve_listeners, proxy.relay, [listener])
        yield proxy
        nursery.cancel_scope.cancel()
