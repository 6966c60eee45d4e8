"""A committer's function that dies, or finds the disk full, at a chosen commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from greenroom.runtime import StorageFullError

if TYPE_CHECKING:
    from collections.abc import Sequence


class Crash(Exception):  # noqa: N818  it is no error of anybody's
    """The process died here."""


class Saboteur:
    """Commits, until the chosen commit comes; then it does what it was told instead."""

    def __init__(self, ending: str, at: int) -> None:
        self._ending = ending
        self._left = at
        self.struck = False

    def __call__(self, store: Any, works: Sequence[Any]) -> None:
        self._left -= 1
        strikes = self._left == 0 and self._ending != "close"
        self.struck = self.struck or strikes
        if strikes and self._ending == "crash before":
            raise Crash
        if strikes and self._ending == "full":
            works[0].error = StorageFullError("the disk is full")
        store.commit(works)
        if strikes and self._ending == "crash after":
            raise Crash
