"""An actor that leaves every kind of effect, so that a model can tell whether all of them are there."""

from __future__ import annotations

from typing import NamedTuple

from greenroom.runtime import (
    Actor,
    Address,
    Context,
    Index,
    IndexReader,
    Message,
    Procedure,
    Refusal,
    handles,
)


class Deed(NamedTuple):
    """What a ledger wrote down of one request.

    Attributes:
        number: Counts the ledger's requests from 1.
        tells: The ledgers that were told.
        rings: Whether a timer was set.
    """

    number: int
    tells: tuple[str, ...]
    rings: bool


class Perform(Message[int], frozen=True):
    """Write a deed down: a record, a count, a shared row, tells and a timer; answer with its number."""

    name: str
    tells: tuple[str, ...] = ()
    rings_in: int | None = None
    """Microseconds."""
    refuse: bool = False


class Hear(Message[None], frozen=True):
    """What a ledger tells another one."""

    sender: str
    number: int


class Wake(Message[None], frozen=True):
    name: str


class Book(NamedTuple):
    """All that a ledger holds."""

    total: int
    deeds: dict[str, Deed]
    heard: list[tuple[str, int]]
    woken: list[str]


class Report(Message[Book], frozen=True):
    pass


class Ledger(Actor):
    """Counts in memory and in the store, so that a difference shows."""

    kind = "ledger"

    def activate(self, context: Context) -> None:
        self.count = context.get(b"count", int) or 0

    @handles(Perform)
    def perform(self, message: Perform, context: Context) -> int:
        if message.refuse:
            raise Refusal("NOT_NOW", message.name)
        if context.get(b"deed" + message.name.encode(), Deed) is not None:
            raise AssertionError(f"{message.name} was done before")
        self.count += 1
        deed = Deed(self.count, message.tells, message.rings_in is not None)
        context.put(b"deed" + message.name.encode(), deed)
        context.put(b"count", self.count)
        context.put_row("deeds", message.name.encode(), self.count)
        for key in message.tells:
            context.tell(Address("ledger", key), Hear(sender=context.address.key, number=self.count))
        if message.rings_in is not None:
            context.set_timer(message.name, context.now + message.rings_in, Wake(name=message.name))
        return self.count

    @handles(Hear)
    def hear(self, message: Hear, context: Context) -> None:
        self._append(context, b"heard", (message.sender, message.number))

    @handles(Wake)
    def wake(self, message: Wake, context: Context) -> None:
        self._append(context, b"woken", message.name)

    @handles(Report)
    def report(self, _message: Report, context: Context) -> Book:
        assert self.count == (context.get(b"count", int) or 0)
        deeds = {key[4:].decode(): deed for key, deed in context.scan(Deed, prefix=b"deed")}
        heard = [entry for _, entry in context.scan(tuple[str, int], prefix=b"heard")]
        return Book(self.count, deeds, heard, [name for _, name in context.scan(str, prefix=b"woken")])

    def _append(self, context: Context, prefix: bytes, entry: object) -> None:
        last = next(context.scan(object, prefix=prefix, reverse=True), None)
        number = 0 if last is None else int.from_bytes(last[0][len(prefix) :]) + 1
        context.put(prefix + number.to_bytes(4), entry)


class DeedRows(Procedure[list[tuple[str, str, int]]], frozen=True):
    """All rows of the index of deeds: ledger, deed, number."""

    runs = "snapshot"

    def run(self, reader: IndexReader) -> list[tuple[str, str, int]]:
        return [(row.address.key, row.sort_key.decode(), row.value) for row in reader.rows("deeds", int)]


INDEXES = (Index("deeds"),)
