"""Read and verify the pages of a store's file without LMDB.

This module reads the format of LMDB 0.9, in the byte order of this machine.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple
from zlib import crc32

from greenroom.runtime.base.errors import RecordDamagedError, StoreDamagedError
from greenroom.runtime.lmdb.codec import RecordCodec
from greenroom.runtime.lmdb.environment import REMEDY
from greenroom.runtime.lmdb.files import folder_error

_PAGE_HEADER: Final = Struct("=QHHHH")  # number, pad, flags, lower, upper
_OVERFLOW_HEADER: Final = Struct("=QHHI")  # number, pad, flags, pages
_NODE: Final = Struct("=HHHH")  # low and high half of a size or a page number, flags, size of the key
_NUMBER: Final = Struct("=Q")
TABLE: Final = Struct("=IHHQQQQQ")  # pad, flags, depth, pages of three sorts, rows, root
_META: Final = Struct("=IIQQ")  # magic, version, address, size of the map
_META_END: Final = Struct("=QQ")  # last page, number of the transaction
_HEAD_BYTES: Final = _PAGE_HEADER.size + _META.size + 2 * TABLE.size + _META_END.size
_MAGIC: Final = 0xBEEFC0DE
_VERSION: Final = 1
_BRANCH: Final = 0x01
_LEAF: Final = 0x02
_OVERFLOW: Final = 0x04
_HEAD: Final = 0x08
_BIG: Final = 0x01
_SUB: Final = 0x02
NO_PAGE: Final = (1 << 64) - 1
_RISING: Final = 1 if sys.byteorder == "big" else -1
"""The step with which the bytes of a number are read so that they sort."""
_REMEMBERED: Final = 8_192
"""The most cached pages: 32 MiB of the file."""


class Damage(NamedTuple):
    """The damage of a row, and whether its original key is proven."""

    what: str
    lies_at: bytes
    is_key_known: bool = False

    def error(self, key: bytes) -> RecordDamagedError:
        """Return the error for the row; ``key`` is its original key, as far as known."""
        return RecordDamagedError(key, self.what, lies_at=self.lies_at, is_key_known=self.is_key_known)


_NONE: Final[Mapping[int, Damage]] = {}


class Head(NamedTuple):
    """One of the two heads of a file: its transaction, tables and free pages."""

    transaction: int
    last_page: int
    root: int
    depth: int
    free_root: int
    free_depth: int


class Big(NamedTuple):
    """The place of a large record, which has pages of its own."""

    page: int
    size: int


class Page(NamedTuple):
    """A proven page; a branch has an empty first key and page numbers as values.

    A damaged row has its original key, if known. ``damaged`` maps a row's place to its damage.
    """

    is_leaf: bool
    keys: list[bytes]
    values: list[int] | list[bytes | Big]
    damaged: Mapping[int, Damage] = _NONE

    def lies_at(self, place: int) -> bytes:
        """Return the key under which a row lies."""
        damage = self.damaged.get(place)
        return self.keys[place] if damage is None else damage.lies_at


class Pages:
    """Read and check pages, in any thread.

    Each read raises `StoreDamagedError` if the file differs from what was written. Without a codec, records
    are not checked against their keys.
    """

    def __init__(self, path: Path, codec: RecordCodec | None) -> None:
        self._path = path
        self._codec = codec
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._size = 0
        self._proven: dict[int, tuple[int, Page]] = {}

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def heads(self) -> list[Head]:
        """Return the two heads of the file."""
        size = TABLE.unpack_from(self._bytes(0, 512), _PAGE_HEADER.size + _META.size)[0]
        if size < 512 or size > 1 << 15 or size & (size - 1):  # noqa: PLR2004  LMDB's limits
            raise self.damaged(f"its pages cannot have {size} bytes")
        self._size = size
        return [self._head(page) for page in (0, 1)]

    def top(self) -> bytes:
        """Return the bytes of both heads, and of the newest head's table of tables.

        They have no checksums.
        """
        head = max(self.heads())
        content = b"".join(self._bytes(page * self._size, _HEAD_BYTES) for page in (0, 1))
        if head.root == NO_PAGE:
            return content
        names = self.page(head.root, is_main=True)
        if not names.is_leaf:
            raise self.damaged(f"page {head.root} is not its table of tables")
        rows = zip(names.keys, map(self.value, names.values), strict=True)
        return content + b"".join(key + value for key, value in rows)

    def holds(self, head: Head) -> bool:
        """Return whether the file is as long as a head requires."""
        return os.fstat(self._descriptor).st_size >= (head.last_page + 1) * self._size

    def _head(self, page: int) -> Head:
        content = self._bytes(page * self._size, 512)
        number, _, flags, *_ = _PAGE_HEADER.unpack_from(content)
        at = _PAGE_HEADER.size
        magic, version, *_ = _META.unpack_from(content, at)
        at += _META.size
        _, _, free_depth, *_, free_root = TABLE.unpack_from(content, at)
        at += TABLE.size
        _, _, depth, *_, root = TABLE.unpack_from(content, at)
        last_page, transaction = _META_END.unpack_from(content, at + TABLE.size)
        if (number, flags, magic, version) != (page, _HEAD, _MAGIC, _VERSION):
            raise self.damaged(f"page {page} is not its head")
        return Head(transaction, last_page, root, depth, free_root, free_depth)

    def page(self, number: int, *, is_main: bool = False, is_numbered: bool = False) -> Page:
        """Return a page of a tree.

        LMDB's own records (``is_main``) have no checksums. If keys are numbers, their bytes are returned in
        an order that sorts.
        """
        content = self._bytes(number * self._size, self._size)
        checksum = crc32(content)
        known = self._proven.get(number)
        if known is not None and known[0] == checksum:
            return known[1]
        page = self._parse(number, content, is_numbered=is_numbered)
        if page.is_leaf and not is_main and self._codec is not None:
            page = self._check_rows(page, self._codec)
        if len(self._proven) >= _REMEMBERED:
            self._proven.clear()
        self._proven[number] = checksum, page
        return page

    def _check_rows(self, page: Page, codec: RecordCodec) -> Page:
        """Return a leaf with the damage of its rows."""
        found = {}
        keys = list(page.keys)
        for place, (key, value) in enumerate(zip(page.keys, page.values, strict=True)):
            try:
                codec.open(key, self.value(value))
            except RecordDamagedError as error:
                is_after = not place or keys[place - 1] < error.key
                is_before = place + 1 == len(keys) or error.key < keys[place + 1]
                is_known = error.is_key_known and is_after and is_before
                keys[place] = error.key if is_known else key
                found[place] = Damage(str(error), key, is_known)
            except StoreDamagedError as error:  # the record's own pages are damaged
                found[place] = Damage(str(error), key)
        return page._replace(keys=keys, damaged=found) if found else page

    def bounded(
        self,
        number: int,
        lower: bytes,
        upper: bytes | None,
        *,
        is_leaf: bool,
        is_main: bool = False,
        is_numbered: bool = False,
    ) -> Page:
        """Return a page of a tree; its keys lie from ``lower`` to below ``upper``."""
        page = self.page(number, is_main=is_main, is_numbered=is_numbered)
        first, last = (0 if page.is_leaf else 1), len(page.keys) - 1
        is_outside = first <= last and (
            page.lies_at(first) < lower or (upper is not None and page.lies_at(last) >= upper)
        )
        if is_outside or page.is_leaf != is_leaf:
            raise self.damaged(f"page {number} is not the one that was there")
        return page

    def value(self, value: int | bytes | Big) -> bytes:
        """Return a leaf's record."""
        if isinstance(value, bytes):
            return value
        assert isinstance(value, Big)
        content = self._bytes(value.page * self._size, _OVERFLOW_HEADER.size + value.size)
        number, _, flags, pages = _OVERFLOW_HEADER.unpack_from(content)
        if (number, flags) != (value.page, _OVERFLOW) or len(content) > pages * self._size:
            raise self.damaged(f"page {value.page} is not the record that was there")
        return content[_OVERFLOW_HEADER.size :]

    def pages_of(self, value: Big) -> range:
        """Return the numbers of a record's own pages."""
        return range(value.page, value.page + -(-(_OVERFLOW_HEADER.size + value.size) // self._size))

    def overflow_pages(self, number: int) -> int:
        """Return the number of pages of a record that begins on a page, or 0."""
        found, _, flags, pages = _OVERFLOW_HEADER.unpack_from(self._bytes(number * self._size, self._size))
        return pages if (found, flags) == (number, _OVERFLOW) else 0

    def numbers(self, value: int | bytes | Big) -> tuple[int, ...]:
        """Return the page numbers in a record of the list of free pages."""
        record = self.value(value)
        if len(record) % _NUMBER.size or not record:
            raise self.damaged("its list of free pages is not what was there")
        count, *numbers = Struct(f"={len(record) // _NUMBER.size}Q").unpack(record)
        if count > len(numbers):
            raise self.damaged("its list of free pages is not what was there")
        return tuple(numbers[:count])

    def _parse(self, number: int, content: bytes, *, is_numbered: bool) -> Page:
        found, _, flags, lower, upper = _PAGE_HEADER.unpack_from(content)
        count = (lower - _PAGE_HEADER.size) // 2
        if (
            found != number
            or flags not in {_BRANCH, _LEAF}
            or count < 0
            or not lower <= upper <= len(content)
        ):
            raise self.damaged(f"page {number} is not the one that was there")
        places = Struct(f"={count}H").unpack_from(content, _PAGE_HEADER.size)
        is_leaf = flags == _LEAF
        keys, values, ends = [], [], []
        for place in places:
            if not upper <= place <= len(content) - _NODE.size:
                raise self.damaged(f"page {number} is not whole")
            low, high, node_flags, key_size = _NODE.unpack_from(content, place)
            at = place + _NODE.size
            key = content[at : at + key_size]
            if len(key) != key_size:
                raise self.damaged(f"page {number} is not whole")
            keys.append(key[::_RISING] if is_numbered else key)
            inside = (_NUMBER.size if node_flags & _BIG else low | high << 16) if is_leaf else 0
            ends.append((place, at + key_size + inside))
            if is_leaf:
                values.append(self._node(number, content, at + key_size, low | high << 16, node_flags))
            else:
                values.append(low | high << 16 | node_flags << 32)
        if not _fill(ends, upper, len(content)):
            raise self.damaged(f"page {number} is not whole")
        if not is_leaf:
            if not keys:
                raise self.damaged(f"page {number} leads nowhere")
            keys[0] = b""
        if any(one >= other for one, other in pairwise(keys)):
            raise self.damaged(f"the keys of page {number} do not rise")
        return Page(is_leaf, keys, values)

    def _node(self, number: int, content: bytes, at: int, size: int, flags: int) -> bytes | Big:
        if flags & _BIG and at + _NUMBER.size <= len(content):
            return Big(_NUMBER.unpack_from(content, at)[0], size)
        if flags not in {0, _SUB} or at + size > len(content):
            raise self.damaged(f"page {number} is not whole")
        return content[at : at + size]

    def _bytes(self, at: int, size: int) -> bytes:
        try:
            content = os.pread(self._descriptor, size, at)
        except (OSError, OverflowError) as error:
            if isinstance(error, OSError):
                raise folder_error(error, f"{self._path} cannot be read") from error
            content = b""
        if len(content) != size:
            raise self.damaged(f"it ends before byte {at + size}")
        return content

    def damaged(self, what: str) -> StoreDamagedError:
        """Return the error for a damaged file."""
        return StoreDamagedError(f"{self._path} is damaged: {what}; {REMEDY}")


def _fill(nodes: list[tuple[int, int]], start: int, end: int) -> bool:
    """Return whether nodes lie at even places without gaps, which proves their lengths."""
    for place, behind in sorted(nodes):
        if place != start:
            return False
        start = behind + behind % 2
    return start == end
