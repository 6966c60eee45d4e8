"""Snapshots: read transactions over the committed rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import Any, Protocol

import lmdb

from greenroom.runtime.lmdb.codec import RecordCodec
from greenroom.runtime.lmdb.environment import store_error


class Snapshot:
    """A read transaction: the rows as they were when it began.

    Args:
        transaction: LMDB's.
        tables: The handles of the tables, by number.
        codec: Turns records back into payloads.
    """

    __slots__ = ("_codec", "_tables", "_transaction")

    def __init__(
        self, transaction: lmdb.Transaction[bytes], tables: Sequence[Any], codec: RecordCodec
    ) -> None:
        self._transaction = transaction
        self._tables = tables
        self._codec = codec

    def get(self, table: int, key: bytes) -> bytes | None:
        """Return the payload under ``key``, or None."""
        record = self._transaction.get(key, db=self._tables[table])
        return None if record is None else self._codec.open(key, record)

    def scan(
        self, table: int, prefix: bytes, *, start: bytes | None = None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the rows whose keys begin with ``prefix``, in key order; see `Store.scan`."""
        with self._transaction.cursor(self._tables[table]) as cursor:
            if not (_seek_back if reverse else _seek)(cursor, prefix, start):
                return
            unseal = self._codec.open
            for key, record in cursor.iterprev() if reverse else cursor.iternext():
                if not key.startswith(prefix):
                    return
                yield key, unseal(key, record)

    def keys(
        self, table: int, prefix: bytes, *, start: bytes | None = None, reverse: bool = False
    ) -> Iterator[bytes]:
        """Yield the keys that begin with ``prefix``, in order; their records may be damaged."""
        with self._transaction.cursor(self._tables[table]) as cursor:
            if (_seek_back if reverse else _seek)(cursor, prefix, start):
                found = (cursor.iterprev if reverse else cursor.iternext)(values=False)
                yield from takewhile(lambda key: key.startswith(prefix), found)


class TableView(Protocol):
    """One view of the records of one table."""

    def get(self, key: bytes, /) -> bytes | None:
        """Return the record under ``key``, or None."""

    def abort(self) -> None:
        """End it."""


class CachedSnapshot:
    """The committed rows of one table: the same view from the first `get` until it is closed.

    Opening a view costs more than a read, so many reads share one. It must be closed soon.

    Args:
        begin: Opens a view of the table.
        unseal: Turns a record back into its payload.
    """

    __slots__ = ("_begin", "_unseal", "_view")

    def __init__(self, begin: Callable[[], TableView], unseal: Callable[[bytes, bytes], bytes]) -> None:
        self._begin = begin
        self._unseal = unseal
        self._view: TableView | None = None

    def get(self, key: bytes) -> bytes | None:
        """Return the payload under ``key``, or None.

        Raises:
            StoreDamagedError: the record's checksum is wrong.
            StoreError: the store cannot be read.
        """
        view = self._view
        if view is None:
            view = self._view = self._begin()
        try:
            record = view.get(key)
        except lmdb.Error as error:
            raise store_error(error, "the store cannot be read") from error
        return None if record is None else self._unseal(key, record)

    def close(self) -> None:
        """Let the next `get` see what is committed by then."""
        if self._view is not None:
            view, self._view = self._view, None
            view.abort()


def _seek(cursor: lmdb.Cursor[bytes], prefix: bytes, start: bytes | None) -> bool:
    return cursor.set_range(prefix if start is None else max(prefix, start))


def _seek_back(cursor: lmdb.Cursor[bytes], prefix: bytes, start: bytes | None) -> bool:
    """Go to the last key that is not above ``start``, nor above all keys that have the prefix."""
    if start is not None and start.startswith(prefix):
        found = cursor.set_range(start)
        if found and cursor.key() == start:
            return True
    elif start is not None and start < prefix:
        return False
    else:
        # The first key above all that have the prefix; nothing is above a prefix of nothing but 0xff.
        stem = prefix.rstrip(b"\xff")
        found = bool(stem) and cursor.set_range(stem[:-1] + bytes([stem[-1] + 1]))
    return cursor.prev() if found else cursor.last()
