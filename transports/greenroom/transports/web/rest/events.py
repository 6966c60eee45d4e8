"""Changes of resources as server-sent events.

If a client does not read, only one flag for each subscribed resource is kept. A client that returns with
``Last-Event-ID`` may have missed changes, so it gets one event for each resource.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from math import inf
from typing import Final

import msgspec

from greenroom.runtime import RuntimeClosedError
from greenroom.transports.mcp.agent_port import SubscriberPort
from greenroom.transports.sockets.http.responses import Header

MOST_TOPICS: Final = 100
RETRY: Final = 2_000
"""Milliseconds after which a client with a broken stream reconnects."""


class EventStream:
    """One client's stream of changes, in the form that `Exchange.settle` sends."""

    line: bytes | None = None
    patience = inf
    headers: Sequence[Header] = ()
    streams = True

    def __init__(
        self, wake: Callable[[], None], check: Callable[[], object], missed: Iterable[str] = ()
    ) -> None:
        self._wake = wake
        self._check = check
        self._changed = dict.fromkeys(missed)
        self._number = 0
        self._reason: str | None = None
        self._is_over = False

    async def follow(self, subscriber: SubscriberPort) -> None:
        """Take changes from the bus until the runtime is closed."""
        with suppress(RuntimeClosedError):
            while True:
                uri = await subscriber.next()
                self._changed[uri] = None
                self._wake()
        self.end("the server is stopping")

    def end(self, reason: str) -> None:
        """End the stream with a reason; a second call does nothing."""
        if self._reason is None:
            self._reason = reason
            self._wake()

    def begin(self) -> None:
        """Do nothing: the stream runs from the start."""

    def mark_sent(self) -> None:
        """Do nothing: sent events are not kept."""

    def opening(self) -> bytes:
        """Return the first lines of the stream."""
        return b"retry: %d\r\nid: 0\r\n\r\n" % RETRY

    def take(self) -> bytes:
        """Return the new events."""
        self._check()
        changed, self._changed = self._changed, {}
        events = [self._event(b"change", {"uri": uri}) for uri in changed]
        if self._reason is not None and not self._is_over:
            events.append(self._event(b"end", {"reason": self._reason}))
            self._is_over = True
        return b"".join(events)

    @property
    def over(self) -> bool:
        """Whether the stream ends after the new events."""
        return self._is_over

    def _event(self, name: bytes, data: dict[str, str]) -> bytes:
        self._number += 1
        return b"id: %d\r\nevent: %b\r\ndata: %b\r\n\r\n" % (self._number, name, msgspec.json.encode(data))
