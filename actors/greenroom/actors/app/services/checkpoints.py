"""Checkpoints of graphs for a program that embeds Greenroom."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from greenroom.actors.app.services.base import Askable, ServiceError
from greenroom.actors.checkpoints.limits import check_checkpoint, check_writes
from greenroom.actors.core.auth.errors import not_serializable
from greenroom.actors.core.auth.principal import Principal, check_principal
from greenroom.actors.schemas.checkpoints import (
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
)
from greenroom.actors.sessions.checkpoints.actor import thread_address
from greenroom.actors.sessions.checkpoints.directory import ListThreads
from greenroom.runtime import Message, Refusal

R = TypeVar("R")


class CheckpointService:
    """Checkpoints of graphs by thread, opaque bytes that no search finds.

    A thread belongs to the principal's user, or to the agent where it works for none; nobody else reads
    it. What a method writes is on disk when it returns. A "no" is a `ServiceError`, a ``ValueError``.

    Args:
        runtime: What `open_greenroom` opened, or a `Database`.
        principal: In whose name the service asks.
    """

    def __init__(self, runtime: Askable, principal: Principal) -> None:
        self._runtime = runtime
        self._principal = check_principal(principal)

    async def put(self, checkpoint: PutCheckpoint) -> None:
        """Keep a checkpoint and its new values, all or nothing; one with the same id is replaced.

        Raises:
            ServiceError: it is too large, or its id does not fit.
        """
        with _service_errors():
            check_checkpoint(checkpoint)
        await self._ask(checkpoint.thread_id, checkpoint)

    async def put_writes(self, writes: PutWrites) -> None:
        """Keep writes of tasks, all or nothing; what is there already stays.

        Raises:
            ServiceError: they are too large, or the id of the checkpoint does not fit.
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
            thread_id: Of which thread.
            namespace: Of which namespace.
            checkpoint_id: Which one; None: the newest.
            channels: Only values of these channels, and writes to them; None: of all.
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
        """Return all threads that have something, in no particular order."""
        return await self._runtime.query(ListThreads(), principal=self._principal)

    async def page(self, thread_id: str, asked: ListCheckpoints) -> list[CheckpointHead]:
        """Return a page of a thread's checkpoints, the newest first; after the last one it is empty."""
        return await self._ask(thread_id, asked)

    async def delete_thread(self, thread_id: str) -> None:
        """Delete all of a thread; a large one in parts, of which an interrupted call leaves the newest."""
        await self._until_done(thread_id, DeleteThread())

    async def delete_runs(self, run_ids: list[str]) -> None:
        """Delete, in all threads, the checkpoints that some runs made, and what only these needed."""
        for thread_id in await self.threads() if run_ids else ():
            await self._until_done(thread_id, DeleteRuns(run_ids=run_ids))

    async def prune(self, thread_id: str) -> None:
        """Delete all but the newest checkpoint of each namespace, and what that one needs."""
        await self._until_done(thread_id, PruneThread())

    async def copy_thread(self, source: str, target: str) -> None:
        """Copy all that is kept of a thread into another one; interrupted, it can be repeated."""
        if source == target:
            return
        after: bytes | None = None
        while True:
            key = self._key(source)
            after = await self._ask(target, CopyPart(source=key, thread_id=target, after=after))
            if after is None:
                return

    async def _until_done(self, thread_id: str, message: Message[bool]) -> None:
        while await self._ask(thread_id, message):
            pass

    def _key(self, thread_id: str) -> str:
        with _service_errors():
            return thread_address(self._principal, thread_id).key

    async def _ask(self, thread_id: str, message: Message[R]) -> R:
        with _service_errors():
            address = thread_address(self._principal, thread_id)
            return await self._runtime.ask(address, message, principal=self._principal)


@contextmanager
def _service_errors() -> Iterator[None]:
    """Raise a `ServiceError` in the place of any `Refusal`, and where a name is no text."""
    try:
        yield
    except Refusal as refusal:
        raise ServiceError.of(refusal) from None
    except UnicodeEncodeError as error:
        unfit = not_serializable(f"a name holds a lone surrogate at character {error.start}")
        raise ServiceError(unfit.code, unfit.sentence) from None
