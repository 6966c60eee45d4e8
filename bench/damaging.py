"""What bad disks and bad memory do to a store's file: its bytes change, and nothing says so."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path

PAGE: Final = 4096


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


KINDS: Final[tuple[Callable[[bytearray, random.Random], None], ...]] = (zeroed, swapped, cut_short, flipped)


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
