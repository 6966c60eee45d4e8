"""Tasks that end with the client they run for."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import trio

logger = logging.getLogger(__name__)


class ClientTasks:
    """The tasks of one client.

    Args:
        start: Starts a task of the server.
    """

    __slots__ = ("_scopes", "_start")

    def __init__(self, start: Callable[..., None]) -> None:
        self._start = start
        self._scopes: set[trio.CancelScope] = set()

    def spawn(self, work: Callable[..., Any], /, *args: Any) -> None:
        """Start a task; a fault in it is logged, and the concern of nobody else."""
        scope = trio.CancelScope()
        self._scopes.add(scope)
        self._start(self._run, scope, work, args)

    async def _run(self, scope: trio.CancelScope, work: Callable[..., Any], args: tuple[Any, ...]) -> None:
        try:
            with scope:
                await work(*args)
        except Exception:
            logger.exception("a task of an HTTP client failed")
        finally:
            self._scopes.discard(scope)

    def cancel(self) -> None:
        """End them."""
        for scope in list(self._scopes):
            scope.cancel()
