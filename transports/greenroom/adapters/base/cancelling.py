"""Work of several commits that is not left half done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar, TypeVarTuple

import anyio

from greenroom.actors import Database

R = TypeVar("R")
Arguments = TypeVarTuple("Arguments")


async def call_whole(
    database: Database, function: Callable[[*Arguments], Awaitable[R]], *arguments: *Arguments
) -> R:
    """Run an async function to its end, in the thread of the database, also where the caller is cancelled.

    A shield in the caller's task would do on trio, but asyncio's ``task.cancel()`` passes through it.

    Raises:
        RuntimeClosedError: as `Database.call_async`.
    """

    async def shielded() -> R:
        with anyio.CancelScope(shield=True):
            result = await function(*arguments)
        return result  # noqa: RET504  a scope may swallow, says its type

    return await database.call_async(shielded)
