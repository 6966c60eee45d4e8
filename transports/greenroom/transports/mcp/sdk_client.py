"""The rarer requests of one client, on their way to the SDK in the order of arrival.

This much is known of the SDK before it is imported.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from greenroom.transports.mcp.calls import Call
from greenroom.transports.mcp.frames import Frame

if TYPE_CHECKING:
    from greenroom.transports.mcp.client import Client
    from greenroom.transports.mcp.sdk_server import SdkSession
    from greenroom.transports.mcp.server import McpServer


class SdkClient:
    """One client as the SDK sees it, which knows nothing of it before it is needed.

    Args:
        server: Has the SDK.
        client: The client.
    """

    def __init__(self, server: McpServer, client: Client) -> None:
        self._server = server
        self._client = client
        self._session: SdkSession | None = None
        self._arrived: deque[Call | Frame] = deque()
        self._notifications = self._notified_bytes = 0
        self._handshakes = 0
        self._at_work = False

    @property
    def shaking_hands(self) -> bool:
        """Whether a handshake is under way, after which something else may hold."""
        return self._handshakes > 0

    @property
    def is_full(self) -> bool:
        """Whether as many notifications wait as there may be requests."""
        limits = self._client.limits
        return self._notifications >= limits.in_flight or self._notified_bytes >= limits.in_flight_bytes

    def requested(self, call: Call) -> None:
        """Take a request."""
        self._handshakes += call.frame.method == "initialize"
        self._take(call)

    def notified(self, frame: Frame) -> None:
        """Take a notification."""
        self._notifications += 1
        self._notified_bytes += frame.size
        self._take(frame)

    def responded(self, frame: Frame) -> None:
        """Take the client's response to a request of the server."""
        if self._session is not None:
            self._session.responded(frame)

    def _take(self, item: Call | Frame) -> None:
        self._arrived.append(item)
        if not self._at_work:
            self._at_work = True
            self._client.spawn(self._work)

    async def _work(self) -> None:
        if self._session is None:
            sdk = await self._server.sdk()
            self._session = await sdk.session(self._client)
        while self._arrived:
            item = self._arrived.popleft()
            if isinstance(item, Frame):
                self._notifications -= 1
                self._notified_bytes -= item.size
                if item.method == "notifications/initialized":  # whatever follows may need it
                    await self._session.notified(item)
                else:
                    self._client.spawn(self._session.notified, item)
            elif item.frame.method == "initialize":
                await self._session.serve(item)
                self._handshakes -= 1
            elif not item.settled:
                self._client.spawn(self._session.serve, item)
        self._at_work = False
        self._client.has_changed()
