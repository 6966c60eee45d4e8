"""Checkpoints of graphs for an embedding program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from greenroom.actors.app.services.base import Askable, service_errors
from greenroom.actors.core.auth.errors import not_serializable
from greenroom.actors.core.auth.principal import Principal, check_principal
from greenroom.actors.sessions.graph_checkpoints.actor import thread_address
from greenroom.actors.sessions.graph_checkpoints.records import ListThreads
from greenroom.actors.sessions.graph_checkpoints.requests import (
    CheckpointHead,
    CheckpointRead,
    CopyPart,
    DeleteRuns,
    DeleteThread,
    ListCheckpoints,
    PruneThread,
    PutCheckpoint,
    PutWrites,
    ReadCheckpoint,
    check_checkpoint,
    check_writes,
)
from greenroom.runtime import Message

R = TypeVar("R")


class CheckpointService:
    """Checkpoints of graphs by thread: opaque bytes that no search finds.

    A thread belongs to the principal's user, or to the agent if it has no user; no one else can read it. A
    write is durable when the method returns. A refusal is a `ServiceError`, a ``ValueError``.

    Args:
        runtime: The runtime of `open_greenroom`, or a `Database`.
        principal: The identity of the service.
    """

    def __init__(self, runtime: Askable, principal: Principal) -> None:
        self._runtime = runtime
        self._principal = check_principal(principal)

    async def put(self, checkpoint: PutCheckpoint) -> None:
        """Store or replace a checkpoint with this id, and its values, all or nothing.

        Raises:
            ServiceError: It is too large, or its id is invalid.
        """
        with _service_errors():
            check_checkpoint(checkpoint)
        await self._ask(checkpoint.thread_id, checkpoint)

    async def put_writes(self, writes: PutWrites) -> None:
        """Store writes of tasks, all or nothing; existing writes stay.

        Raises:
            ServiceError: They are too large, or the checkpoint's id is invalid.
        """
        with _service_errors():
            check_writes(writes)
        await self._ask(writes.thread_id, writes)

    async def read(
        self,
        thread_id: str,
        namespace: str,
        checkpoint_id: str | None = None,
        channels: list[str] | None = None,
    ) -> CheckpointRead | None:
        """Return a checkpoint with its values and writes, or None if there is none.

        Args:
            thread_id: The thread.
            namespace: The namespace.
            checkpoint_id: The checkpoint; None means the newest.
            channels: Only values of these channels, and writes to them; None means all.
        """
        request = ReadCheckpoint(namespace=namespace, checkpoint_id=checkpoint_id, channels=channels)
        first = read = await self._ask(thread_id, request)
        while read is not None and read.next is not None and first is not None:
            rest = msgspec.structs.replace(request, checkpoint_id=first.checkpoint_id, skip=read.next)
            read = await self._ask(thread_id, rest)
            if read is not None:
                first.values.extend(read.values)
                first.writes.extend(read.writes)
        return first if read is not None else None

    async def threads(self) -> list[str]:
        """Return all threads with content, in no particular order."""
        return await self._runtime.query(ListThreads(), principal=self._principal)

    async def page(self, thread_id: str, asked: ListCheckpoints) -> list[CheckpointHead]:
        """Return a page of a thread's checkpoints, newest first; empty after the last."""
        return await self._ask(thread_id, asked)

    async def delete_thread(self, thread_id: str) -> None:
        """Delete a thread, oldest checkpoints first if it is large."""
        await self._until_done(thread_id, DeleteThread())

    async def delete_runs(self, run_ids: list[str]) -> None:
        """Delete the checkpoints of some runs in all threads, and data that only they needed."""
        for thread_id in await self.threads() if run_ids else ():
            await self._until_done(thread_id, DeleteRuns(run_ids=run_ids))

    async def prune(self, thread_id: str) -> None:
        """Keep the newest checkpoint of each namespace, and data that it needs; delete all others."""
        await self._until_done(thread_id, PruneThread())

    async def copy_thread(self, source: str, target: str) -> None:
        """Copy a thread into another one; an interrupted copy can be repeated."""
        if source == target:
            return
        after: bytes | None = None
        with _service_errors():
            key = thread_address(self._principal, source).key
        while True:
            after = await self._ask(target, CopyPart(source=key, thread_id=target, after=after))
            if after is None:
                return

    async def _until_done(self, thread_id: str, message: Message[bool]) -> None:
        while await self._ask(thread_id, message):
            pass

    async def _ask(self, thread_id: str, message: Message[R]) -> R:
        with _service_errors():
            address = thread_address(self._principal, thread_id)
            return await self._runtime.ask(address, message, principal=self._principal)


@contextmanager
def _service_errors() -> Iterator[None]:
    """Convert any `Refusal`, and the error for a name with a surrogate, to a `ServiceError`."""
    with service_errors():
        try:
            yield
        except UnicodeEncodeError as error:
            raise not_serializable(f"a name holds a lone surrogate at character {error.start}") from None
