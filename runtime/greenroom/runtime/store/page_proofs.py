"""Proven reads of an unchecked or damaged store: verify each page on the way.

LMDB trusts its file: a damaged page crashes the process, or hides what was stored. So until the whole file
has been read (see `maintenance.scrub`), rows are found here, in the same pages of the same view:

1. A page contains its number, so a misplaced page is detected.
2. The keys of a page ascend, and lie between the keys that led to it.
3. A record of a leaf has the checksum or seal of its key and payload; otherwise it is damaged. If one bit was
   flipped, the original key is known (see `lmdb.flipped_bit`). Then only reads of this key, and of keys
   between it and the key under which the record lies, report the damage. After a larger change, the original
   key may be any key of the same length between the sound neighbours; reads of all these report the damage.
   The length is known up to one byte, because rows lie at even places without gaps.
4. To prove that a key is missing, the neighbours of its leaf are proven, too. Otherwise a changed key in the
   page above could lead past the key.

Proven pages are cached by their checksums. An older version of a page is not detected, nor a tree that begins
at another whole page of the same height. The check of the whole file finds these if the free pages no longer
fit; a single lost write may remain undetected.

LMDB 1.0 has checksums of pages: then `Pages.page` can compare them, and the rest of this can be removed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import lmdb

from greenroom.runtime.base.errors import RecordDamagedError, StoreDamagedError
from greenroom.runtime.lmdb.codec import RecordCodec
from greenroom.runtime.lmdb.environment import RECENT_TABLE, TABLES
from greenroom.runtime.lmdb.pages import NO_PAGE, TABLE, Big, Damage, Head, Page, Pages
from greenroom.runtime.lmdb.recent import NONE, RecentRows
from greenroom.runtime.lmdb.snapshot import OnDamage, Snapshot, is_among


class ViewPassedError(StoreDamagedError):
    """The head of a view is gone: two commits followed, or it is damaged."""


class _Step(NamedTuple):
    """A branch on the way to a leaf, its chosen child and key bounds."""

    page: Page
    child: int
    lower: bytes
    upper: bytes | None


class _Place(NamedTuple):
    """A leaf, and the way to it."""

    way: list[_Step]
    leaf: Page


class _Row(NamedTuple):
    """A row as it lies in a leaf."""

    key: bytes
    value: int | bytes | Big
    damage: Damage | None

    def hides(self, key: bytes) -> bool:
        """Return whether a missing key may be the original key of this neighbouring row."""
        if self.damage is None:
            return False
        if self.damage.is_key_known:
            lies_at = self.damage.lies_at
            return min(lies_at, self.key) <= key <= max(lies_at, self.key)
        return abs(len(self.key) - len(key)) <= 1


class Prover(Pages):
    """Find rows in a store's file, in any thread, like `Pages`."""

    def __init__(self, path: Path, codec: RecordCodec | None) -> None:
        super().__init__(path, codec)
        self._last: tuple[int, list[Tree]] | None = None

    def trees(self, number: int | None = None) -> list[Tree]:
        """Return the tables of an open view of LMDB, by default the newest.

        Raises `ViewPassedError` if two commits have come since that view was opened.
        """
        last = self._last
        if last is not None and last[0] == number:
            return last[1]
        heads = self.heads()
        head = max(heads) if number is None else heads[number & 1]
        if number not in {None, head.transaction}:
            raise ViewPassedError(str(self.damaged(f"its head is not that of transaction {number}")))
        if not self.holds(head):
            raise self.damaged("it was cut short")
        trees = self.tables(self.names(head))
        self._last = head.transaction, trees
        return trees

    def names(self, head: Head) -> Tree:
        """Return LMDB's own table of tables, which also has the store's identity."""
        return Tree(self, head.root, head.depth, is_main=True)

    def tables(self, names: Tree) -> list[Tree]:
        """Return the tables."""
        return [self._tree(names.get(name), name) for name in TABLES]

    def recent(self, names: Tree) -> Tree:
        """Return the table of recent rows; stores before format 4 have none."""
        record = names.get(RECENT_TABLE)
        return Tree(self, NO_PAGE, 0) if record is None else self._tree(record, RECENT_TABLE)

    def _tree(self, record: bytes | None, name: bytes) -> Tree:
        if record is None or len(record) != TABLE.size:
            raise self.damaged(f"it has no table {name.decode()}")
        _, _, depth, _, leaves, _, rows, root = TABLE.unpack(record)
        return Tree(self, root, depth, rows, leaves)

    def open(self, key: bytes, value: int | bytes | Big) -> bytes:
        """Return the payload of a leaf's record."""
        assert self._codec is not None
        return self._codec.open(key, self.value(value))

    def prove_keys(self) -> None:
        """Prove that each key of the file can be found."""
        recent = self.recent(self.names(max(self.heads())))
        for tree in (*self.trees(), recent):
            for _ in tree.forward(b""):
                pass


class Tree:
    """One table in one view, of ``depth`` pages on the way to a record.

    LMDB's own table of tables (``is_main``) has no checksums.
    """

    __slots__ = ("_is_main", "_prover", "depth", "leaves", "root", "rows")

    def __init__(
        self, prover: Prover, root: int, depth: int, rows: int = 0, leaves: int = 0, *, is_main: bool = False
    ) -> None:
        self._prover = prover
        self.root = root
        self.depth = depth
        self.rows = rows
        self.leaves = leaves
        self._is_main = is_main

    def get(self, key: bytes) -> bytes | None:
        """Return the record under a key; None if it is proven that there is none.

        Raises:
            RecordDamagedError: the record is damaged, may be a damaged neighbour, or would lie between the
                original key and the place of a damaged row.
        """
        place = self._place(lambda keys: bisect_right(keys, key, lo=1) - 1)
        if place is None:
            return None
        leaf = place.leaf
        index = bisect_left(leaf.keys, key)
        if index < len(leaf.keys) and leaf.keys[index] == key:
            if index in leaf.damaged:
                raise leaf.damaged[index].error(key)
            return self._prover.value(leaf.values[index])
        self._prove_neighbours(place)
        for beside in (self._walk(place, index - 1, -1), self._walk(place, index, 1)):
            for row in takewhile(_is_elsewhere, beside):
                if row.damage is not None and row.hides(key):
                    raise row.damage.error(row.key)
        return None

    def forward(self, start: bytes) -> Iterator[_Row]:
        """Yield the rows from a key on, inclusive, and damaged ones that may belong there."""
        place = self._place(lambda keys: bisect_right(keys, start, lo=1) - 1)
        if place is None:
            return
        self._prove_neighbours(place)
        leaf = place.leaf
        index = bisect_left(leaf.keys, start)
        if not _is_at(leaf, index, start):
            yield from reversed([*takewhile(_is_elsewhere, self._walk(place, index - 1, -1))])
        yield from self._walk(place, index, 1)

    def backward(self, end: bytes | None, *, included: bool) -> Iterator[_Row]:
        """Yield the rows downwards from a key or the last row; damaged ones like `forward`."""
        place = self._place(
            (lambda keys: len(keys) - 1) if end is None else lambda keys: bisect_right(keys, end, lo=1) - 1
        )
        if place is None:
            return
        self._prove_neighbours(place)
        leaf = place.leaf
        last = len(leaf.keys)
        if end is not None:
            last = bisect_right(leaf.keys, end) if included else bisect_left(leaf.keys, end)
            if not _is_at(leaf, last - 1, end):
                yield from reversed([*takewhile(_is_elsewhere, self._walk(place, last, 1))])
        yield from self._walk(place, last - 1, -1)

    def _walk(self, place: _Place | None, index: int, step: int) -> Iterator[_Row]:
        """Yield the rows up or down from a place, perhaps beyond a leaf's end."""
        while place is not None:
            _, keys, values, damaged = place.leaf
            for at in range(index, len(keys) if step > 0 else -1, step):
                yield _Row(keys[at], values[at], damaged.get(at))
            place = self._beside(place, step)
            index = len(place.leaf.keys) - 1 if place is not None and step < 0 else 0

    def _place(self, choose: Callable[[list[bytes]], int]) -> _Place | None:
        if self.root == NO_PAGE:
            return None
        return self._descend([], self.root, b"", None, choose)

    def _descend(
        self,
        way: list[_Step],
        number: int,
        lower: bytes,
        upper: bytes | None,
        choose: Callable[[list[bytes]], int],
    ) -> _Place:
        while True:
            is_leaf = len(way) + 1 == self.depth
            page = self._prover.bounded(number, lower, upper, is_leaf=is_leaf, is_main=self._is_main)
            if is_leaf:
                return _Place(way, page)
            index = choose(page.keys)
            way = [*way, _Step(page, index, lower, upper)]
            number, lower, upper = child_of(page, index, lower, upper)

    def _beside(self, place: _Place, step: int) -> _Place | None:
        """Return the leaf before or after a leaf."""
        way = place.way
        for depth in range(len(way) - 1, -1, -1):
            branch, index, lower, upper = way[depth]
            index += step
            if 0 <= index < len(branch.keys):
                before = [*way[:depth], _Step(branch, index, lower, upper)]
                return self._descend(
                    before,
                    *child_of(branch, index, lower, upper),
                    (lambda _keys: 0) if step > 0 else lambda keys: len(keys) - 1,
                )
        return None

    def _prove_neighbours(self, place: _Place) -> None:
        self._beside(place, -1)
        self._beside(place, 1)


def child_of(page: Page, index: int, lower: bytes, upper: bytes | None) -> tuple[int, bytes, bytes | None]:
    """Return the number of a branch's child, and the bounds of its keys."""
    number = page.values[index]
    assert isinstance(number, int)
    low = page.keys[index] if index else lower
    high = page.keys[index + 1] if index + 1 < len(page.keys) else upper
    return number, low, high


def _is_at(leaf: Page, index: int, key: bytes) -> bool:
    """Return whether a leaf's row is proven to have a key."""
    if not 0 <= index < len(leaf.keys) or leaf.keys[index] != key:
        return False
    return index not in leaf.damaged or leaf.damaged[index].is_key_known


def _is_elsewhere(row: _Row) -> bool:
    """Return whether a row is damaged and its original key may belong elsewhere."""
    damage = row.damage
    return damage is not None and not (damage.is_key_known and damage.lies_at == row.key)


class ProvenSnapshot(Snapshot):
    """A `Snapshot` with proven reads, of an open LMDB view or of the newest one."""

    __slots__ = ("_prover", "_trees")

    def __init__(self, prover: Prover, trees: list[Tree] | None = None, recent: RecentRows = NONE) -> None:
        self._prover = prover
        self._recent = recent
        self._trees = prover.trees() if trees is None else trees

    def _stored(self, table: int, key: bytes) -> bytes | None:
        """Return the payload of a record in its table, or None."""
        record = self._trees[table].get(key)
        return None if record is None else self._prover.open(key, record)

    def _stored_rows(
        self, table: int, prefix: bytes, start: bytes | None, *, reverse: bool, on_damage: OnDamage | None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the rows of a table, with damaged rows that may be in the range."""
        for row in self._rows(table, prefix, start, reverse=reverse):
            try:
                if row.damage is not None:
                    raise row.damage.error(row.key)
                payload = self._prover.open(row.key, row.value)
            except RecordDamagedError as error:
                if on_damage is None:
                    raise
                on_damage(error)
            else:
                yield row.key, payload

    def _stored_keys(self, table: int, prefix: bytes, start: bytes | None) -> Iterator[bytes]:
        """Yield the keys of a table; damaged keys as far as known."""
        for row in self._rows(table, prefix, start, reverse=False):
            if row.damage is None or is_among(row.key, prefix, start, reverse=False):
                yield row.key

    def _rows(self, table: int, prefix: bytes, start: bytes | None, *, reverse: bool) -> Iterator[_Row]:
        tree = self._trees[table]
        if not reverse:
            rows = tree.forward(prefix if start is None else max(prefix, start))
        elif start is not None and start.startswith(prefix):
            rows = tree.backward(start, included=True)
        elif start is not None and start < prefix:
            return
        else:
            # The first key above all keys with the prefix; no key is above a prefix of 0xff bytes only.
            stem = prefix.rstrip(b"\xff")
            rows = tree.backward(stem[:-1] + bytes([stem[-1] + 1]) if stem else None, included=False)
        for row in rows:
            if row.damage is None:
                if not row.key.startswith(prefix):
                    return
                yield row
            elif row.damage.is_key_known:
                if is_among(row.key, prefix, start, reverse=reverse):
                    yield row
            elif len(row.key) + 1 >= len(prefix):
                yield row


class ProvenView:
    """A view of one table's records, with proven reads."""

    __slots__ = ("_transaction", "_tree")

    def __init__(self, transaction: lmdb.Transaction[bytes], tree: Tree) -> None:
        self._transaction = transaction
        self._tree = tree

    def get(self, key: bytes, /) -> bytes | None:
        """Return the record under ``key``; None if it is proven that there is none."""
        return self._tree.get(key)

    def abort(self) -> None:
        """End the view."""
        self._transaction.abort()
