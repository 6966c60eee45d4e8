"""Sinks that make HTTP responses of the lines for one request.

A sink never waits. Unread output is bounded: a notification is made only when there is room, and a client
with more than `Limits.unsent_bytes` of unread output is disconnected.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Final, Protocol

import trio

from greenroom.transports.mcp.frames.calls import Limits
from greenroom.transports.mcp.frames.frames import error_line
from greenroom.transports.sockets.http.asgi_exchange import PING_INTERVAL, Exchange
from greenroom.transports.sockets.http.event_log import EventLog, Stream, event, priming
from greenroom.transports.sockets.http.request_head import SESSION_ID
from greenroom.transports.sockets.http.responses import Header

REQUEST_CANCELLED: Final = -32800
"""The error code for a cancelled request of the handshake era, which HTTP requires to be answered."""

RETRY: Final = 1.0
"""Seconds after which a client with a broken stream should reconnect."""

PRIMED_AFTER: Final = 1.0
"""Seconds without an answer after which a client gets an id to resume from."""

RESUMABLE_SINCE: Final = "2025-11-25"
"""The first revision with events without a message."""


class StatelessResponse:
    """The response in the later era: JSON, or a stream after its first notification."""

    patience = PING_INTERVAL
    headers: Sequence[Header] = ()

    __slots__ = ("_done", "_events", "_exchange", "_limits", "_room", "_unsent", "line", "streams")

    def __init__(self, exchange: Exchange, limits: Limits) -> None:
        self.line: bytes | None = None
        self.streams = False
        self._done = False
        self._events: list[bytes] = []
        self._unsent = 0
        self._exchange = exchange
        self._limits = limits
        self._room: trio.Event | None = None

    # -- as a sink -----------------------------------------------------------------------------

    def send(self, line: bytes) -> None:
        """Take a notification."""
        self.streams = True
        self._events.append(event(line))
        self._unsent += len(line)
        if self._unsent > self._limits.unsent_bytes:
            self._exchange.abort()
        self._exchange.wake()

    def answer(self, line: bytes) -> None:
        """Take the answer."""
        self._done = True
        if self.streams:
            self._events.append(event(line))
        else:
            self.line = line
        self._exchange.wake()

    def unanswered(self) -> None:
        """End without an answer."""
        self._done = True
        self._exchange.wake()

    def close_stream(self) -> None:
        """Do nothing: streams of this era are not resumed."""

    async def room_for_notice(self) -> None:
        """Wait until the client has read nearly all of its output."""
        while self._unsent > self._limits.unsent_notices:
            self._room = trio.Event()
            await self._room.wait()

    # -- as a response ---------------------------------------------------------------------------

    def begin(self) -> None:
        """Become a stream."""
        self.streams = True

    def opening(self) -> bytes:
        """Return the first bytes of the stream."""
        return b""

    def take(self) -> bytes:
        """Return the new events."""
        events, self._events = self._events, []
        return b"".join(events)

    def mark_sent(self) -> None:
        """Record that the client has taken the events."""
        self._unsent = sum(map(len, self._events))
        if self._room is not None and self._unsent <= self._limits.unsent_notices:
            self._room.set()

    @property
    def over(self) -> bool:
        """Whether the stream ends after its new events."""
        return self._done


class StreamOwner(Protocol):
    """A session, as its readers use it.

    Attributes:
        id: Its id.
        limits: The limits of its client.
        log: The events of its streams.
    """

    id: str
    limits: Limits
    log: EventLog

    @property
    def is_resumable(self) -> bool:
        """Whether its client expects events without a message."""

    def has_read(self) -> None:
        """Wake the tasks that wait for room."""

    async def room(self, reader: StreamReader) -> None:
        """Wait until the client has read nearly all of a reader's output."""


class StreamReader:
    """Writes one of a session's streams to a client."""

    line: bytes | None = None
    patience = PING_INTERVAL
    headers: Sequence[Header] = ()

    def __init__(self, exchange: Exchange, session: StreamOwner, stream: Stream | None = None) -> None:
        self.unsent = 0
        self._exchange = exchange
        self._session = session
        self._stream = stream
        self._left = False
        self._parted = False
        if stream is not None:
            stream.attach(self)
            session.has_read()

    @property
    def streams(self) -> bool:
        """Whether it is a stream."""
        return self._stream is not None

    # -- for its stream --------------------------------------------------------------------------

    def wake(self) -> None:
        """Wake: the stream has something new."""
        assert self._stream is not None, "it wakes its reader"
        waiting = self.unsent + self._stream.waiting
        if waiting > self._session.limits.unsent_bytes and not self._stream.over:  # an answer may exceed it
            self._exchange.abort()
        self._exchange.wake()

    def leave(self) -> None:
        """Write the remaining events, and end."""
        self._left = True
        self._exchange.wake()

    # -- as a response ---------------------------------------------------------------------------

    def begin(self) -> None:
        """Become a stream."""
        assert self._stream is not None, "only the answer to a request is no stream at first"

    def opening(self) -> bytes:
        """Return the first bytes of the stream."""
        assert self._stream is not None, "it is a stream now"
        if not self._session.is_resumable:
            return b""
        return priming(self._stream.mark(), RETRY)

    def take(self) -> bytes:
        """Return the new events; of a stream that was left, for the last time."""
        stream = self._stream
        if stream is None or stream.reader is not self:
            return b""
        self.unsent += stream.waiting
        data = stream.take()
        if self._left:
            stream.detach(self)
        return data

    def mark_sent(self) -> None:
        """Record that the client has taken the events."""
        self.unsent = 0
        self._session.has_read()

    @property
    def over(self) -> bool:
        """Whether the stream ends after its new events."""
        return self._left or (self._stream is not None and self._stream.over)

    def disconnect(self) -> None:
        """Release the stream: the client has disconnected."""
        self._parted, self.unsent = True, 0
        if self._stream is not None:
            self._stream.detach(self)
        self._session.has_read()


class ResumedStream(StreamReader):
    """Writes a stream that a client resumes."""

    def opening(self) -> bytes:
        """Return nothing: the client has an id to resume from."""
        return b""


class SessionResponse(StreamReader):
    """The response to a request in a session: JSON, or a resumable stream.

    Args:
        opens: Whether it opens the session, so that the response must name the session's id.
    """

    def __init__(self, exchange: Exchange, session: StreamOwner, id: bytes, *, opens: bool) -> None:
        super().__init__(exchange, session)
        self.line = None
        if opens:
            self.patience = inf  # the head of the response names the session
            self.headers = [(SESSION_ID, session.id.encode())]
        else:
            self.patience = PRIMED_AFTER if session.is_resumable else PING_INTERVAL
        self._id = id

    def send(self, line: bytes) -> None:
        """Take a notification, or a request of the server."""
        self.begin()
        if self._stream is not None:
            self._stream.add(line)

    def answer(self, line: bytes) -> None:
        """Take the answer."""
        if self._stream is not None:
            self._stream.end(line)
        elif not self._parted:
            self.line, self.unsent = line, len(line)
            self._exchange.wake()

    def unanswered(self) -> None:
        """Answer that the request was cancelled."""
        self.answer(error_line(self._id, REQUEST_CANCELLED, "Request cancelled"))

    def close_stream(self) -> None:
        """Close the stream; the client resumes it later, if it can."""
        if self._session.is_resumable:
            self.begin()
            self.leave()

    async def room_for_notice(self) -> None:
        """Wait until the client has read nearly all of its output."""
        await self._session.room(self)

    def begin(self) -> None:
        """Become a stream, unless the client has disconnected without an id to resume from."""
        if self._stream is None and not self._parted:
            self._stream = self._session.log.begin()
            self._stream.attach(self)
            self._exchange.wake()
