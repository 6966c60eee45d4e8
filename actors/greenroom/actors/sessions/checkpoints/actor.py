"""The actor of the checkpoints of one thread.

Its key is the owner, a slash and the thread. What is in a checkpoint only its writer can read.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from greenroom.actors.checkpoints.data import delete_data, put_data
from greenroom.actors.checkpoints.limits import check_checkpoint, check_names, check_writes
from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth.namespaces import thread_key, user_namespace
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.schemas import checkpoints as schemas
from greenroom.actors.schemas.erasure import ErasedPart, EraseFrom
from greenroom.actors.sessions.checkpoints import directory, reading, records, removal
from greenroom.actors.sessions.checkpoints.records import StoredCheckpoint, StoredValue, StoredWrite
from greenroom.runtime import Actor, Address, Context, Restate, Slices, handles

_COPIED: Final = (records.VALUES, records.REST, records.WRITES, records.CHECKPOINTS)
"""In this order a thread is copied: a checkpoint comes when all is there that it needs."""


def thread_address(principal: Principal, thread_id: str) -> Address:
    """Return the actor that has a thread of a principal's user."""
    return Address(schemas.KIND, thread_key(principal, thread_id))


class CheckpointsActor(Actor):
    """The checkpoints of one thread."""

    kind = schemas.KIND
    names = staticmethod(records.names_in)

    def activate(self, context: Context) -> None:
        """Look whether there is something."""
        self._thread_id = context.get(records.THREAD, str)

    @handles(schemas.PutCheckpoint)
    def put(self, request: schemas.PutCheckpoint, context: Context) -> None:
        """Keep a checkpoint and its new values."""
        _check(context)
        size = check_checkpoint(request)
        self._begin(request.thread_id, context)
        digests = {channel: records.digest(channel, version) for channel, version in request.versions.items()}
        for each in request.values:
            key = records.value_key(request.namespace, digests[each.channel])
            _clear(context, key, StoredValue)
            if each.value is not None:
                context.put(key, StoredValue(each.channel, put_data(context, key, each.value)))
        key = records.checkpoint_key(request.namespace, request.checkpoint_id)
        _clear(context, key, StoredCheckpoint)
        context.put(
            key,
            StoredCheckpoint(
                namespace=request.namespace,
                checkpoint_id=request.checkpoint_id,
                parent_id=request.parent_id,
                run_id=request.run_id,
                values=digests,
                deltas=request.deltas,
                metadata=request.metadata,
                data=put_data(context, key, request.checkpoint),
            ),
        )
        audit_record.record(context, "put_checkpoint", None, bytes=size)

    @handles(schemas.PutWrites)
    def put_writes(self, request: schemas.PutWrites, context: Context) -> None:
        """Keep writes that are not there yet."""
        _check(context)
        size = check_writes(request)
        self._begin(request.thread_id, context)
        for each in request.writes:
            key = records.write_key(request.namespace, request.checkpoint_id, each.task_id, each.index)
            if each.index >= 0 and context.get(key, StoredWrite) is not None:
                continue
            _clear(context, key, StoredWrite)
            stored = StoredWrite(
                each.task_path, each.task_id, each.index, each.channel, put_data(context, key, each.value)
            )
            context.put(key, stored)
        audit_record.record(context, "put_writes", None, writes=len(request.writes), bytes=size)

    @handles(schemas.ReadCheckpoint)
    def read(
        self, request: schemas.ReadCheckpoint, context: Context
    ) -> Slices[schemas.CheckpointRead | None]:
        """Answer a checkpoint with its values and writes."""
        _check(context)
        check_names([request.namespace, request.checkpoint_id])
        stored = reading.found(request, context)
        if stored is None:
            return None
        audit_record.record_read(context, context.principal, "read_checkpoint", None)
        return (yield from reading.checkpoint(stored, request, context))

    @handles(schemas.ListCheckpoints)
    def list_checkpoints(
        self, request: schemas.ListCheckpoints, context: Context
    ) -> Slices[list[schemas.CheckpointHead]]:
        """Answer a page of checkpoints."""
        _check(context)
        check_names([request.namespace, request.checkpoint_id, request.before])
        page = yield from reading.page(request, context)
        audit_record.record_read(context, context.principal, "list_checkpoints", None, found=len(page))
        return page

    @handles(schemas.DeleteThread)
    def delete(self, _: schemas.DeleteThread, context: Context) -> Slices[bool]:
        """Delete everything, the oldest checkpoints first and their values last."""
        _check(context)
        counts, remains = yield from self._removed(context)
        if counts:
            audit_record.record(context, "delete_thread", None, **counts)
        return remains

    @handles(schemas.DeleteRuns)
    def delete_runs(self, request: schemas.DeleteRuns, context: Context) -> Slices[bool]:
        """Delete what some runs made."""
        _check(context)
        doomed = yield from removal.of_runs(set(request.run_ids), context)
        return (yield from self._drop("delete_runs", doomed, context))

    @handles(schemas.PruneThread)
    def prune(self, _: schemas.PruneThread, context: Context) -> Slices[bool]:
        """Delete what is older than the newest checkpoints, and not needed by them."""
        _check(context)
        doomed = yield from removal.of_the_past(context)
        return (yield from self._drop("prune_thread", doomed, context))

    @handles(schemas.ReadPart)
    def read_part(self, request: schemas.ReadPart, context: Context) -> Slices[schemas.Part]:
        """Answer some of the records."""
        _check(context)
        found: list[tuple[bytes, bytes]] = []
        size = 0
        after = request.after
        for prefix in _COPIED if after is None else _COPIED[_COPIED.index(after[:1]) :]:
            start = after if after is not None and after.startswith(prefix) else None
            for key, record in context.scan(msgspec.Raw, prefix=prefix, start=start):
                if key == after:
                    continue
                if size >= schemas.PAGE_BYTES:
                    return schemas.Part(records=found, next=found[-1][0])
                found.append((key, bytes(record)))
                size += len(found[-1][1])
                if context.should_yield():
                    yield
        return schemas.Part(records=found, next=None)

    @handles(schemas.CopyPart)
    def copy_part(self, request: schemas.CopyPart, context: Context) -> Slices[bytes | None]:
        """Keep records of the thread that was asked before this."""
        _check(context)
        part: schemas.Part = context.precheck_answer
        if part.records:
            self._begin(request.thread_id, context)
            for key, record in part.records:
                context.put(key, msgspec.Raw(record))
                if context.should_yield():
                    yield
            audit_record.record(context, "copy_thread", None, records=len(part.records))
        return part.next

    @handles(Restate)
    def restate(self, _: Restate, context: Context) -> None:
        """Write the row again by which the directory knows the thread."""
        context.use_reserve()
        if self._thread_id is not None:
            directory.put(context, _owner(context), self._thread_id)

    @handles(EraseFrom)
    def erase(self, request: EraseFrom, context: Context) -> Slices[ErasedPart]:
        """Erase the thread of a person."""
        if not request.person.has_root(_owner(context)):
            return ErasedPart(counts={})
        if request.dry_run:
            return ErasedPart(counts=(yield from removal.counted(context)))
        counts, remains = yield from self._removed(context)
        return ErasedPart(counts=counts, remaining=remains)

    def _begin(self, thread_id: str, context: Context) -> None:
        """Stage that the directory knows the thread."""
        if self._thread_id is None:
            self._thread_id = thread_id
            context.put(records.THREAD, thread_id)
            directory.put(context, _owner(context), thread_id)

    def _removed(self, context: Context) -> Slices[tuple[dict[str, int], bool]]:
        """Stage the removal of as much as goes at once; return the counts, and whether there is more."""
        counts, remains = yield from removal.everything(context)
        if not remains:
            self._forget(context)
        return counts, remains

    def _drop(self, deed: str, doomed: list[StoredCheckpoint], context: Context) -> Slices[bool]:
        if not doomed:
            return False
        remains = yield from removal.drop(doomed, context)
        audit_record.record(context, deed, None, checkpoints=len(doomed))
        return remains

    def _forget(self, context: Context) -> None:
        if self._thread_id is not None:
            self._thread_id = None
            context.delete(records.THREAD)
            directory.remove(context, _owner(context))


def _clear(context: Context, key: bytes, of: type[Any]) -> None:
    """Stage the removal of a record that is there, so that nothing of it stays beside a shorter one."""
    stored = context.get(key, of)
    if stored is not None:
        delete_data(context, key, stored.data)


def _owner(context: Context) -> str:
    return context.address.key.partition("/")[0]


def _check(context: Context) -> None:
    """Check that the thread is the sender's own.

    Raises:
        Refusal: ``PERMISSION_DENIED``: it is another's.
    """
    if user_namespace(context.principal) != _owner(context):
        raise auth_errors.permission_denied("thread_id", "thread_id: the thread is another's")
