"""The pages of a store's file, read without LMDB and believed only if they are what they should be.

It knows the files of LMDB 0.9, in the byte order of this machine.
"""

from __future__ import annotations

import os
import sys
from itertools import pairwise
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple
from zlib import crc32

from greenroom.runtime.base.errors import StoreDamagedError
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
"""In which direction the bytes of a number sort."""
_REMEMBERED: Final = 8_192
"""Pages; 32 MiB of the file."""


class Head(NamedTuple):
    """What one of the two heads of a file says: its transaction, and where its tables and free pages are."""

    transaction: int
    last_page: int
    root: int
    depth: int
    free_root: int
    free_depth: int


class Big(NamedTuple):
    """Where a record lies that has pages of its own."""

    page: int
    size: int


class Page(NamedTuple):
    """A proven page: of a branch the first key is empty, and the values are numbers of pages."""

    is_leaf: bool
    keys: list[bytes]
    values: list[int] | list[bytes | Big]


class Pages:
    """Reads and checks pages, for any thread.

    Args:
        path: The file.
        codec: Tells whether a record is what was stored under its key; None if records are not looked at.
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
        """Return what the two heads of the file say.

        Raises:
            StoreDamagedError: there are none.
        """
        size = TABLE.unpack_from(self._bytes(0, 512), _PAGE_HEADER.size + _META.size)[0]
        if size < 512 or size > 1 << 15 or size & (size - 1):  # noqa: PLR2004  LMDB's limits
            raise self.damaged(f"its pages cannot have {size} bytes")
        self._size = size
        return [self._head(page) for page in (0, 1)]

    def holds(self, head: Head) -> bool:
        """Return whether the file is as long as one of its heads says."""
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

        Args:
            number: Where it is.
            is_main: Whether its records are LMDB's own, and have no checksums.
            is_numbered: Whether its keys are numbers; they are returned so that they sort as bytes.

        Raises:
            StoreDamagedError: it is none, or not what was written there.
        """
        content = self._bytes(number * self._size, self._size)
        checksum = crc32(content)
        known = self._proven.get(number)
        if known is not None and known[0] == checksum:
            return known[1]
        page = self._parsed(number, content, is_numbered=is_numbered)
        if page.is_leaf and not is_main and self._codec is not None:
            for key, value in zip(page.keys, page.values, strict=True):
                self._codec.open(key, self.value(value))
        if len(self._proven) >= _REMEMBERED:
            self._proven.clear()
        self._proven[number] = checksum, page
        return page

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
        """Return a page of a tree whose keys are to lie from one key to before another.

        Raises:
            StoreDamagedError: it is none, or not what was written there.
        """
        page = self.page(number, is_main=is_main, is_numbered=is_numbered)
        own = page.keys if page.is_leaf else page.keys[1:]
        is_outside = own and (own[0] < lower or (upper is not None and own[-1] >= upper))
        if is_outside or page.is_leaf != is_leaf:
            raise self.damaged(f"page {number} is not the one that was there")
        return page

    def value(self, value: int | bytes | Big) -> bytes:
        """Return a leaf's record.

        Raises:
            StoreDamagedError: the pages that it lies in are others.
        """
        if isinstance(value, bytes):
            return value
        assert isinstance(value, Big)
        content = self._bytes(value.page * self._size, _OVERFLOW_HEADER.size + value.size)
        number, _, flags, pages = _OVERFLOW_HEADER.unpack_from(content)
        if (number, flags) != (value.page, _OVERFLOW) or len(content) > pages * self._size:
            raise self.damaged(f"page {value.page} is not the record that was there")
        return content[_OVERFLOW_HEADER.size :]

    def pages_of(self, value: Big) -> range:
        """Return the numbers of the pages that a record has of its own."""
        return range(value.page, value.page + -(-(_OVERFLOW_HEADER.size + value.size) // self._size))

    def overflow_pages(self, number: int) -> int:
        """Return how many pages the record has that begins on a page; 0 if none begins there.

        Raises:
            StoreDamagedError: the file ends before.
        """
        found, _, flags, pages = _OVERFLOW_HEADER.unpack_from(self._bytes(number * self._size, self._size))
        return pages if (found, flags) == (number, _OVERFLOW) else 0

    def numbers(self, value: int | bytes | Big) -> tuple[int, ...]:
        """Return the page numbers of a record of the list of free pages.

        Raises:
            StoreDamagedError: it is none.
        """
        record = self.value(value)
        if len(record) % _NUMBER.size or not record:
            raise self.damaged("its list of free pages is not what was there")
        count, *numbers = Struct(f"={len(record) // _NUMBER.size}Q").unpack(record)
        if count > len(numbers):
            raise self.damaged("its list of free pages is not what was there")
        return tuple(numbers[:count])

    def _parsed(self, number: int, content: bytes, *, is_numbered: bool) -> Page:
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
        keys, values = [], []
        for place in places:
            if not upper <= place <= len(content) - _NODE.size:
                raise self.damaged(f"page {number} is not whole")
            low, high, node_flags, key_size = _NODE.unpack_from(content, place)
            at = place + _NODE.size
            key = content[at : at + key_size]
            if len(key) != key_size:
                raise self.damaged(f"page {number} is not whole")
            keys.append(key[::_RISING] if is_numbered else key)
            if is_leaf:
                values.append(self._node(number, content, at + key_size, low | high << 16, node_flags))
            else:
                values.append(low | high << 16 | node_flags << 32)
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
        """Return the error for a file of which something is wrong."""
        return StoreDamagedError(f"{self._path} is damaged: {what}; {REMEDY}")
