"""Reading a store that is unchecked: each page on the way to an answer is proven before anything is answered.

LMDB trusts its file: a page that is not what it was kills the process, or hides what was stored. So until all
of the file was read (see `maintenance.scrub`) the rows are found here instead, in the same pages of the same
view:

1. A page says where it lies, so one that lies elsewhere is found out.
2. The keys of a page rise, and lie between those that led to it.
3. Every record of a leaf has the checksum, or the seal, of its key and its payload.
4. What is missing is missing between two leaves that are whole: the neighbours of the leaf in which it would
   be are proven, too. Otherwise a key that changed in the page above would lead past it.

Pages that were proven are remembered by their checksums. What cannot be seen like this is a page that is an
older version of itself, or a tree that begins at another whole page of the same height. The check of the
whole file finds these where what is free and what is not do not fit any more; a single lost write may escape.

LMDB 1.0 has checksums of pages: where `Pages.page` is they will be compared, and the rest of this may go.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import lmdb

from greenroom.runtime.lmdb.codec import RecordCodec
from greenroom.runtime.lmdb.environment import TABLES
from greenroom.runtime.lmdb.pages import NO_PAGE, TABLE, Big, Head, Page, Pages
from greenroom.runtime.lmdb.snapshot import Snapshot


class _Step(NamedTuple):
    """A branch on the way to a leaf, the child that was taken, and between which keys all of it lies."""

    page: Page
    child: int
    lower: bytes
    upper: bytes | None


class _Place(NamedTuple):
    """A leaf, and the way to it."""

    way: list[_Step]
    leaf: Page


class Prover(Pages):
    """Finds rows in a store's file, for any thread; as `Pages`."""

    def __init__(self, path: Path, codec: RecordCodec | None) -> None:
        super().__init__(path, codec)
        self._last: tuple[int, list[Tree]] | None = None

    def trees(self, number: int | None = None) -> list[Tree]:
        """Return the tables, as a view of LMDB's sees them, which has to stay open.

        Args:
            number: That of its transaction; if not given, the newest.

        Raises:
            StoreDamagedError: what leads to them is damaged, or the file was cut short.
        """
        if self._last is not None and self._last[0] == number:
            return self._last[1]
        heads = self.heads()
        head = max(heads) if number is None else heads[number & 1]
        if number not in {None, head.transaction}:
            raise self.damaged(f"its head is not that of transaction {number}")
        if not self.holds(head):
            raise self.damaged("it was cut short")
        trees = self.tables(self.names(head))
        self._last = head.transaction, trees
        return trees

    def names(self, head: Head) -> Tree:
        """Return LMDB's own table of tables, which has what a store says of itself, too."""
        return Tree(self, head.root, head.depth, is_main=True)

    def tables(self, names: Tree) -> list[Tree]:
        """Return the tables.

        Raises:
            StoreDamagedError: what leads to them is damaged.
        """
        return [self._tree(names.get(name), name) for name in TABLES]

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
        """Prove that each key of the file is where it is looked for.

        Raises:
            StoreDamagedError: one is not.
        """
        for tree in self.trees():
            for _ in tree.forward(b""):
                pass


class Tree:
    """One table in one view.

    Args:
        prover: Reads its pages.
        root: The number of its topmost page.
        depth: How many pages are on the way to a record.
        rows: How many rows it has.
        leaves: How many of its pages have rows.
        is_main: Whether it is LMDB's own table of tables, whose rows have no checksums.
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
        """Return the record under a key; None if it is proven that there is none."""
        place = self._place(lambda keys: bisect_right(keys, key, lo=1) - 1)
        if place is None:
            return None
        keys = place.leaf.keys
        index = bisect_left(keys, key)
        if index < len(keys) and keys[index] == key:
            return self._prover.value(place.leaf.values[index])
        self._prove_neighbours(place)
        return None

    def forward(self, start: bytes) -> Iterator[tuple[bytes, int | bytes | Big]]:
        """Yield the rows from a key on, which is itself included."""
        place = self._place(lambda keys: bisect_right(keys, start, lo=1) - 1)
        if place is not None:
            self._prove_neighbours(place)
        while place is not None:
            leaf = place.leaf
            for index in range(bisect_left(leaf.keys, start), len(leaf.keys)):
                yield leaf.keys[index], leaf.values[index]
            place = self._beside(place, 1)

    def backward(self, end: bytes | None, *, included: bool) -> Iterator[tuple[bytes, int | bytes | Big]]:
        """Yield the rows down from a key, or from the last one."""
        place = self._place(
            (lambda keys: len(keys) - 1) if end is None else lambda keys: bisect_right(keys, end, lo=1) - 1
        )
        if place is not None:
            self._prove_neighbours(place)
        while place is not None:
            leaf = place.leaf
            last = len(leaf.keys)
            if end is not None:
                last = bisect_right(leaf.keys, end) if included else bisect_left(leaf.keys, end)
            for index in range(last - 1, -1, -1):
                yield leaf.keys[index], leaf.values[index]
            place = self._beside(place, -1)

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
        """Return the leaf before or after one."""
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
    """Return the number of a branch page's child, and the bounds that its keys must lie between."""
    number = page.values[index]
    assert isinstance(number, int)
    low = page.keys[index] if index else lower
    high = page.keys[index + 1] if index + 1 < len(page.keys) else upper
    return number, low, high


class ProvenSnapshot(Snapshot):
    """One view of the committed rows, as `Snapshot`, in which nothing is believed that is not proven.

    Args:
        prover: Reads the file.
        number: That of LMDB's transaction, which has to stay open; if not given, the newest.
    """

    __slots__ = ("_prover", "_trees")

    def __init__(self, prover: Prover, number: int | None = None) -> None:
        self._prover = prover
        self._trees = prover.trees(number)

    def get(self, table: int, key: bytes) -> bytes | None:
        """Return the payload under ``key``, or None."""
        record = self._trees[table].get(key)
        return None if record is None else self._prover.open(key, record)

    def scan(
        self, table: int, prefix: bytes, *, start: bytes | None = None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the rows whose keys begin with ``prefix``, in key order; see `Store.scan`."""
        for key, value in self._rows(table, prefix, start, reverse=reverse):
            yield key, self._prover.open(key, value)

    def keys(
        self, table: int, prefix: bytes, *, start: bytes | None = None, reverse: bool = False
    ) -> Iterator[bytes]:
        """Yield the keys that begin with ``prefix``, in order."""
        for key, _ in self._rows(table, prefix, start, reverse=reverse):
            yield key

    def _rows(
        self, table: int, prefix: bytes, start: bytes | None, *, reverse: bool
    ) -> Iterator[tuple[bytes, int | bytes | Big]]:
        tree = self._trees[table]
        if not reverse:
            rows = tree.forward(prefix if start is None else max(prefix, start))
        elif start is not None and start.startswith(prefix):
            rows = tree.backward(start, included=True)
        elif start is not None and start < prefix:
            return
        else:
            # The first key above all that have the prefix; nothing is above a prefix of nothing but 0xff.
            stem = prefix.rstrip(b"\xff")
            rows = tree.backward(stem[:-1] + bytes([stem[-1] + 1]) if stem else None, included=False)
        for key, value in rows:
            if not key.startswith(prefix):
                return
            yield key, value


class ProvenView:
    """One view of the records of one table.

    Args:
        prover: Reads the file.
        transaction: LMDB's, which keeps the pages of this view; ended with it.
        table: The table.
    """

    __slots__ = ("_transaction", "_tree")

    def __init__(self, prover: Prover, transaction: lmdb.Transaction[bytes], table: int) -> None:
        self._transaction = transaction
        try:
            self._tree = prover.trees(transaction.id())[table]
        except BaseException:
            transaction.abort()
            raise

    def get(self, key: bytes, /) -> bytes | None:
        """Return the record under ``key``; None if it is proven that there is none."""
        return self._tree.get(key)

    def abort(self) -> None:
        """End it."""
        self._transaction.abort()
