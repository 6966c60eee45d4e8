"""What an operation notes while it is carried out: its sources, and whether a cache had them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import msgspec

from greenroom.actors.app.savings.requests import CacheLevel


class Sources(msgspec.Struct):
    """The sources of one answer.

    Attributes:
        wholes: What it was made from, the best first: what tells it from others, and its size in bytes.
        again: Bytes that would have been read again.
        caches: Each look into a cache, and whether it was there.
    """

    wholes: list[tuple[str, int]] = msgspec.field(default_factory=list)
    again: int = 0
    caches: list[tuple[CacheLevel, bool]] = msgspec.field(default_factory=list)


_NOTED: ContextVar[Sources | None] = ContextVar("sources", default=None)


@contextmanager
def noting() -> Iterator[Sources]:
    """Collect what is noted in this task while the block runs."""
    sources = Sources()
    token = _NOTED.set(sources)
    try:
        yield sources
    finally:
        _NOTED.reset(token)


def are_wanted() -> bool:
    """Return whether somebody collects what is noted."""
    return _NOTED.get() is not None


def note_whole(what: str, size: int) -> None:
    """Note a source, and how many bytes it has as a whole."""
    if (sources := _NOTED.get()) is not None:
        sources.wholes.append((what, size))


def note_again(size: int) -> None:
    """Note that so many bytes would have been read again."""
    if (sources := _NOTED.get()) is not None:
        sources.again += size


def note_cache(level: CacheLevel, *, is_hit: bool) -> None:
    """Note a look into a cache."""
    if (sources := _NOTED.get()) is not None:
        sources.caches.append((level, is_hit))
