"""Whether what clients saw of one key can have been one thing, changed by one after another: linearizability.

The answers say where each operation stands: a register's version, a log's message id. So nothing has to be
searched for. With the writes in the order of their places, and each read behind the write that it saw, a
history is linearizable just when no operation stands before one that was answered before it was sent.

Besides, what one client sends through one process happens in the order in which it was sent, and what it
was never answered happened up to some point and not after. Only a read may see what was sent after it: when
the owner of the folder dies before the answer has arrived, it is read again.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from enum import Enum
from math import inf
from typing import Literal, NamedTuple

Kind = Literal["register", "log"]


class Known(Enum):
    """What the client knows of an operation."""

    NOTHING = "it was never answered"
    DONE = "it was answered"
    REFUSED = "it was answered that nothing was done"
    UNSURE = "it was answered that it may have been done"


class Operation:
    """What a client asked of one key.

    Attributes:
        key: The key's name.
        token: What a write writes, which no other does; "" for a read.
        stream: Through which life of which process it was sent first.
        serial: Which one it was there.
        sent: When it was sent first.
        writer: As whom it was sent.
        idempotency: The idempotency key, or "".
        known: What is known of it.
        seen: When the first answer was there.
        place: What that answer said: the version or the message's id; of a log that is read, its length.
        told: The token that a read of a register was answered with, "" for none.
        repeated: Whether it was sent more than once, so that it keeps no order with others.
    """

    __slots__ = (
        "idempotency",
        "key",
        "known",
        "place",
        "repeated",
        "seen",
        "sent",
        "serial",
        "stream",
        "token",
        "told",
        "writer",
    )

    def __init__(
        self, key: str, token: str, *, stream: str, serial: int, sent: float, writer: str = ""
    ) -> None:
        self.key = key
        self.token = token
        self.stream = stream
        self.serial = serial
        self.sent = sent
        self.writer = writer
        self.idempotency = ""
        self.known = Known.NOTHING
        self.seen = inf
        self.place = 0
        self.told = ""
        self.repeated = False

    def answered(self, seen: float, place: int, told: str = "") -> None:
        """Note an answer.

        Raises:
            ValueError: it was answered otherwise before.
        """
        if self.known is Known.DONE and (place, told) != (self.place, self.told):
            raise ValueError(f"{self} was answered with {self.place} at first, and then with {place}")
        self.seen = min(self.seen, seen)
        self.known, self.place, self.told = Known.DONE, place, told

    def __str__(self) -> str:
        what = f"the write of {self.token}" if self.token else "a read"
        return f"{what} ({self.stream}, {self.serial})"


class Stored(NamedTuple):
    """What is found at the end: the version or the message's id, what was written, and by whom."""

    place: int
    token: str
    writer: str = ""


class Placed(NamedTuple):
    """An operation at its place among the others: the n-th write at 2n, who saw n writes at 2n+1."""

    operation: Operation
    place: int


def faults(kind: Kind, operations: Sequence[Operation], stored: Sequence[Stored]) -> list[str]:
    """Return a sentence for everything that is wrong with the history of one key.

    Args:
        kind: What the key is.
        operations: All that was ever asked of it, which is over now.
        stored: Everything that is there at the end, in order.
    """
    found = _of_the_end(kind, operations, stored)
    order = {entry.place: number for number, entry in enumerate(stored, start=1)}
    numbers = {entry.token: number for number, entry in enumerate(stored, start=1)}
    placed = []
    for operation in operations:
        fault = _fault(kind, operation, stored, order, numbers)
        if fault:
            found.append(f"{operation}: {fault}")
        elif operation.token in numbers:
            placed.append(Placed(operation, 2 * numbers[operation.token]))
        elif not operation.token and operation.known is Known.DONE:
            placed.append(Placed(operation, 2 * operation.place + 1))
    return found + _against_time(placed) + _against_order(operations, placed)


def _of_the_end(kind: Kind, operations: Sequence[Operation], stored: Sequence[Stored]) -> list[str]:
    found = []
    places = [entry.place for entry in stored]
    if kind == "register" and places != list(range(1, len(places) + 1)):
        found.append(f"the versions have gaps: {places}")
    elif any(later <= earlier for earlier, later in itertools.pairwise(places)):
        found.append("the places do not rise")
    writers = {operation.token: operation.writer for operation in operations if operation.token}
    once: set[str] = set()
    for entry in stored:
        if entry.token in once:
            found.append(f"{entry.token} is there twice")
        elif entry.token not in writers:
            found.append(f"{entry.token} is there, and nobody wrote it")
        elif entry.writer and entry.writer != writers[entry.token]:
            found.append(f"{entry.token} was written by {writers[entry.token]} and is {entry.writer}'s")
        once.add(entry.token)
    return found


def _fault(
    kind: Kind,
    operation: Operation,
    stored: Sequence[Stored],
    order: Mapping[int, int],
    numbers: Mapping[str, int],
) -> str:
    """Return what is wrong with one operation beside what there is at the end, or nothing."""
    number = numbers.get(operation.token)
    if operation.known is Known.REFUSED and number is not None:
        return "it was refused, and done"
    if operation.known is not Known.DONE:
        return ""
    if not operation.token:
        return _misread(kind, operation, stored)
    if number is None:
        return f"it was answered with {operation.place}, and is lost"
    if order.get(operation.place) != number:
        return f"it was answered with {operation.place}, and stands at {stored[number - 1].place}"
    return ""


def _misread(kind: Kind, operation: Operation, stored: Sequence[Stored]) -> str:
    if operation.place > len(stored):
        return f"it saw {operation.place} writes of {len(stored)}"
    right = stored[operation.place - 1].token if operation.place else ""
    if kind == "register" and operation.told != right:
        return f"version {operation.place} was {operation.told}, and is {right}"
    return ""


def _against_time(placed: Sequence[Placed]) -> list[str]:
    """Find what stands before something that was answered before it was sent."""
    found = []
    ended = sorted(placed, key=lambda each: each.operation.seen)
    latest: Placed | None = None
    over = 0
    for each in sorted(placed, key=lambda each: each.operation.sent):
        while ended[over].operation.seen < each.operation.sent:
            if latest is None or ended[over].place > latest.place:
                latest = ended[over]
            over += 1
        if latest is not None and latest.place > each.place:
            late = (each.operation.sent - latest.operation.seen) * 1e3
            found.append(
                f"{each.operation} stands at {each.place / 2:g}, and {latest.operation}, "
                f"answered {late:.1f} ms before it was sent, at {latest.place / 2:g}"
            )
    return found


def _against_order(operations: Sequence[Operation], placed: Sequence[Placed]) -> list[str]:
    """Find what happened in another order than it was sent in, or without what was sent before it."""
    found = []
    places = {id(each.operation): each.place for each in placed}
    streams: dict[str, list[Operation]] = defaultdict(list)
    for operation in operations:
        if not operation.repeated:
            streams[operation.stream].append(operation)
    for stream in streams.values():
        last: tuple[int, Operation] | None = None
        skipped: Operation | None = None
        for operation in sorted(stream, key=lambda each: each.serial):
            place = places.get(id(operation))
            if place is None:
                if operation.token and operation.known is Known.NOTHING:
                    skipped = operation
                continue
            if last is not None and place < last[0]:
                found.append(f"{operation} was sent after {last[1]} and happened before it")
            if skipped is not None:
                found.append(f"{operation} happened, but not {skipped}, sent before it")
            if operation.token:
                last = (place, operation)
    return found
