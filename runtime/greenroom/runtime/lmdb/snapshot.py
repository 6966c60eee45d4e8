"""Snapshots: read transactions over the committed rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import Any, Protocol

import lmdb

from greenroom.runtime.base.errors import RecordDamagedError
from greenroom.runtime.lmdb.codec import RecordCodec
from greenroom.runtime.lmdb.environment import store_error
from greenroom.runtime.lmdb.recent import RecentRows, merge_over
from greenroom.runtime.lmdb.write_batch import Changes

OnDamage = Callable[[RecordDamagedError], None]
"""Called with each damaged record in the range of a scan; the scan then goes on.

A record whose original key is unknown (`is_key_known`) is included if this key may have been in the range.
The error then has the key under which the record lies, perhaps outside the range.
"""


class Snapshot:
    """A read transaction: the rows when it began, recent ones over the tables."""

    __slots__ = ("_codec", "_recent", "_tables", "_transaction")

    def __init__(
        self,
        transaction: lmdb.Transaction[bytes],
        tables: Sequence[Any],
        codec: RecordCodec,
        recent: RecentRows,
    ) -> None:
        self._transaction = transaction
        self._tables = tables
        self._codec = codec
        self._recent = recent

    def get(self, table: int, key: bytes) -> bytes | None:
        """Return the payload under ``key``, or None."""
        recent = self._recent.changes[table]
        return recent[key] if key in recent else self._stored(table, key)

    def _stored(self, table: int, key: bytes) -> bytes | None:
        """Return the payload of a record in its table, or None."""
        record = self._transaction.get(key, db=self._tables[table])
        return None if record is None else self._codec.open(key, record)

    def scan(
        self,
        table: int,
        prefix: bytes,
        *,
        start: bytes | None = None,
        reverse: bool = False,
        on_damage: OnDamage | None = None,
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the rows whose keys begin with ``prefix``, in key order; see `Store.scan`.

        It also meets damaged records whose original keys begin with ``prefix``, or may do so; see `OnDamage`.
        """
        recent = self._recent.among(table, prefix, start, reverse=reverse)
        if recent is None:
            return self._stored_rows(table, prefix, start, reverse=reverse, on_damage=on_damage)
        changes = self._recent.changes[table]
        report = _not_of(changes, on_damage)
        stored = self._stored_rows(table, prefix, start, reverse=reverse, on_damage=report)
        return merge_over(stored, recent, changes, reverse=reverse)

    def _stored_rows(
        self, table: int, prefix: bytes, start: bytes | None, *, reverse: bool, on_damage: OnDamage | None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the rows of a table, as `scan` does."""
        with self._transaction.cursor(self._tables[table]) as cursor:
            if not (_seek_back if reverse else _seek)(cursor, prefix, start):
                return
            unseal = self._codec.open
            for key, record in cursor.iterprev() if reverse else cursor.iternext():
                if not key.startswith(prefix):
                    return
                try:
                    payload = unseal(key, record)
                except RecordDamagedError as error:
                    if error.is_key_known and not is_among(error.key, prefix, start, reverse=reverse):
                        continue
                    if on_damage is None:
                        raise
                    on_damage(error)
                    continue
                yield key, payload

    def keys(self, table: int, prefix: bytes, *, start: bytes | None = None) -> Iterator[bytes]:
        """Yield the keys that begin with ``prefix``, in order; their records may be damaged."""
        recent = self._recent.among(table, prefix, start)
        stored = self._stored_keys(table, prefix, start)
        if recent is None:
            return stored
        merged = merge_over(((key, b"") for key in stored), recent, self._recent.changes[table])
        return (key for key, _ in merged)

    def _stored_keys(self, table: int, prefix: bytes, start: bytes | None) -> Iterator[bytes]:
        """Yield the keys of a table, as `keys` does."""
        with self._transaction.cursor(self._tables[table]) as cursor:
            if _seek(cursor, prefix, start):
                yield from takewhile(lambda key: key.startswith(prefix), cursor.iternext(values=False))


class TableView(Protocol):
    """One view of the records of one table."""

    def get(self, key: bytes, /) -> bytes | None:
        """Return the record under ``key``, or None."""

    def abort(self) -> None:
        """End the view."""


class CachedSnapshot:
    """A view of one table's committed rows, shared from the first `get` to `close`.

    Opening a view costs more than a read, so many reads share one view. Close it soon. ``begin`` returns a
    view and the recent rows over it; ``report`` gets the damage of a record before it is raised.
    """

    __slots__ = ("_begin", "_recent", "_report", "_unseal", "_view")

    def __init__(
        self,
        begin: Callable[[], tuple[TableView, Changes]],
        unseal: Callable[[bytes, bytes], bytes],
        report: OnDamage,
    ) -> None:
        self._begin = begin
        self._unseal = unseal
        self._report = report
        self._view: TableView | None = None
        self._recent: Changes = {}

    def get(self, key: bytes) -> bytes | None:
        """Return the payload under ``key``, or None."""
        view = self._view
        if view is None:
            view, self._recent = self._begin()
            self._view = view
        if key in self._recent:
            return self._recent[key]
        try:
            record = view.get(key)
            return None if record is None else self._unseal(key, record)
        except lmdb.Error as error:
            raise store_error(error, "the store cannot be read") from error
        except RecordDamagedError as error:
            self._report(error)
            raise

    def close(self) -> None:
        """End the view; the next `get` opens a new one."""
        if self._view is not None:
            view, self._view, self._recent = self._view, None, {}
            view.abort()


def _not_of(recent: Changes, on_damage: OnDamage | None) -> OnDamage:
    """Return what handles damage, without records that recent rows replace."""

    def report(error: RecordDamagedError) -> None:
        if error.key in recent:
            return
        if on_damage is None:
            raise error
        on_damage(error)

    return report


def is_among(key: bytes, prefix: bytes, start: bytes | None, *, reverse: bool) -> bool:
    """Return whether a key is in the range of a scan."""
    is_behind = start is None or (key <= start if reverse else key >= start)
    return is_behind and key.startswith(prefix)


def _seek(cursor: lmdb.Cursor[bytes], prefix: bytes, start: bytes | None) -> bool:
    return cursor.set_range(prefix if start is None else max(prefix, start))


def _seek_back(cursor: lmdb.Cursor[bytes], prefix: bytes, start: bytes | None) -> bool:
    """Seek the last key that has the prefix and is not above ``start``."""
    if start is not None and start.startswith(prefix):
        found = cursor.set_range(start)
        if found and cursor.key() == start:
            return True
    elif start is not None and start < prefix:
        return False
    else:
        # The first key above all keys with the prefix; no key is above a prefix of 0xff bytes only.
        stem = prefix.rstrip(b"\xff")
        found = bool(stem) and cursor.set_range(stem[:-1] + bytes([stem[-1] + 1]))
    return cursor.prev() if found else cursor.last()
