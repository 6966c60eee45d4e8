"""What bad disks and bad memory do to a store's file: its bytes change, and nothing says so."""

from __future__ import annotations

import os
from struct import Struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path

PAGE: Final = 4096
_END_OF_PLACES: Final = Struct("=12xH2x")  # a page's head
_PLACE: Final = Struct("=H")
_KEY_LENGTH: Final = Struct("=6xH")  # what stands before a record's key


def zeroed(content: bytearray, chance: random.Random) -> None:
    """Make some pages nothing but zeros."""
    for _ in range(chance.randint(1, 4)):
        at = PAGE * chance.randrange(len(content) // PAGE)
        content[at : at + PAGE] = bytes(PAGE)


def swapped(content: bytearray, chance: random.Random) -> None:
    """Have two pages in each other's place."""
    pages = range(2, len(content) // PAGE)
    first, second = (PAGE * page for page in chance.sample(pages, 2))
    content[first : first + PAGE], content[second : second + PAGE] = (
        content[second : second + PAGE],
        content[first : first + PAGE],
    )


def cut_short(content: bytearray, chance: random.Random) -> None:
    """Lose the end."""
    del content[PAGE * chance.randrange(1, len(content) // PAGE) :]


def flipped(content: bytearray, chance: random.Random) -> None:
    """Have some bits flipped."""
    for _ in range(chance.randint(1, 8)):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)


def flipped_record(content: bytes, page: int, key: bytes, bit: int) -> bytes:
    """Return a file with one bit flipped of a record that lies on a leaf.

    Args:
        content: The file.
        page: The leaf.
        key: The record's, where it lies.
        bit: Which bit of it, behind its key; a short record has 24 at least.
    """
    changed, start = bytearray(content), PAGE * page
    (end,) = _END_OF_PLACES.unpack_from(content, start)
    for (place,) in _PLACE.iter_unpack(content[start + _END_OF_PLACES.size : start + end]):
        (length,) = _KEY_LENGTH.unpack_from(content, start + place)
        at = start + place + _KEY_LENGTH.size
        if content[at : at + length] == key:
            changed[at + length + bit // 8] ^= 1 << bit % 8
            return bytes(changed)
    raise ValueError(f"there is no record {key!r} on page {page}")


def one_bit(content: bytearray, chance: random.Random) -> None:
    """Have one bit flipped."""
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)


KINDS: Final[tuple[Callable[[bytearray, random.Random], None], ...]] = (
    zeroed,
    swapped,
    cut_short,
    flipped,
    one_bit,
)


def rewrite(path: Path, content: bytes, when: int | None = None) -> None:
    """Change a file's bytes in place: its inode stays, and so does the time at which it was written last.

    Args:
        path: The file.
        content: Its new content.
        when: Another time, in nanoseconds since 1970.
    """
    when = path.stat().st_mtime_ns if when is None else when
    with path.open("r+b") as file:
        file.write(content)
        file.truncate()
    os.utime(path, ns=(when, when))
