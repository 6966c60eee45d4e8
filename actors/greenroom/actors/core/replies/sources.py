"""The sources of a reply, collected while an operation runs, and cache hits and misses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

import msgspec

CacheLevel = Literal["client", "memory"]
"""The caches: ``client``, what this client has read already; ``memory``, replies in memory."""


class Sources(msgspec.Struct):
    """The sources of one reply, best first, with their sizes in bytes.

    ``again`` counts bytes that would have been read again; ``caches`` lists lookups, and whether they hit.
    """

    wholes: list[tuple[str, int]] = msgspec.field(default_factory=list)
    again: int = 0
    caches: list[tuple[CacheLevel, bool]] = msgspec.field(default_factory=list)


_SOURCES: ContextVar[Sources | None] = ContextVar("sources", default=None)


@contextmanager
def collect_sources() -> Iterator[Sources]:
    """Collect the sources of this task while the block runs."""
    sources = Sources()
    token = _SOURCES.set(sources)
    try:
        yield sources
    finally:
        _SOURCES.reset(token)


def is_collecting() -> bool:
    """Return whether sources are collected in this task."""
    return _SOURCES.get() is not None


def note_whole(what: str, size: int) -> None:
    """Add a source with its whole size in bytes."""
    if (sources := _SOURCES.get()) is not None:
        sources.wholes.append((what, size))


def note_again(size: int) -> None:
    """Add bytes that would have been read again."""
    if (sources := _SOURCES.get()) is not None:
        sources.again += size


def note_cache(level: CacheLevel, *, is_hit: bool) -> None:
    """Add a lookup in a cache."""
    if (sources := _SOURCES.get()) is not None:
        sources.caches.append((level, is_hit))
