"""Reading a store that is unchecked: each page on the way to an answer is proven before anything is answered.

LMDB trusts its file: a page that is not what it was kills the process, or hides what was stored. So until all
of the file was read (see `_scrub`) the rows are found here instead, in the same pages of the same view:

1. A page says where it lies, so one that lies elsewhere is found out.
2. The keys of a page rise, and lie between those that led to it.
3. Every record of a leaf has the checksum, or the seal, of its key and its payload.
4. What is missing is missing between two leaves that are whole: the neighbours of the leaf in which it would
   be are proven, too. Otherwise a key that changed in the page above would lead past it.

Pages that were proven are remembered by their checksums. What cannot be seen like this is a page that is an
older version of itself, or a tree that begins at another whole page of the same height; the check of the
whole file finds both, for then what is free and what is not do not fit.

It knows the files of LMDB 0.9, in the byte order of this machine. LMDB 1.0 has checksums of pages: where
`Prover.page` is, they will be compared, and the rest of this may go.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from itertools import pairwise
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

from greenroom.runtime._environment import REMEDY, TABLES
from greenroom.runtime._errors import StoreDamagedError
from greenroom.runtime._folder import folder_error
from greenroom.runtime._reading import Reading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import lmdb

    from greenroom.runtime._codec import RecordCodec

_PAGE_HEADER: Final = Struct("=QHHHH")  # number, pad, flags, lower, upper
_OVERFLOW_HEADER: Final = Struct("=QHHI")  # number, pad, flags, pages
_NODE: Final = Struct("=HHHH")  # low and high half of a size or a page number, flags, size of the key
_NUMBER: Final = Struct("=Q")
_TABLE: Final = Struct("=IHHQQQQQ")  # pad, flags, depth, pages of three sorts, rows, root
_META: Final = Struct("=IIQQ")  # magic, version, address, size of the map
_META_END: Final = Struct("=QQ")  # last page, number of the transaction
_MAGIC: Final = 0xBEEFC0DE
_VERSION: Final = 1
_BRANCH: Final = 0x01
_LEAF: Final = 0x02
_OVERFLOW: Final = 0x04
_HEAD: Final = 0x08
_BIG: Final = 0x01
_SUB: Final = 0x02
_NO_PAGE: Final = (1 << 64) - 1
_REMEMBERED: Final = 8_192
"""Pages; 32 MiB of the file."""


class _Head(NamedTuple):
    """What one of the two heads of a file says: of which transaction it is, and where its tables are."""

    transaction: int
    last_page: int
    root: int
    depth: int


class _Big(NamedTuple):
    """Where a record lies that has pages of its own."""

    page: int
    size: int


class _Page(NamedTuple):
    """A proven page: of a branch the first key is empty, and the values are numbers of pages."""

    is_leaf: bool
    keys: list[bytes]
    values: list[int] | list[bytes | _Big]


class _Step(NamedTuple):
    """A branch on the way to a leaf, the child that was taken, and between which keys all of it lies."""

    page: _Page
    child: int
    lower: bytes
    upper: bytes | None


class _Place(NamedTuple):
    """A leaf, and the way to it."""

    way: list[_Step]
    leaf: _Page


class Prover:
    """Reads and proves pages of one store's file, for any thread.

    Args:
        path: The file.
        codec: Tells whether a record is what was stored under its key; None if records are not looked at.
    """

    def __init__(self, path: Path, codec: RecordCodec | None) -> None:
        self._path = path
        self._codec = codec
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._size = 0
        self._proven: dict[int, tuple[int, _Page]] = {}
        self._last: tuple[int, list[_Tree]] | None = None

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def trees(self, number: int | None = None) -> list[_Tree]:
        """Return the tables, as a view of LMDB's sees them, which has to stay open.

        Args:
            number: That of its transaction; if not given, the newest.

        Raises:
            StoreDamagedError: what leads to them is damaged, or the file was cut short.
        """
        if self._last is not None and self._last[0] == number:
            return self._last[1]
        size = _TABLE.unpack_from(self._bytes(0, 512), _PAGE_HEADER.size + _META.size)[0]
        if size < 512 or size > 1 << 15 or size & (size - 1):  # noqa: PLR2004  LMDB's limits
            raise self._damaged(f"its pages cannot have {size} bytes")
        self._size = size
        heads = [self._head(page) for page in (0, 1)]
        head = max(heads) if number is None else heads[number & 1]
        if number not in {None, head.transaction}:
            raise self._damaged(f"its head is not that of transaction {number}")
        if os.fstat(self._descriptor).st_size < (head.last_page + 1) * size:
            raise self._damaged("it was cut short")
        names = _Tree(self, head.root, head.depth, is_main=True)
        trees = [self._tree(names.get(name), name) for name in TABLES]
        self._last = head.transaction, trees
        return trees

    def _head(self, page: int) -> _Head:
        content = self._bytes(page * self._size, 512)
        number, _, flags, *_ = _PAGE_HEADER.unpack_from(content)
        at = _PAGE_HEADER.size
        magic, version, *_ = _META.unpack_from(content, at)
        at += _META.size + _TABLE.size
        _, _, depth, *_, root = _TABLE.unpack_from(content, at)
        last_page, transaction = _META_END.unpack_from(content, at + _TABLE.size)
        if (number, flags, magic, version) != (page, _HEAD, _MAGIC, _VERSION):
            raise self._damaged(f"page {page} is not its head")
        return _Head(transaction, last_page, root, depth)

    def _tree(self, record: bytes | None, name: bytes) -> _Tree:
        if record is None or len(record) != _TABLE.size:
            raise self._damaged(f"it has no table {name.decode()}")
        _, _, depth, *_, root = _TABLE.unpack(record)
        return _Tree(self, root, depth)

    def page(self, number: int, *, is_main: bool = False) -> _Page:
        """Return a page of a tree.

        Raises:
            StoreDamagedError: it is none, or not what was written there.
        """
        content = self._bytes(number * self._size, self._size)
        checksum = crc32(content)
        known = self._proven.get(number)
        if known is not None and known[0] == checksum:
            return known[1]
        page = self._parsed(number, content)
        if page.is_leaf and not is_main and self._codec is not None:
            for key, value in zip(page.keys, page.values, strict=True):
                self._codec.open(key, self.value(value))
        if len(self._proven) >= _REMEMBERED:
            self._proven.clear()
        self._proven[number] = checksum, page
        return page

    def value(self, value: int | bytes | _Big) -> bytes:
        """Return a leaf's record.

        Raises:
            StoreDamagedError: the pages that it lies in are others.
        """
        if isinstance(value, bytes):
            return value
        assert isinstance(value, _Big)
        content = self._bytes(value.page * self._size, _OVERFLOW_HEADER.size + value.size)
        number, _, flags, pages = _OVERFLOW_HEADER.unpack_from(content)
        if (number, flags) != (value.page, _OVERFLOW) or len(content) > pages * self._size:
            raise self._damaged(f"page {value.page} is not the record that was there")
        return content[_OVERFLOW_HEADER.size :]

    def open(self, key: bytes, value: int | bytes | _Big) -> bytes:
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

    def _parsed(self, number: int, content: bytes) -> _Page:
        found, _, flags, lower, upper = _PAGE_HEADER.unpack_from(content)
        count = (lower - _PAGE_HEADER.size) // 2
        if (
            found != number
            or flags not in {_BRANCH, _LEAF}
            or count < 0
            or not lower <= upper <= len(content)
        ):
            raise self._damaged(f"page {number} is not the one that was there")
        places = Struct(f"={count}H").unpack_from(content, _PAGE_HEADER.size)
        is_leaf = flags == _LEAF
        keys, values = [], []
        for place in places:
            if not upper <= place <= len(content) - _NODE.size:
                raise self._damaged(f"page {number} is not whole")
            low, high, node_flags, key_size = _NODE.unpack_from(content, place)
            at = place + _NODE.size
            key = content[at : at + key_size]
            if len(key) != key_size:
                raise self._damaged(f"page {number} is not whole")
            keys.append(key)
            if is_leaf:
                values.append(self._node(number, content, at + key_size, low | high << 16, node_flags))
            else:
                values.append(low | high << 16 | node_flags << 32)
        if not is_leaf:
            if not keys:
                raise self._damaged(f"page {number} leads nowhere")
            keys[0] = b""
        if any(one >= other for one, other in pairwise(keys)):
            raise self._damaged(f"the keys of page {number} do not rise")
        return _Page(is_leaf, keys, values)

    def _node(self, number: int, content: bytes, at: int, size: int, flags: int) -> bytes | _Big:
        if flags & _BIG and at + _NUMBER.size <= len(content):
            return _Big(_NUMBER.unpack_from(content, at)[0], size)
        if flags not in {0, _SUB} or at + size > len(content):
            raise self._damaged(f"page {number} is not whole")
        return content[at : at + size]

    def _bytes(self, at: int, size: int) -> bytes:
        try:
            content = os.pread(self._descriptor, size, at)
        except (OSError, OverflowError) as error:
            if isinstance(error, OSError):
                raise folder_error(error, f"{self._path} cannot be read") from error
            content = b""
        if len(content) != size:
            raise self._damaged(f"it ends before byte {at + size}")
        return content

    def _damaged(self, what: str) -> StoreDamagedError:
        return StoreDamagedError(f"{self._path} is damaged: {what}; {REMEDY}")

    def outside(self, page: _Page) -> StoreDamagedError:
        """Return the error for a page whose keys are not those that it was looked for with."""
        return self._damaged(f"the page that begins with {page.keys[:1]} is not the one that was there")


class _Tree:
    """One table in one view.

    Args:
        prover: Reads its pages.
        root: The number of its topmost page.
        depth: How many pages are on the way to a record.
        is_main: Whether it is LMDB's own table of tables, whose rows have no checksums.
    """

    __slots__ = ("_depth", "_is_main", "_prover", "_root")

    def __init__(self, prover: Prover, root: int, depth: int, *, is_main: bool = False) -> None:
        self._prover = prover
        self._root = root
        self._depth = depth
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

    def forward(self, start: bytes) -> Iterator[tuple[bytes, int | bytes | _Big]]:
        """Yield the rows from a key on, which is itself included."""
        place = self._place(lambda keys: bisect_right(keys, start, lo=1) - 1)
        if place is not None:
            self._prove_neighbours(place)
        while place is not None:
            leaf = place.leaf
            for index in range(bisect_left(leaf.keys, start), len(leaf.keys)):
                yield leaf.keys[index], leaf.values[index]
            place = self._beside(place, 1)

    def backward(self, end: bytes | None, *, included: bool) -> Iterator[tuple[bytes, int | bytes | _Big]]:
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
        if self._root == _NO_PAGE:
            return None
        return self._descend([], self._root, b"", None, choose)

    def _descend(
        self,
        way: list[_Step],
        number: int,
        lower: bytes,
        upper: bytes | None,
        choose: Callable[[list[bytes]], int],
    ) -> _Place:
        while True:
            page = self._prover.page(number, is_main=self._is_main)
            own = page.keys if page.is_leaf else page.keys[1:]
            is_outside = own and (own[0] < lower or (upper is not None and own[-1] >= upper))
            if is_outside or page.is_leaf != (len(way) + 1 == self._depth):
                raise self._prover.outside(page)
            if page.is_leaf:
                return _Place(way, page)
            index = choose(page.keys)
            way = [*way, _Step(page, index, lower, upper)]
            number, lower, upper = _child(page, index, lower, upper)

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
                    *_child(branch, index, lower, upper),
                    (lambda _keys: 0) if step > 0 else lambda keys: len(keys) - 1,
                )
        return None

    def _prove_neighbours(self, place: _Place) -> None:
        self._beside(place, -1)
        self._beside(place, 1)


def _child(page: _Page, index: int, lower: bytes, upper: bytes | None) -> tuple[int, bytes, bytes | None]:
    number = page.values[index]
    assert isinstance(number, int)
    low = page.keys[index] if index else lower
    high = page.keys[index + 1] if index + 1 < len(page.keys) else upper
    return number, low, high


class ProvenReading(Reading):
    """One view of the committed rows, as `Reading`, in which nothing is believed that is not proven.

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
    ) -> Iterator[tuple[bytes, int | bytes | _Big]]:
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
