"""An actor that writes to a journal, and what is done to a journal behind its server's back."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import lmdb
from support.actors import ACTORS, INDEXES, Shelf

from greenroom.runtime import (
    Checkpoint,
    Context,
    IndexReader,
    Journal,
    JournalReport,
    JournalRow,
    Message,
    PlainCodec,
    Procedure,
    Refusal,
    RollbackGap,
    handles,
)
from greenroom.runtime.journal.chain import journal_prefix

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = "deeds"


def lost(count: int) -> str:
    return f"lost {count}"


def broken(first: int, last: int) -> str:
    return f"broken {first}-{last}"


DEEDS = Journal(NAME, lost=lost, broken=broken)


class Do(Message[int], frozen=True):
    """Put a record of ``size`` bytes and append what was done ``times`` times, but for the ``first`` ones."""

    what: str
    times: int = 1
    first: int = 0
    size: int = 0
    fail: bool = False
    reserve: bool = False


class Look(Message[str], frozen=True):
    """Note that somebody looked, and refuse if told so."""

    what: str
    refuse: bool = False


class Doer(Shelf):
    kind = "doer"

    @handles(Do)
    def do(self, message: Do, context: Context) -> int:
        count = (context.get(b"count", int) or 0) + message.times - message.first
        context.put(b"count", count)
        if message.size:
            context.put(b"ballast %d" % count, bytes(message.size))
        for number in range(message.first, message.times):
            context.append(NAME, f"{message.what} {number}")
        if message.reserve:
            context.use_reserve()
        if message.fail:
            raise RuntimeError("as it was told")
        return count

    @handles(Look)
    def look(self, message: Look, context: Context) -> str:
        context.append_soon(NAME, message.what)
        if message.refuse:
            raise Refusal("NO", "no")
        return message.what


class Deeds(Procedure[list[JournalRow[str]]], frozen=True, kw_only=True):
    """All rows, notes among them."""

    runs = "snapshot"
    flushes_journals: ClassVar[bool] = True

    def run(self, reader: IndexReader) -> list[JournalRow[str]]:
        return list(reader.entries(NAME, str))


class CheckDeeds(Procedure[JournalReport], frozen=True, kw_only=True):
    runs = "snapshot"

    checkpoints: tuple[Checkpoint, ...] = ()

    def run(self, reader: IndexReader) -> Any:
        return reader.check(NAME, self.checkpoints)


class DeedsCheckpoint(Procedure[Checkpoint], frozen=True, kw_only=True):
    runs = "snapshot"

    def run(self, reader: IndexReader) -> Checkpoint:
        return reader.checkpoint(NAME)


class Breaks(Procedure[list[RollbackGap]], frozen=True, kw_only=True):
    runs = "snapshot"

    def run(self, reader: IndexReader) -> list[RollbackGap]:
        return reader.rollback_gaps(NAME)


JOURNALS: dict[str, Any] = {
    "actors": [*ACTORS, Doer],
    "indexes": INDEXES,
    "journals": [DEEDS],
}


class Tamperer:
    """Changes a store as its server would, but for the links: it has no secret.

    Attributes:
        kept: What was read of the store before.
    """

    def __init__(self, environment: lmdb.Environment, transaction: lmdb.Transaction[bytes]) -> None:
        self._tables = {name: environment.open_db(name, txn=transaction) for name in (b"indexes", b"meta")}
        self._transaction = transaction
        self._codec = PlainCodec()
        self.kept: dict[str, bytes | None] = {}

    def key(self, number: int) -> bytes:
        return journal_prefix(NAME) + number.to_bytes(8)

    def row(self, number: int) -> bytes:
        key = self.key(number)
        record = self._transaction.get(key, db=self._tables[b"indexes"])
        assert record is not None
        return self._codec.open(key, record)

    def put(self, number: int, row: bytes) -> None:
        key = self.key(number)
        self._transaction.put(key, self._codec.seal(key, row), db=self._tables[b"indexes"])

    def put_at(self, place: bytes, row: bytes) -> None:
        """Put a row where a number should be."""
        key = journal_prefix(NAME) + place
        self._transaction.put(key, self._codec.seal(key, row), db=self._tables[b"indexes"])

    def remove(self, *numbers: int) -> None:
        for number in numbers:
            assert self._transaction.delete(self.key(number), db=self._tables[b"indexes"])

    def state(self, which: str) -> bytes | None:
        key = f"journal\0{NAME}\0{which}".encode()
        record = self._transaction.get(key, db=self._tables[b"meta"])
        return None if record is None else self._codec.open(key, record)

    def put_state(self, which: str, payload: bytes | None) -> None:
        key = f"journal\0{NAME}\0{which}".encode()
        if payload is None:
            self._transaction.delete(key, db=self._tables[b"meta"])
        else:
            self._transaction.put(key, self._codec.seal(key, payload), db=self._tables[b"meta"])


@contextmanager
def tampering(folder: Path) -> Iterator[Tamperer]:
    """Open a stopped store as somebody who has it and not its secret."""
    with (
        lmdb.open(str(folder / "greenroom.mdb"), subdir=False, max_dbs=2) as environment,
        environment.begin(write=True) as transaction,
    ):
        yield Tamperer(environment, transaction)
