"""Turns: the order of arrival, kept across tasks that run in any order."""

from __future__ import annotations

from collections import deque

import trio


class Turn:
    """One place in the queue. It comes when everyone before has left."""

    __slots__ = ("_come", "_left", "_turns")

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._come = trio.Event()
        self._left = False

    async def come(self) -> None:
        """Wait until this place is the first."""
        await self._come.wait()

    def leave(self) -> None:
        """Give the place up, whether the turn has come or not; a second time does nothing."""
        if not self._left:
            self._left = True
            self._turns._advance()  # noqa: SLF001  (a turn and its queue are one thing in two classes)


class Turns:
    """A queue of places.

    The SDK runs each request in a task of its own and trio shuffles the tasks that are
    ready, but messages of one sender must reach the mailboxes in the order of arrival.
    """

    def __init__(self) -> None:
        self._queue: deque[Turn] = deque()

    def take(self) -> Turn:
        """Return a place behind all others."""
        turn = Turn(self)
        self._queue.append(turn)
        self._advance()
        return turn

    def _advance(self) -> None:
        while self._queue and self._queue[0]._left:  # noqa: SLF001
            self._queue.popleft()
        if self._queue:
            self._queue[0]._come.set()  # noqa: SLF001
