"""Sessions of the handshake era: their callers, their streams of events, their end.

Sinks never wait. Unread output is bounded: a notification is made only when there is room, and a client with
more than `Limits.unsent_bytes` of unread output is disconnected.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from math import inf
from typing import Final

import trio

from greenroom.transports.auth.caller import Caller
from greenroom.transports.mcp.frames.frames import error_line
from greenroom.transports.sockets.http.asgi_exchange import PING_INTERVAL, Exchange
from greenroom.transports.sockets.http.endpoint import ClientTasks, HttpService
from greenroom.transports.sockets.http.event_log import EventLog, Stream, priming
from greenroom.transports.sockets.http.request_head import SESSION_ID
from greenroom.transports.sockets.http.responses import Header

KEPT_EVENTS: Final = 256 * 1024
"""Bytes of events that one session keeps for a client that reconnects."""

_ID_BYTES: Final = 24

REQUEST_CANCELLED: Final = -32800
"""The error code for a cancelled request of the handshake era, which HTTP requires to be answered."""

RETRY: Final = 1.0
"""Seconds after which a client with a broken stream should reconnect."""

PRIMED_AFTER: Final = 1.0
"""Seconds without an answer after which a client gets an id to resume from."""

RESUMABLE_SINCE: Final = "2025-11-25"
"""The first revision with events without a message."""


class Session:
    """One session.

    Args:
        caller: The caller who opened it, and may use it.

    Attributes:
        exchanges: The number of its open HTTP requests.
        readers: The readers that write to its client.
    """

    def __init__(self, service: HttpService, caller: Caller) -> None:
        self.id = secrets.token_urlsafe(_ID_BYTES)
        self.caller = caller
        self.limits = service.limits
        self.log = EventLog(KEPT_EVENTS, service.limits.subscriptions)
        self.exchanges = 0
        self.used = trio.current_time()
        self.readers: set[StreamReader] = set()
        self._tasks = ClientTasks(service.start)
        self._authenticator = service.authenticator
        self._place = ExitStack()
        self._closed = False
        self._changed = trio.lowlevel.ParkingLot()
        self.client = service.client(
            caller,
            self,
            self._tasks,
            has_room=lambda: sum(each.unsent for each in self.readers) <= self.limits.unsent_bytes,
            changed=self._changed,
        )

    @property
    def is_resumable(self) -> bool:
        """Whether its client expects events without a message."""
        return self.client.identity.version >= RESUMABLE_SINCE

    def is_idle(self, now: float, seconds: float) -> bool:
        """Return whether it has had nothing open for ``seconds``."""
        return not self.exchanges and not self.client.open_requests and now - self.used >= seconds

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Count an open HTTP request while the block runs."""
        self.exchanges += 1
        try:
            yield
        finally:
            self.exchanges -= 1
            self.used = trio.current_time()

    # -- as the sink of messages that belong to no request ---------------------------------------

    def send(self, line: bytes) -> None:
        """Take a notification, or a request of the server."""
        self.log.own.add(line)

    answer = send  # an answer to an unknown request

    def unanswered(self) -> None:
        """Do nothing: there is no request."""

    def close_stream(self) -> None:
        """Close the stream; the client resumes it later."""
        if self.log.own.reader is not None:
            self.log.own.reader.leave()

    async def room_for_notice(self) -> None:
        """Wait until a client has read nearly all of the session's own stream."""
        own = self.log.own
        await self.until(
            lambda: (
                isinstance(own.reader, StreamReader)
                and own.waiting + own.reader.unsent <= self.limits.unsent_notices
            )
        )

    # -- flow control ----------------------------------------------------------------------------

    def has_read(self) -> None:
        """Wake the tasks that wait for room."""
        self._changed.unpark_all()
        self.client.queue.advance()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition on this session holds."""
        while not condition():
            await self._changed.park()

    # -- the end ---------------------------------------------------------------------------------

    def hold_connection(self, lose: Callable[[str], None]) -> None:
        """Hold the caller's connection until the session ends; call `lose` if its right ends first."""
        self._place.enter_context(self._authenticator.hold_connection(self.caller, lose))
        if self._closed:  # the right had ended already, and the session ends only once
            self._place.close()

    def close(self) -> None:
        """End the session: open requests are cancelled, and streams end."""
        self._closed = True
        self._place.close()
        self.client.close()
        for reader in self.log.readers():
            reader.leave()
        self._tasks.cancel()


class Sessions:
    """All sessions, by id."""

    def __init__(self, limit: int, idle: float) -> None:
        self._limit = limit
        self._idle = idle
        self._by_id: dict[str, Session] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, id: str) -> bool:
        """Whether there is a session with this id; no answer may reveal this."""
        return id in self._by_id

    def __iter__(self) -> Iterator[Session]:
        return iter(list(self._by_id.values()))

    @property
    def is_full(self) -> bool:
        """Whether the limit is reached."""
        return len(self._by_id) >= self._limit

    def add(self, session: Session) -> None:
        """Add a new session."""
        self._by_id[session.id] = session

    def find(self, id: str, caller: Caller) -> Session | None:
        """Return the session with an id, if this caller opened it."""
        session = self._by_id.get(id)
        return session if session is not None and session.caller.identity == caller.identity else None

    def end(self, session: Session) -> None:
        """End a session, unless it has ended."""
        if self._by_id.pop(session.id, None) is not None:
            session.close()

    def sweep(self, now: float) -> None:
        """End every session that has been idle for too long."""
        for session in self:
            if session.is_idle(now, self._idle):
                self.end(session)


class StreamReader:
    """Writes one of a session's streams to a client."""

    line: bytes | None = None
    patience = PING_INTERVAL
    headers: Sequence[Header] = ()

    def __init__(
        self,
        exchange: Exchange,
        session: Session,
        stream: Stream | None = None,
        *,
        is_resumed: bool = False,
    ) -> None:
        self.unsent = 0
        self._is_resumed = is_resumed
        self._exchange = exchange
        self._session = session
        self._stream = stream
        self._left = False
        self._parted = False
        session.readers.add(self)
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
        if self._is_resumed or not self._session.is_resumable:
            return b""  # the client has an id to resume from, or cannot use an id
        return priming(self._stream.mark(), RETRY)

    def take(self) -> bytes:
        """Return the new events; after `leave`, for the last time."""
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
        self._session.readers.discard(self)
        self._parted, self.unsent = True, 0
        if self._stream is not None:
            self._stream.detach(self)
        self._session.has_read()


class SessionResponse(StreamReader):
    """The response to a request in a session: JSON, or a resumable stream.

    Args:
        opens: Whether it opens the session, so that the response must name the session's id.
    """

    def __init__(self, exchange: Exchange, session: Session, id: bytes, *, opens: bool) -> None:
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
        await self._session.until(lambda: self.unsent <= self._session.limits.unsent_notices)

    def begin(self) -> None:
        """Become a stream, unless the client has disconnected without an id to resume from."""
        if self._stream is None and not self._parted:
            self._stream = self._session.log.begin()
            self._stream.attach(self)
            self._exchange.wake()
