"""Recent rows: changes of the newest commits, which are not in their tables yet.

A commit writes at least one page for each place that it changes, and the pages above it. So the changes of
small commits first go into one table, in the order of the commits, and later into their own tables, many at
once and in the order of their keys. This is the write-ahead log of a database, within its file: copies of the
file have it, and each view sees the rows of its own commit.

    RECENT   number     table, whether it is a put, size of the key, key, and the sealed record

In memory, the same rows lie over the tables: see `RecentRows`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from struct import Struct, error
from typing import Final, NamedTuple

from greenroom.runtime.lmdb.write_batch import TABLE_COUNT, Changes

MOST_ROWS: Final = 1_024
"""The most rows over the tables; each commit copies the table of their keys."""
MOST_BYTES: Final = 512 << 10
NUMBER_BYTES: Final = 8
_TABLES: Final = (0x0F, 0x33, 0x55)
"""The marks of the tables; a flipped bit makes none of another."""
_HEAD: Final = Struct(">BBH")
_PUT: Final = 0xFF
_DELETE: Final = 0


class RecentRow(NamedTuple):
    """A change as it is stored: its table, key and sealed record, None for a deletion."""

    table: int
    key: bytes
    record: bytes | None


def pack(row: RecentRow) -> bytes:
    """Encode a change."""
    head = _HEAD.pack(_TABLES[row.table], _DELETE if row.record is None else _PUT, len(row.key))
    return head + row.key + (row.record or b"")


def unpack(payload: bytes) -> RecentRow | None:
    """Decode a change; None if it cannot be one."""
    try:
        mark, kind, size = _HEAD.unpack_from(payload)
    except error:
        return None
    key, record = payload[_HEAD.size : _HEAD.size + size], payload[_HEAD.size + size :]
    if mark not in _TABLES or kind not in {_PUT, _DELETE} or len(key) != size or not size:
        return None
    if kind == _DELETE:
        return None if record else RecentRow(_TABLES.index(mark), key, None)
    return RecentRow(_TABLES.index(mark), key, record)


class RecentRows:
    """The recent rows that one view of the store sees, by table; never changed.

    Attributes:
        changes: By table, the payload of each key; None for a deletion.
        size: Their bytes.
    """

    __slots__ = ("_order", "changes", "size")

    def __init__(
        self, changes: Sequence[Changes] = ({},) * TABLE_COUNT, order: Sequence[list[bytes]] = ()
    ) -> None:
        self.changes = changes
        self._order = order or [sorted(each) for each in changes]
        self.size = 0

    def __len__(self) -> int:
        return sum(map(len, self.changes))

    def with_changes(self, added: Sequence[Changes]) -> RecentRows:
        """Return these rows with newer ones over them."""
        changes, orders = [*self.changes], [*self._order]
        for table, rows in enumerate(added):
            if not rows:
                continue
            old, order = changes[table], orders[table].copy()
            changes[table] = old | rows
            for key in rows:
                if key not in old:
                    insort(order, key)
            orders[table] = order
        found = RecentRows(changes, orders)
        found.size = self.size + bytes_of(added)
        return found

    def among(self, table: int, prefix: bytes, start: bytes | None, *, reverse: bool = False) -> Changes:
        """Return the rows in the range of a scan, in key order; see `is_among`."""
        order = self._order[table]
        if not order:
            return {}
        rows = self.changes[table]
        low = bisect_left(order, prefix if start is None or reverse else max(prefix, start))
        high = len(order) if start is None or not reverse else bisect_right(order, start)
        found: Changes = {}
        for index in range(low, high):
            key = order[index]
            if not key.startswith(prefix):
                break
            found[key] = rows[key]
        return found


NONE: Final = RecentRows()


def bytes_of(changes: Iterable[Changes]) -> int:
    """Return the bytes of changes."""
    return sum(len(key) + len(payload or b"") for each in changes for key, payload in each.items())


def merge_over(
    stored: Iterator[tuple[bytes, bytes]], changes: Changes, *, reverse: bool = False
) -> Iterator[tuple[bytes, bytes]]:
    """Yield stored rows in key order, with newer changes of rows over them."""
    waiting = sorted(changes, reverse=not reverse)  # the next one is at the end
    for key, payload in stored:
        while waiting and (waiting[-1] > key if reverse else waiting[-1] < key):
            fresh = waiting.pop()
            if (added := changes[fresh]) is not None:
                yield fresh, added
        if key not in changes:
            yield key, payload
    for fresh in reversed(waiting):
        if (added := changes[fresh]) is not None:
            yield fresh, added
