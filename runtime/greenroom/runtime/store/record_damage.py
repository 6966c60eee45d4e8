"""Damaged records of a store: their names, and the list of known ones.

A damaged record affects only its own entry: the pages around it are proven (`page_proofs`), so the store is
served without it. Operators see the damage that is known here.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from greenroom.runtime.base.errors import RecordDamagedError
from greenroom.runtime.lmdb.codec import RecordCodec
from greenroom.runtime.lmdb.environment import RECENT_TABLE, TABLES

logger = logging.getLogger(__name__)

NAMED: Final = 20
"""Statistics name at most this many damaged records."""
_SHOWN: Final = 60
_TABLES: Final = ("", *(name.decode() for name in (*TABLES, RECENT_TABLE)))


class DamagedRecord(NamedTuple):
    """A record that differs from what was stored.

    Attributes:
        table: The table of the record; empty if it is no longer where it was.
        key: The key under which it was stored, if known, else the one under which it lies.
        is_hidden: Whether names in keys are hidden, because the store is encrypted.
        lies_at: The key under which it lies, if it differs.
    """

    table: str
    key: bytes
    is_hidden: bool = False
    lies_at: bytes = b""

    @property
    def place(self) -> tuple[str, bytes]:
        """Its table, and the key under which it lies."""
        return self.table, self.lies_at or self.key

    def __str__(self) -> str:
        """Return its table, its actor or index if the key reveals it, and its key."""
        first, _, rest = self.key.partition(b"\0")
        owner = first
        if self.table == "actors" and not self.is_hidden:
            name, _, rest = rest.partition(b"\0")
            owner = first + b"/" + name
        elif self.table == "meta":
            owner, rest = b"", self.key
        of = f" of {owner.decode(errors='backslashreplace')}" if owner else ""
        return f"{self.table or 'a record'}{of}: {rest[:_SHOWN]!r}"


def list_names(records: Iterable[DamagedRecord], most: int) -> list[str]:
    """Return the names of at most ``most`` records, and the number of others."""
    names = sorted(map(str, records))
    more = len(names) - most
    return [*names[:most], f"and {more:,} more"] if more > 0 else names


@dataclass(frozen=True, slots=True)
class StoreCheck:
    """The result of a check: the damaged records, and whether the other records were read."""

    is_whole: bool
    damaged: tuple[DamagedRecord, ...] = ()


SOUND: Final = StoreCheck(is_whole=True)


class ReportingCodec:
    """A codec that reports each damaged record before it raises the error."""

    def __init__(self, codec: RecordCodec, report: Callable[[RecordDamagedError], None]) -> None:
        self.seal = codec.seal
        self.mend = codec.mend
        self.open_quietly = codec.open
        self._report = report

    def is_sound(self, key: bytes, record: bytes) -> bool:
        """Return whether a record is what was stored, without a report."""
        try:
            self.open_quietly(key, record)
        except RecordDamagedError:
            return False
        return True

    def open(self, key: bytes, record: bytes) -> bytes:
        """Return the payload of a record."""
        try:
            return self.open_quietly(key, record)
        except RecordDamagedError as error:
            self._report(error)
            raise


class KnownDamage:
    """The known damaged records of an open store; for any thread.

    ``found`` maps their places to them, each with the step in which it became known.
    """

    def __init__(self, name: str, found: Iterable[DamagedRecord] = ()) -> None:
        self._name = name
        self._guard = threading.Lock()
        self._step = 0
        self.found: dict[tuple[str, bytes], tuple[DamagedRecord, int]] = {}
        self._gone: dict[tuple[str, bytes], int] = {}
        self.replace(found)

    def __iter__(self) -> Iterator[DamagedRecord]:
        with self._guard:
            return iter([record for record, _ in self.found.values()])

    def lies_at(self, key: bytes) -> bool:
        """Return whether a damaged record is known to lie under a key."""
        return any((table, key) in self.found for table in _TABLES)

    def is_gone(self, key: bytes) -> bool:
        """Return whether a damaged record lay under a key and is gone."""
        return any((table, key) in self._gone for table in _TABLES)

    def names(self) -> list[str]:
        """Return the names of the first damaged records."""
        return list_names(self, NAMED)

    @property
    def step(self) -> int:
        """A number that grows with each change."""
        return self._step

    def add(self, met: DamagedRecord) -> None:
        """Record damage; only the first is logged, because a page may have many."""
        with self._guard:
            is_first = not self.found
            self._step += 1
            self.found.setdefault(met.place, (met, self._step))
        if is_first:
            self._log()

    def discard(self, records: Iterable[DamagedRecord]) -> None:
        """Record that damaged records were replaced or removed."""
        with self._guard:
            self._step += 1
            for record in records:
                self._gone[record.place] = self._step
                self.found.pop(record.place, None)

    def replace(self, found: Iterable[DamagedRecord], since: int | None = None) -> None:
        """Replace the known damage by the result of a check of the whole store.

        The check began at the `step` ``since``; damage that was recorded later stays.
        """
        with self._guard:
            before = self.found
            since = self._step if since is None else since
            self._step += 1
            self.found = {
                record.place: (record, self._step)
                for record in found
                if self._gone.get(record.place, 0) <= since
            }
            self.found |= {place: each for place, each in before.items() if each[1] > since}
            is_more = bool(self.found.keys() - before.keys())
        if is_more:
            self._log()

    def _log(self) -> None:
        logger.error(
            "damaged records in %s, without which it is served: %s; `greenroom doctor` names all that are "
            "known, and `greenroom repair` writes what is sound into a new file",
            self._name,
            "; ".join(self.names()),
        )
