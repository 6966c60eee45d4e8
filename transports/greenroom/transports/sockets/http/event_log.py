"""The log of a session's event streams, from which a client resumes a stream.

Streams are numbered. Stream 0 is the session's own, which a GET opens; each request that is answered with a
stream has its own. An event's id is its stream and its number among all events of the session, for example
``3-17``.

The log is bounded:

- Events that a connected client has not taken yet are kept; `Stream.waiting` is their size.
- On the session's own stream, only the last of equal notifications of a changed resource is kept. It replaces
        earlier ones, read or not. So there is one per resource, even if the client never reads.
- When there are too many other events, the oldest are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile
from typing import Final, Protocol

UPDATED: Final = b'{"jsonrpc":"2.0","method":"notifications/resources/updated",'
"""The start of a notification that a later equal one replaces."""

PING: Final = b": ping\r\n\r\n"

_ID: Final = re.compile(rb"(0|[1-9][0-9]{0,17})-(0|[1-9][0-9]{0,17})")


def event(line: bytes, id: bytes | None = None) -> bytes:
    """Encode a message, a line of JSON, as an event of a stream."""
    if id is None:
        return b"event: message\r\ndata: %b\r\n\r\n" % line.removesuffix(b"\n")
    return b"id: %b\r\nevent: message\r\ndata: %b\r\n\r\n" % (id, line.removesuffix(b"\n"))


def priming(id: bytes, retry: float) -> bytes:
    """Encode an event without a message: it has an id to resume from."""
    return b"id: %b\r\nretry: %d\r\ndata: \r\n\r\n" % (id, round(retry * 1000))


class Reader(Protocol):
    """The writer of a stream to a client."""

    def wake(self) -> None:
        """Wake: the stream has something new."""

    def leave(self) -> None:
        """Write the remaining events, and end."""


class Stream:
    """One stream of a session's events.

    Attributes:
        waiting: Bytes of messages that its reader has not taken.
        reader: Writes it to a client; None while no client is connected.
    """

    __slots__ = ("_given", "_lines", "_log", "number", "over", "reader", "waiting")

    def __init__(self, log: EventLog, number: int, given: int) -> None:
        self.number = number
        self.over = False
        self.waiting = 0
        self.reader: Reader | None = None
        self._given = given
        self._log = log
        self._lines: dict[int, bytes] = {}

    # -- in --------------------------------------------------------------------------------------

    def add(self, line: bytes) -> None:
        """Add a message to the stream."""
        number = self._log.new_number(self, line)
        self._lines[number] = line
        if self.reader is None:
            self._log.spare(self, number, line)
        else:
            self.waiting += len(line)
            self.reader.wake()

    def end(self, line: bytes | None = None) -> None:
        """Add the last message, if any, and end the stream."""
        self.over = True
        if line is not None:
            self.add(line)
        elif self.reader is not None:
            self.reader.wake()

    # -- out -------------------------------------------------------------------------------------

    def attach(self, reader: Reader) -> None:
        """Give the stream to a reader; the reader before it leaves."""
        if self.reader is not None:
            self.reader.leave()
        self.reader, self.waiting = reader, 0
        for number, line in self._new():
            self.waiting += len(line)
            self._log.hold(number, line)

    def detach(self, reader: Reader) -> None:
        """Take the stream from a reader, if the reader has it."""
        if self.reader is reader:
            self.reader, self.waiting = None, 0
            for number, line in self._new():
                self._log.spare(self, number, line)

    def mark(self) -> bytes:
        """Return an id that precedes all events still to be sent."""
        return b"%d-%d" % (self.number, self._given)

    def take(self) -> bytes:
        """Return the new events, encoded."""
        new = self._new()
        if not new:
            return b""
        self._given, self.waiting = new[-1][0], 0
        for number, line in new:
            self._log.spare(self, number, line)
        return b"".join(event(line, b"%d-%d" % (self.number, number)) for number, line in new)

    # -- for the log -----------------------------------------------------------------------------

    def rewind(self, number: int) -> bool:
        """Go back to just after an event; return whether events follow it, or will."""
        self._given = number
        return not self.over or (bool(self._lines) and next(reversed(self._lines)) > number)

    def drop(self, number: int) -> int:
        """Drop an event; return its length."""
        line = self._lines.pop(number)
        if self.reader is not None and number > self._given:
            self.waiting -= len(line)
        return len(line)

    @property
    def is_spent(self) -> bool:
        """Whether the log has none of its events, and none will come."""
        return self.over and not self._lines

    def _new(self) -> list[tuple[int, bytes]]:
        newest_first: Iterator[tuple[int, bytes]] = reversed(self._lines.items())
        new = list(takewhile(lambda each: each[0] > self._given, newest_first))
        new.reverse()
        return new


class EventLog:
    """The events of one session.

    Args:
        size: The most bytes of kept events that were sent, or have no connected client.
        updates: The most notifications of changed resources that are kept in addition.

    Attributes:
        own: The stream that belongs to no request.
    """

    def __init__(self, size: int, updates: int) -> None:
        self._size = size
        self._most_updates = updates
        self._last = 0
        self._begun = 0
        self.own = Stream(self, 0, 0)
        self._streams: dict[int, Stream] = {0: self.own}
        self._spare: dict[int, Stream] = {}  # events that may be dropped, in that order
        self._spare_bytes = 0
        self._updates: dict[bytes, int] = {}

    def begin(self) -> Stream:
        """Return a new stream."""
        self._begun += 1
        self._streams[self._begun] = stream = Stream(self, self._begun, self._last)
        return stream

    def find(self, id: bytes) -> Stream | None:
        """Return the stream of an event's id, rewound to just after that event.

        None if there is nothing to resume: the id is from another session, or its stream is over and has no
        later events.
        """
        match = _ID.fullmatch(id)
        stream = self._streams.get(int(match[1])) if match is not None else None
        if match is None or stream is None or int(match[2]) > self._last:
            return None
        if stream.reader is not None:
            stream.reader.leave()  # the client knows that the old reader is not connected
            stream.detach(stream.reader)
        return stream if stream.rewind(int(match[2])) else None

    def readers(self) -> list[Reader]:
        """Return the current readers."""
        return [stream.reader for stream in self._streams.values() if stream.reader is not None]

    # -- for streams -----------------------------------------------------------------------------

    def new_number(self, stream: Stream, line: bytes) -> int:
        """Return the number of a new event."""
        self._last += 1
        if _is_update(stream, line):
            earlier = self._updates.pop(line, None)
            if earlier is None and len(self._updates) >= self._most_updates:
                earlier = self._updates.pop(next(iter(self._updates)))
            if earlier is not None:
                stream.drop(earlier)
            self._updates[line] = self._last
        return self._last

    def hold(self, number: int, line: bytes) -> None:
        """Keep an event in any case: it waits for a connected client."""
        if self._spare.pop(number, None) is not None:
            self._spare_bytes -= len(line)

    def spare(self, stream: Stream, number: int, line: bytes) -> None:
        """Keep an event as long as there is room."""
        if number in self._spare or _is_update(stream, line):
            return
        self._spare[number] = stream
        self._spare_bytes += len(line)
        while self._spare_bytes > self._size and len(self._spare) > 1:
            oldest = next(iter(self._spare))
            other = self._spare.pop(oldest)
            self._spare_bytes -= other.drop(oldest)
            if other.is_spent:
                self._streams.pop(other.number, None)


def _is_update(stream: Stream, line: bytes) -> bool:
    return stream.number == 0 and line.startswith(UPDATED)
