"""Limits of one client."""

from __future__ import annotations

from typing import Final

import msgspec

UNCOUNTED: Final = frozenset({"ping", "tools/list"})
"""Requests that no rate limit counts: some clients list the tools before each call."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one connection.

    Attributes:
        frame: The longest frame, in bytes.
        in_flight: Requests that are read but not answered.
        in_flight_bytes: Bytes of their lines; the one that goes over is still read.
        unsent_bytes: Bytes of answers that the client has not read, before it is made to wait.
        unsent_notices: Bytes of anything that the client has not read, before it gets no notification.
        streams: Requests that stay open, such as listen streams; they are not counted as in flight.
        subscriptions: Resources that it hears of, on all streams together and beside them each.
        large_answers: How many requests with large answers run at once, by the weights of their answers.
        drain: Seconds that open requests and unread answers have after the end of input.
        stop: Seconds that open requests have after a request to stop.
    """

    frame: int = 8 * 1024 * 1024
    in_flight: int = 1024
    in_flight_bytes: int = 32 * 1024 * 1024
    unsent_bytes: int = 4 * 1024 * 1024
    unsent_notices: int = 4 * 1024
    streams: int = 1_000
    subscriptions: int = 10_000
    large_answers: int = 64
    drain: float = 30.0
    stop: float = 0.5
