"""The SDK's side of one client: its rarer requests, handed over in the order of arrival.

This much is known of the SDK before it is imported.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from greenroom.transports.mcp.client_port import ClientPort
from greenroom.transports.mcp.frames.calls import Call
from greenroom.transports.mcp.frames.frames import Frame

if TYPE_CHECKING:
    from greenroom.transports.mcp.sdk_server import SdkServer, SdkSession


class SdkClient:
    """One client as the SDK sees it, which knows nothing of it before it is needed.

    Args:
        sdk: Returns the SDK's server, imported when it is first needed.
        client: The client.
    """

    def __init__(self, sdk: Callable[[], Awaitable[SdkServer]], client: ClientPort) -> None:
        self._sdk = sdk
        self._client = client
        self._session: SdkSession | None = None
        self._arrived: deque[Call | Frame] = deque()
        self._notifications = self._notified_bytes = 0
        self._handshakes = 0
        self._is_working = False

    @property
    def is_handshaking(self) -> bool:
        """Whether a handshake is under way, after which something else may hold."""
        return self._handshakes > 0

    @property
    def is_full(self) -> bool:
        """Whether as many notifications wait as there may be requests."""
        limits = self._client.limits
        return self._notifications >= limits.in_flight or self._notified_bytes >= limits.in_flight_bytes

    def take_request(self, call: Call) -> None:
        """Take a request."""
        self._handshakes += call.frame.method == "initialize"
        self._take(call)

    def take_notification(self, frame: Frame) -> None:
        """Take a notification."""
        self._notifications += 1
        self._notified_bytes += frame.size
        self._take(frame)

    def take_response(self, frame: Frame) -> None:
        """Take the client's response to a request of the server."""
        if self._session is not None:
            self._session.take_response(frame)

    def _take(self, item: Call | Frame) -> None:
        self._arrived.append(item)
        if not self._is_working:
            self._is_working = True
            self._client.spawn(self._work)

    async def _work(self) -> None:
        if self._session is None:
            sdk = await self._sdk()
            self._session = await sdk.session(self._client)
        while self._arrived:
            item = self._arrived.popleft()
            if isinstance(item, Frame):
                self._notifications -= 1
                self._notified_bytes -= item.size
                if item.method == "notifications/initialized":  # whatever follows may need it
                    await self._session.take_notification(item)
                else:
                    self._client.spawn(self._session.take_notification, item)
            elif item.frame.method == "initialize":
                await self._session.serve(item)
                self._handshakes -= 1
            elif not item.settled:
                self._client.spawn(self._session.serve, item)
        self._is_working = False
        self._client.notify_changed()
