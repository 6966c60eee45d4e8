"""Protect work of several commits against cancellation."""

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
    """Run an async function in the database's thread, even if the caller is cancelled.

    A shield in the caller's task would not protect against asyncio's ``task.cancel()``.

    Raises:
        RuntimeClosedError: as `Database.call_async`.
    """

    async def run_shielded() -> R:
        with anyio.CancelScope(shield=True):
            result = await function(*arguments)
        return result  # noqa: RET504  mypy assumes that a scope may swallow errors

    return await database.call_async(run_shielded)
