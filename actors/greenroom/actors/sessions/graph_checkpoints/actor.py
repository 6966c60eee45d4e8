"""The actor of the checkpoints of one thread.

Its key is the owner, a slash and the thread. Checkpoints are opaque: only their writer can interpret them.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth.namespaces import thread_key, user_namespace
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.erasure import ErasedPart, EraseFrom
from greenroom.actors.sessions.graph_checkpoints import reading, records, requests
from greenroom.actors.sessions.graph_checkpoints.records import (
    StoredCheckpoint,
    StoredValue,
    StoredWrite,
    delete_data,
    put_data,
)
from greenroom.actors.sessions.graph_checkpoints.requests import check_checkpoint, check_names, check_writes
from greenroom.runtime import Actor, Address, Context, Restate, Slices, handles

_COPIED: Final = (records.VALUES, records.REST, records.WRITES, records.CHECKPOINTS)
"""The order of copying: a checkpoint follows everything that it needs."""


def thread_address(principal: Principal, thread_id: str) -> Address:
    """Return the address of a thread of the principal's user."""
    return Address(requests.KIND, thread_key(principal, thread_id))


class CheckpointsActor(Actor):
    """The checkpoints of one thread."""

    kind = requests.KIND
    names = staticmethod(records.names_in)

    def activate(self, context: Context) -> None:
        """Load the id of the thread."""
        self._thread_id = context.get(records.THREAD, str)

    @handles(requests.PutCheckpoint)
    def put(self, request: requests.PutCheckpoint, context: Context) -> None:
        """Store a checkpoint and its new values."""
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

    @handles(requests.PutWrites)
    def put_writes(self, request: requests.PutWrites, context: Context) -> None:
        """Store writes that are new."""
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

    @handles(requests.ReadCheckpoint)
    def read(
        self, request: requests.ReadCheckpoint, context: Context
    ) -> Slices[requests.CheckpointRead | None]:
        """Return a checkpoint with its values and writes."""
        _check(context)
        check_names([request.namespace, request.checkpoint_id])
        stored = reading.find(request, context)
        if stored is None:
            return None
        audit_record.record_read(context, context.principal, "read_checkpoint", None)
        return (yield from reading.read_checkpoint(stored, request, context))

    @handles(requests.ListCheckpoints)
    def list_checkpoints(
        self, request: requests.ListCheckpoints, context: Context
    ) -> Slices[list[requests.CheckpointHead]]:
        """Return a page of checkpoints."""
        _check(context)
        check_names([request.namespace, request.checkpoint_id, request.before])
        page = yield from reading.page(request, context)
        audit_record.record_read(context, context.principal, "list_checkpoints", None, found=len(page))
        return page

    @handles(requests.DeleteThread)
    def delete(self, _: requests.DeleteThread, context: Context) -> Slices[bool]:
        """Delete everything, the oldest checkpoints first and their values last."""
        _check(context)
        counts, remains = yield from self._remove(context)
        if counts:
            audit_record.record(context, "delete_thread", None, **counts)
        return remains

    @handles(requests.DeleteRuns)
    def delete_runs(self, request: requests.DeleteRuns, context: Context) -> Slices[bool]:
        """Delete the checkpoints of some runs."""
        _check(context)
        selected = yield from reading.find_by_runs(set(request.run_ids), context)
        return (yield from self._drop("delete_runs", selected, context))

    @handles(requests.PruneThread)
    def prune(self, _: requests.PruneThread, context: Context) -> Slices[bool]:
        """Delete checkpoints that the newest ones do not need."""
        _check(context)
        selected = yield from reading.find_old(context)
        return (yield from self._drop("prune_thread", selected, context))

    @handles(requests.ReadPart)
    def read_part(self, request: requests.ReadPart, context: Context) -> Slices[requests.Part]:
        """Return a page of the records."""
        _check(context)
        found: list[tuple[bytes, bytes]] = []
        size = 0
        after = request.after
        for prefix in _COPIED if after is None else _COPIED[_COPIED.index(after[:1]) :]:
            start = after if after is not None and after.startswith(prefix) else None
            for key, record in context.scan(msgspec.Raw, prefix=prefix, start=start):
                if key == after:
                    continue
                if size >= requests.PAGE_BYTES:
                    return requests.Part(records=found, next=found[-1][0])
                found.append((key, bytes(record)))
                size += len(found[-1][1])
                yield
        return requests.Part(records=found, next=None)

    @handles(requests.CopyPart)
    def copy_part(self, request: requests.CopyPart, context: Context) -> Slices[bytes | None]:
        """Store the records that the precheck read from the other thread."""
        _check(context)
        part: requests.Part = context.precheck_answer
        if part.records:
            self._begin(request.thread_id, context)
            for key, record in part.records:
                context.put(key, msgspec.Raw(record))
                yield
            audit_record.record(context, "copy_thread", None, records=len(part.records))
        return part.next

    @handles(Restate)
    def restate(self, _: Restate, context: Context) -> None:
        """Write the directory row of the thread again."""
        context.use_reserve()
        if self._thread_id is not None:
            records.put_row(context, _owner(context), self._thread_id)

    @handles(EraseFrom)
    def erase(self, request: EraseFrom, context: Context) -> Slices[ErasedPart]:
        """Erase the thread of a person."""
        if not request.person.has_root(_owner(context)):
            return ErasedPart(counts={})
        if request.dry_run:
            return ErasedPart(counts=(yield from reading.count(context)))
        counts, remains = yield from self._remove(context)
        return ErasedPart(counts=counts, remaining=remains)

    def _begin(self, thread_id: str, context: Context) -> None:
        if self._thread_id is None:
            self._thread_id = thread_id
            context.put(records.THREAD, thread_id)
            records.put_row(context, _owner(context), thread_id)

    def _remove(self, context: Context) -> Slices[tuple[dict[str, int], bool]]:
        counts, remains = yield from reading.remove_all(context)
        if not remains and self._thread_id is not None:
            self._thread_id = None
            context.delete(records.THREAD)
            records.remove_row(context, _owner(context))
        return counts, remains

    def _drop(self, action: str, selected: list[StoredCheckpoint], context: Context) -> Slices[bool]:
        if not selected:
            return False
        remains = yield from reading.drop(selected, context)
        audit_record.record(context, action, None, checkpoints=len(selected))
        return remains


def _clear(context: Context, key: bytes, of: type[Any]) -> None:
    stored = context.get(key, of)
    if stored is not None:
        delete_data(context, key, stored.data)


def _owner(context: Context) -> str:
    return context.address.key.partition("/")[0]


def _check(context: Context) -> None:
    """Refuse a sender if the thread belongs to another user."""
    if user_namespace(context.principal) != _owner(context):
        raise auth_errors.permission_denied("thread_id", "thread_id: the thread belongs to another user")
