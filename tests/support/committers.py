"""Crashes at a commit, and that they are expected."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from greenroom.runtime import InlineCommitter, StorageFullError
from greenroom.testing import CrashError, FaultyDisk

if TYPE_CHECKING:
    from collections.abc import Iterator


def full() -> StorageFullError:
    return StorageFullError("no room, says the test")


def crash_at(commit: int, *, after: bool) -> InlineCommitter:
    """Return a committer that crashes at this commit (1 is the first), before or after it is on disk."""
    return InlineCommitter(FaultyDisk("crash after" if after else "crash before", commit))


@contextmanager
def crashing() -> Iterator[None]:
    """Expect the block to die of `CrashError`."""
    crashed = False
    try:
        yield
    except* CrashError:
        crashed = True
    assert crashed, "the block was to crash"
