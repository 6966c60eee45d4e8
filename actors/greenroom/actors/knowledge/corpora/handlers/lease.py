"""Who keeps a workspace's index as its folder is, and how far that is.

It is a lease: who has it says so again before it ends. It ends by the clock, so a process that was killed
holds nobody up for longer, whichever process has the store then; and before that if it is found to have died.
"""

from __future__ import annotations

from typing import Final

import msgspec

from greenroom.actors.core.validation.times import SECOND, optional_datetime
from greenroom.actors.knowledge.corpora.storage import records
from greenroom.actors.knowledge.corpora.storage.repository import CorpusRepository
from greenroom.actors.schemas.workspace import (
    DescribeWorkspace,
    DropKeeper,
    FindKeeper,
    KeepWorkspace,
    Kept,
    WorkspaceState,
)
from greenroom.runtime import Context, Slices

LEASE_SECONDS: Final = 15
RENEW_SECONDS: Final = 5


class KeeperRecord(msgspec.Struct, frozen=True, array_like=True):
    """Who keeps a workspace.

    Attributes:
        keeper: Tells it from others; empty for nobody.
        until: When that ends, unless it says otherwise.
        state: What it does.
        of: Files that there are, if they were counted.
        as_of: When the index was as the folder is, the last time that this was known.
        left_out: Files that were left out, by reason.
        is_partial: Whether there are more files than are taken in.
    """

    keeper: str = ""
    until: int = 0
    state: Kept = "unwatched"
    of: int | None = None
    as_of: int | None = None
    left_out: dict[str, int] = msgspec.field(default_factory=dict)
    is_partial: bool = False

    def is_kept(self, now: int) -> bool:
        """Return whether somebody keeps it."""
        return bool(self.keeper) and self.until > now


def keep(repository: CorpusRepository, request: KeepWorkspace, context: Context) -> WorkspaceState:
    """Give the workspace to who asks, if nobody else has it."""
    repository.check(context.principal, request.corpus)
    record = context.get(records.KEEPER, KeeperRecord) or KeeperRecord()
    if record.keeper != request.keeper and (record.is_kept(context.now) or request.state == "unwatched"):
        return _state(repository, record, context)
    ended = request.state == "unwatched"
    was_right = request.state == "watching" or (ended and record.state == "watching")
    fresh = KeeperRecord(
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


def find_keeper(repository: CorpusRepository, request: FindKeeper, context: Context) -> str:
    """Answer who keeps it."""
    repository.check(context.principal, request.corpus)
    record = context.get(records.KEEPER, KeeperRecord) or KeeperRecord()
    return record.keeper if record.is_kept(context.now) else ""


def drop_keeper(repository: CorpusRepository, request: DropKeeper, context: Context) -> None:
    """Take it from a process that died; the index was right when that said so last."""
    repository.check(context.principal, request.corpus)
    record = context.get(records.KEEPER, KeeperRecord)
    if record is not None and record.keeper == request.keeper:
        context.put(records.KEEPER, msgspec.structs.replace(record, keeper="", state="unwatched"))
        repository.publish(context)


def describe(
    repository: CorpusRepository, request: DescribeWorkspace, context: Context
) -> Slices[WorkspaceState]:
    """Answer how far the index is."""
    repository.check(context.principal, request.corpus)
    unread = yield from repository.unread(context)
    state = _state(repository, context.get(records.KEEPER, KeeperRecord) or KeeperRecord(), context)
    return msgspec.structs.replace(state, unread=unread)


def _state(repository: CorpusRepository, record: KeeperRecord, context: Context) -> WorkspaceState:
    is_kept = record.is_kept(context.now)
    is_right = is_kept and record.state == "watching"
    indexed = repository.header.documents
    of = None if record.of is None else max(record.of, indexed)
    return WorkspaceState(
        state=record.state if is_kept else "unwatched",
        indexed=indexed,
        of=indexed if is_right and not record.is_partial else of,
        as_of=optional_datetime(context.now if is_right else record.as_of),
        left_out=record.left_out,
    )
