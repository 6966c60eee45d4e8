"""Sessions of the handshake era: their callers, events and end."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Final

import trio

from greenroom.transports.auth.caller import Caller
from greenroom.transports.sockets.http.event_log import EventLog
from greenroom.transports.sockets.http.response_sinks import RESUMABLE_SINCE, StreamReader
from greenroom.transports.sockets.http.service import HttpService

KEPT_EVENTS: Final = 256 * 1024
"""Bytes of events that one session keeps for a client that reconnects."""

_ID_BYTES: Final = 24


class Session:
    """One session.

    Args:
        caller: The caller who opened it, and may use it.

    Attributes:
        exchanges: The number of its open HTTP requests.
        used: When the last one ended.
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
        self._tasks = service.tasks()
        self._authenticator = service.authenticator
        self._place = ExitStack()
        self._closed = False
        self._changed = trio.lowlevel.ParkingLot()
        self.client = service.client(
            caller, self, self._tasks, has_room=self._has_room, changed=self._changed
        )

    @property
    def is_resumable(self) -> bool:
        """Whether its client expects events without a message."""
        return self.client.identity.version >= RESUMABLE_SINCE

    def is_idle(self, now: float, seconds: float) -> bool:
        """Return whether nothing has been open in it for so many seconds."""
        return not self.exchanges and not self.client.open_requests and now - self.used >= seconds

    def enter(self) -> None:
        """Count a new open HTTP request."""
        self.exchanges += 1

    def leave(self) -> None:
        """Uncount a completed HTTP request."""
        self.exchanges -= 1
        self.used = trio.current_time()

    # -- as the sink of messages that belong to no request ---------------------------------------

    def send(self, line: bytes) -> None:
        """Take a notification, or a request of the server."""
        self.log.own.add(line)

    def answer(self, line: bytes) -> None:
        """Take the answer to an unknown request."""
        self.log.own.add(line)

    def unanswered(self) -> None:
        """Do nothing: there is no request."""

    def close_stream(self) -> None:
        """Close the stream; the client resumes it later."""
        if self.log.own.reader is not None:
            self.log.own.reader.leave()

    async def room_for_notice(self) -> None:
        """Wait until a client has read nearly all of the session's own stream."""
        await self.until(self._reads)

    def _reads(self) -> bool:
        own = self.log.own
        return isinstance(own.reader, StreamReader) and (
            own.waiting + own.reader.unsent <= self.limits.unsent_notices
        )

    # -- flow control ----------------------------------------------------------------------------

    async def room(self, reader: StreamReader) -> None:
        """Wait until the client has read nearly all of a reader's output."""
        await self.until(lambda: reader.unsent <= self.limits.unsent_notices)

    def has_read(self) -> None:
        """Wake the tasks that wait for room."""
        self._changed.unpark_all()
        self.client.queue.advance()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition on this session holds."""
        while not condition():
            await self._changed.park()

    def _has_room(self) -> bool:
        return sum(reader.unsent for reader in self.readers) <= self.limits.unsent_bytes

    # -- the end ---------------------------------------------------------------------------------

    def hold_connection(self, lose: Callable[[str], None]) -> None:
        """Hold its caller's connection until the session ends; call `lose` if its right ends first."""
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
        """Whether there is a session with this id, which no answer may reveal."""
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
        return session if session is not None and session.caller.has_same_identity(caller) else None

    def end(self, session: Session) -> None:
        """End a session, unless it has ended."""
        if self._by_id.pop(session.id, None) is not None:
            session.close()

    def sweep(self, now: float) -> None:
        """End every session that has been idle for too long."""
        for session in self:
            if session.is_idle(now, self._idle):
                self.end(session)
