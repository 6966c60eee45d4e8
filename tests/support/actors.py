"""Actors that the tests of the runtime share. Each is the smallest that shows one thing."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from greenroom.runtime import (
    WAITING,
    Actor,
    Address,
    Context,
    Index,
    IndexReader,
    Message,
    Procedure,
    Refusal,
    Slices,
    handles,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


class Add(Message[int], frozen=True):
    by: int = 1


class Read(Message[int], frozen=True):
    only_reads: ClassVar[bool] = True


class FailAfter(Message[int], frozen=True):
    """Add, stage, and raise: nothing of it may stay."""

    by: int = 1
    sentence: str = "told to fail"


class RefuseAdd(Message[int], frozen=True):
    """Say no, with or without having begun to change."""

    by: int = 0


class AddSlowly(Message[int], frozen=True):
    """Add one in each step of a generator, staging each."""

    steps: int
    yields: bool = True


class Whoami(Message[str], frozen=True):
    only_reads: ClassVar[bool] = True


class Counter(Actor):
    """Keeps its sum in memory and in one record, so that a rollback of one without the other shows."""

    kind = "counter"
    alive: ClassVar[list[str]] = []
    """Who was activated, in order."""

    def activate(self, context: Context) -> None:
        self.sum = context.get(b"sum", int) or 0
        Counter.alive.append(context.address.key)

    @handles(Add)
    def add(self, message: Add, context: Context) -> int:
        self.sum += message.by
        context.put(b"sum", self.sum)
        return self.sum

    @handles(Read)
    def read(self, _message: Read, _context: Context) -> int:
        return self.sum

    @handles(FailAfter)
    def fail(self, message: FailAfter, context: Context) -> int:
        self.add(Add(by=message.by), context)
        raise RuntimeError(message.sentence)

    @handles(RefuseAdd)
    def refuse(self, message: RefuseAdd, context: Context) -> int:
        if message.by:
            self.add(Add(by=message.by), context)
        raise Refusal("NO_MORE", f"{context.address} takes no more", limit=7)

    @handles(AddSlowly)
    def add_slowly(self, message: AddSlowly, context: Context) -> Slices[int]:
        for _ in range(message.steps):
            self.add(Add(), context)
            yield WAITING if message.yields else None
        return self.sum

    @handles(Whoami)
    def whoami(self, _message: Whoami, context: Context) -> str:
        return str(context.principal)


class Append(Message[int], frozen=True):
    entry: str


class Entries(Message[list[str]], frozen=True):
    only_reads: ClassVar[bool] = True


class AppendOrFail(Message[int], frozen=True):
    """Append; raise as often as `Log.trouble` says first."""

    entry: str


class Log(Actor):
    """Keeps entries in the order of arrival, one record each."""

    kind = "log"
    trouble: ClassVar[dict[str, int]] = {}
    """How often the next handlings of an entry raise; negative: refuse."""

    @handles(Append)
    def append(self, message: Append, context: Context) -> int:
        last = next(context.scan(str, reverse=True), None)
        number = 0 if last is None else int.from_bytes(last[0]) + 1
        context.put(number.to_bytes(4), message.entry)
        return number

    @handles(AppendOrFail)
    def append_or_fail(self, message: AppendOrFail, context: Context) -> int:
        self.append(Append(entry=message.entry), context)
        left = Log.trouble.get(message.entry, 0)
        if left < 0:
            raise Refusal("NOT_THIS", message.entry)
        if left:
            Log.trouble[message.entry] = left - 1
            raise RuntimeError(message.entry)
        return 0

    @handles(Entries)
    def entries(self, _message: Entries, context: Context) -> list[str]:
        return [entry for _, entry in context.scan(str)]


class Forward(Message[int], frozen=True):
    """Tell logs something, and write down how much was told."""

    entries: list[str]
    to: list[str]
    risky: bool = False


class Misdirect(Message[int], frozen=True):
    """Tell an address something, whatever the address."""

    kind: str
    key: str


class Relay(Actor):
    """Tells others."""

    kind = "relay"

    @handles(Forward)
    def forward(self, message: Forward, context: Context) -> int:
        told = context.get(b"told", int) or 0
        for entry in message.entries:
            for key in message.to:
                what = AppendOrFail(entry=entry) if message.risky else Append(entry=entry)
                context.tell(Address("log", key), what)
                told += 1
        context.put(b"told", told)
        return told

    @handles(Misdirect)
    def misdirect(self, message: Misdirect, context: Context) -> int:
        context.tell(Address(message.kind, message.key), Append(entry="lost"))
        context.put(b"misdirected", 1)
        return 1

    @handles(Read)
    def read(self, _message: Read, context: Context) -> int:
        return context.get(b"told", int) or 0


class SetAlarm(Message[None], frozen=True):
    name: str
    due: int
    note: str = ""
    again: int = 0
    """How often the alarm sets itself again, for one second later."""


class CancelAlarm(Message[None], frozen=True):
    name: str


class Ring(Message[None], frozen=True):
    name: str
    note: str
    again: int


class Rings(Message[list[tuple[str, int]]], frozen=True):
    """Ask for what rang, each with the wall clock's time."""


class Alarm(Actor):
    """Sets timers and writes down when they fire."""

    kind = "alarm"
    trouble: ClassVar[dict[str, int]] = {}

    @handles(SetAlarm)
    def set(self, message: SetAlarm, context: Context) -> None:
        ring = Ring(name=message.name, note=message.note, again=message.again)
        context.set_timer(message.name, message.due, ring)

    @handles(CancelAlarm)
    def cancel(self, message: CancelAlarm, context: Context) -> None:
        context.cancel_timer(message.name)

    @handles(Ring)
    def ring(self, message: Ring, context: Context) -> None:
        number = sum(1 for _ in context.scan(tuple[str, int]))
        context.put(number.to_bytes(4), (message.note or message.name, context.now))
        if message.again:
            again = Ring(name=message.name, note=message.note, again=message.again - 1)
            context.set_timer(message.name, context.now + 1_000_000, again)
        if Alarm.trouble.get(message.name, 0):
            Alarm.trouble[message.name] -= 1
            raise RuntimeError(message.name)

    @handles(Rings)
    def rings(self, _message: Rings, context: Context) -> list[tuple[str, int]]:
        return [ring for _, ring in context.scan(tuple[str, int])]


class Place(Message[None], frozen=True):
    """Put a record and a shared row of the same key."""

    key: bytes
    value: str


class Take(Message[None], frozen=True):
    key: bytes


class Find(Message[str | None], frozen=True):
    key: bytes


class Everything(Message[list[tuple[bytes, str]]], frozen=True):
    pass


class Shelf(Actor):
    """A map whose rows lie in the shared index ``shelves``, too."""

    kind = "shelf"

    @handles(Place)
    def place(self, message: Place, context: Context) -> None:
        context.put(message.key, message.value)
        context.put_row("shelves", message.key, message.value)

    @handles(Take)
    def take(self, message: Take, context: Context) -> None:
        context.delete(message.key)
        context.delete_row("shelves", message.key)

    @handles(Find)
    def find(self, message: Find, context: Context) -> str | None:
        return context.get(message.key, str)

    @handles(Everything)
    def everything(self, _message: Everything, context: Context) -> list[tuple[bytes, str]]:
        return list(context.scan(str))


class Rows(Procedure[list[tuple[bytes, str, str]]], frozen=True):
    """All rows of an index: sort key, actor's key, value."""

    runs = "snapshot"

    index: str = "shelves"
    prefix: bytes = b""
    start: bytes | None = None
    reverse: bool = False

    def run(self, reader: IndexReader) -> list[tuple[bytes, str, str]]:
        return list(self.read(reader))

    def read(self, reader: IndexReader) -> Iterator[tuple[bytes, str, str]]:
        rows = reader.rows(self.index, str, prefix=self.prefix, start=self.start, reverse=self.reverse)
        return ((row.sort_key, row.address.key, row.value) for row in rows)


ACTORS = (Counter, Log, Relay, Alarm, Shelf)
INDEXES = (Index("shelves"),)


def forget_troubles() -> None:
    """Forget what an earlier test asked these classes to do wrong."""
    Counter.alive.clear()
    Log.trouble.clear()
    Alarm.trouble.clear()
