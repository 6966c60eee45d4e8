"""Calls between the caller's event loop and the database's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, TypeVarTuple

import anyio

from greenroom.actors import Database

R = TypeVar("R")
P = ParamSpec("P")
Arguments = TypeVarTuple("Arguments")


def call_blocking(
    database: Database, function: Callable[[*Arguments], Awaitable[R]], *arguments: *Arguments
) -> R:
    """Run an async method in the thread of the database, and wait.

    Raises:
        RuntimeError: this thread runs an event loop, which the call would block.
        RuntimeClosedError: as in `Database.call`.
    """
    try:
        anyio.get_current_task()
    except anyio.NoEventLoopError:
        return database.call(function, *arguments)
    raise RuntimeError("this method blocks, and an event loop runs in this thread: await its async twin")


def blocking(
    method: Callable[Concatenate[Any, P], Awaitable[R]], twin: Callable[[Any], Any] = lambda self: self
) -> Callable[Concatenate[Any, P], R]:
    """Return the blocking twin of an async method, for a class with a ``_database``.

    ``twin`` maps the object that blocks to the object that has the async method.
    """

    @wraps(method)
    def call(self: Any, /, *arguments: P.args, **named: P.kwargs) -> R:
        return call_blocking(self._database, partial(method, twin(self), *arguments, **named))

    return call


async def call_whole(
    database: Database, function: Callable[[*Arguments], Awaitable[R]], *arguments: *Arguments
) -> R:
    """Run an async function in the database's thread, even if the caller is cancelled.

    A shield in the caller's task would not protect against asyncio's ``task.cancel()``.
    """

    async def run_shielded() -> R:
        with anyio.CancelScope(shield=True):
            result = await function(*arguments)
        return result  # noqa: RET504  mypy assumes that a scope may swallow errors

    return await database.call_async(run_shielded)
