"""Sessions of the handshake era: their owners, their events, their end."""

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
"""Bytes of events that one session keeps for a client that comes back."""

_ID_BYTES: Final = 24


class Session:
    """One session.

    Args:
        service: What it shares with all others.
        caller: Who opened it, and may use it.

    Attributes:
        id: What its client names it by.
        client: Its client.
        log: What went out on its streams.
        exchanges: How many HTTP requests of it are under way.
        used: When the last one ended.
        readers: Whoever writes answers to its client.
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
        """Whether its client expects an event without a message."""
        return self.client.identity.version >= RESUMABLE_SINCE

    def is_idle(self, now: float, seconds: float) -> bool:
        """Return whether nothing is open in it, and nothing was for so many seconds."""
        return not self.exchanges and not self.client.open_requests and now - self.used >= seconds

    def enter(self) -> None:
        """Count an HTTP request that is under way."""
        self.exchanges += 1

    def leave(self) -> None:
        """Count it no more."""
        self.exchanges -= 1
        self.used = trio.current_time()

    # -- where goes what belongs to no request ---------------------------------------------------

    def send(self, line: bytes) -> None:
        """Take a notification, or a request of the server."""
        self.log.own.add(line)

    def answer(self, line: bytes) -> None:
        """Take what answers no request that is known."""
        self.log.own.add(line)

    def unanswered(self) -> None:
        """Do nothing: nobody waits."""

    def close_stream(self) -> None:
        """Close the stream; the client resumes it later."""
        if self.log.own.reader is not None:
            self.log.own.reader.leave()

    async def room_for_notice(self) -> None:
        """Wait until there is a client that reads the session's own stream, and nearly all was read."""
        await self.until(self._reads)

    def _reads(self) -> bool:
        own = self.log.own
        return isinstance(own.reader, StreamReader) and (
            own.waiting + own.reader.unsent <= self.limits.unsent_notices
        )

    # -- what its client has read ----------------------------------------------------------------

    async def room(self, reader: StreamReader) -> None:
        """Wait until nearly all was read of what a reader writes."""
        await self.until(lambda: reader.unsent <= self.limits.unsent_notices)

    def has_read(self) -> None:
        """Wake whoever waits for room."""
        self._changed.unpark_all()
        self.client.queue.advance()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds that depends on this session."""
        while not condition():
            await self._changed.park()

    def _has_room(self) -> bool:
        return sum(reader.unsent for reader in self.readers) <= self.limits.unsent_bytes

    # -- the end ---------------------------------------------------------------------------------

    def hold_connection(self, lose: Callable[[str], None]) -> None:
        """Hold its caller's connection, until the session ends; call `lose` when its right ends first."""
        self._place.enter_context(self._authenticator.hold_connection(self.caller, lose))
        if self._closed:  # it opened nothing any more when it came to this, and nobody ends it twice
            self._place.close()

    def close(self) -> None:
        """End it: what is open is called off, and streams end."""
        self._closed = True
        self._place.close()
        self.client.close()
        for reader in self.log.readers():
            reader.leave()
        self._tasks.cancel()


class Sessions:
    """All sessions, by id.

    Args:
        limit: How many there may be.
        idle: Seconds without anything open after which one ends.
    """

    def __init__(self, limit: int, idle: float) -> None:
        self._limit = limit
        self._idle = idle
        self._by_id: dict[str, Session] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, id: str) -> bool:
        """Whether anybody has a session with this id, which no answer may show."""
        return id in self._by_id

    def __iter__(self) -> Iterator[Session]:
        return iter(list(self._by_id.values()))

    @property
    def is_full(self) -> bool:
        """Whether there is room for no more."""
        return len(self._by_id) >= self._limit

    def add(self, session: Session) -> None:
        """Take a new session."""
        self._by_id[session.id] = session

    def find(self, id: str, caller: Caller) -> Session | None:
        """Return the session with an id, if this caller opened it."""
        session = self._by_id.get(id)
        return session if session is not None and session.caller.has_same_identity(caller) else None

    def end(self, session: Session) -> None:
        """End a session, if it has not ended."""
        if self._by_id.pop(session.id, None) is not None:
            session.close()

    def sweep(self, now: float) -> None:
        """End every session that is idle for too long."""
        for session in self:
            if session.is_idle(now, self._idle):
                self.end(session)
