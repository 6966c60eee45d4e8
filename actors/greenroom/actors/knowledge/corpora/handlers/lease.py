"""The indexing lease of a workspace: which process updates the index, and its progress.

The holder renews the lease before it ends. A lease ends by the clock, so a killed process blocks others
for `LEASE_SECONDS` at most. The lease ends earlier if another process finds that the holder has died.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

import msgspec

from greenroom.actors.core.validation.times import SECOND, optional_datetime
from greenroom.actors.knowledge.corpora.requests.workspace import (
    DescribeWorkspace,
    DropKeeper,
    FindKeeper,
    KeepWorkspace,
    Kept,
    WorkspaceState,
)
from greenroom.actors.knowledge.corpora.storage import records
from greenroom.actors.knowledge.corpora.storage.repository import CorpusRepository
from greenroom.runtime import Context, Slices

LEASE_SECONDS: Final = 15
RENEW_SECONDS: Final = 5


class LeaseRecord(msgspec.Struct, frozen=True, array_like=True):
    """The indexing lease of a workspace; without a ``keeper`` it is free.

    Attributes:
        of: The number of files in the folder, if they were counted.
        as_of: The time at which the index last matched the folder.
        is_partial: Whether the folder has more files than are indexed.
    """

    keeper: str = ""
    until: int = 0
    state: Kept = "unwatched"
    of: int | None = None
    as_of: int | None = None
    left_out: dict[str, int] = msgspec.field(default_factory=dict)
    is_partial: bool = False

    def is_held(self, now: int) -> bool:
        """Return whether a process holds the lease."""
        return bool(self.keeper) and self.until > now


def update(repository: CorpusRepository, request: KeepWorkspace, context: Context) -> WorkspaceState:
    """Acquire, renew or release the lease, unless another process holds it."""
    repository.check(context.principal, request.corpus)
    record = context.get(records.KEEPER, LeaseRecord) or LeaseRecord()
    if record.keeper != request.keeper and (record.is_held(context.now) or request.state == "unwatched"):
        return _state(repository, record, context)
    ended = request.state == "unwatched"
    was_right = request.state == "watching" or (ended and record.state == "watching")
    fresh = LeaseRecord(
        keeper="" if ended else request.keeper,
        until=context.now + LEASE_SECONDS * SECOND,
        state=request.state,
        of=record.of if request.of is None else request.of,
        as_of=context.now if was_right else record.as_of,
        left_out=record.left_out if request.left_out is None else request.left_out,
        is_partial=request.is_partial,
    )
    context.put(records.KEEPER, fresh)
    if request.state == "watching":
        repository.index.settle(context)
    if (fresh.keeper, fresh.state, fresh.of) != (record.keeper, record.state, record.of):
        repository.publish(context)
    return msgspec.structs.replace(_state(repository, fresh, context), is_asker=not ended)


def find_holder(repository: CorpusRepository, request: FindKeeper, context: Context) -> str:
    """Return the id of the holder; empty if the lease is free."""
    repository.check(context.principal, request.corpus)
    record = context.get(records.KEEPER, LeaseRecord) or LeaseRecord()
    return record.keeper if record.is_held(context.now) else ""


def release(repository: CorpusRepository, request: DropKeeper, context: Context) -> None:
    """Release the lease of a process that died; `as_of` stays as last reported."""
    repository.check(context.principal, request.corpus)
    record = context.get(records.KEEPER, LeaseRecord)
    if record is not None and record.keeper == request.keeper:
        context.put(records.KEEPER, msgspec.structs.replace(record, keeper="", state="unwatched"))
        repository.publish(context)


def describe(
    repository: CorpusRepository, request: DescribeWorkspace, context: Context
) -> Slices[WorkspaceState]:
    """Return the progress of the index."""
    repository.check(context.principal, request.corpus)
    unread = yield from repository.unread(context)
    state = _state(repository, context.get(records.KEEPER, LeaseRecord) or LeaseRecord(), context)
    readers = crc32(repr(sorted((repository.readers or {}).items())).encode())
    return msgspec.structs.replace(state, unread=unread, version=f"{state.version}-{readers:x}")


def _state(repository: CorpusRepository, record: LeaseRecord, context: Context) -> WorkspaceState:
    is_kept = record.is_held(context.now)
    is_right = is_kept and record.state == "watching"
    header = repository.header
    indexed = header.documents
    of = None if record.of is None else max(record.of, indexed)
    return WorkspaceState(
        state=record.state if is_kept else "unwatched",
        indexed=indexed,
        of=indexed if is_right and not record.is_partial else of,
        as_of=optional_datetime(context.now if is_right else record.as_of),
        left_out=record.left_out,
        version=f"{header.indexed_at}-{header.next_chunk}-{header.documents}-{header.file_bytes}",
    )
