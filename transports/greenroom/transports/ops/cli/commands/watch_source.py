"""Where `greenroom watch` reads a session: the interface of `watch_folder` and `watch_socket`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Protocol

SCHEME: Final = "session://"


class WatchError(Exception):
    """The session cannot be followed, or not any more; the message says why."""


class SessionSource(Protocol):
    """A session as its server shows it; what it does raises `WatchError`."""

    async def read(self) -> dict[str, Any]:
        """Return the resource: the session with its newest messages."""

    async def page(self, after: int) -> dict[str, Any]:
        """Return messages that are newer than one, the oldest of them first."""

    def changes(self) -> AbstractAsyncContextManager[Callable[[], Awaitable[bool]]]:
        """Return a block in which one may wait for the next change, False when a new block is needed."""
