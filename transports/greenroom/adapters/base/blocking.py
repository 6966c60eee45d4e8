"""Blocking calls of asynchronous methods."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar, TypeVarTuple

import anyio

from greenroom.actors import Database

R = TypeVar("R")
Arguments = TypeVarTuple("Arguments")


def call_blocking(
    database: Database, function: Callable[[*Arguments], Awaitable[R]], *arguments: *Arguments
) -> R:
    """Run an async method in the thread of the database, and wait.

    Raises:
        RuntimeError: this thread runs an event loop, which the call would block.
        RuntimeClosedError: as `Database.call`.
    """
    try:
        anyio.get_current_task()
    except anyio.NoEventLoopError:
        return database.call(function, *arguments)
    raise RuntimeError("this method blocks, and an event loop runs in this thread: await its async twin")
