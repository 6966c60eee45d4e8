"""The interface of the session sources of `greenroom watch`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Protocol

SCHEME: Final = "session://"


class WatchError(Exception):
    """The session cannot be followed; the message says why."""


class SessionSource(Protocol):
    """A session on its server; the methods raise `WatchError`."""

    async def read(self) -> dict[str, Any]:
        """Return the resource: the session with its newest messages."""

    async def page(self, after: int) -> dict[str, Any]:
        """Return messages after one, oldest first."""

    def changes(self) -> AbstractAsyncContextManager[Callable[[], Awaitable[bool]]]:
        """Return a block in which to await the next change; False requires a new block."""
