"""Read, list and remove the checkpoints of a thread."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Iterator
from itertools import islice
from typing import Final

import msgspec

from greenroom.actors.sessions.graph_checkpoints import records
from greenroom.actors.sessions.graph_checkpoints.records import (
    StoredCheckpoint,
    StoredValue,
    StoredWrite,
    get_data,
)
from greenroom.actors.sessions.graph_checkpoints.requests import (
    MOST_ID_BYTES,
    PAGE_BYTES,
    ChannelValue,
    CheckpointHead,
    CheckpointRead,
    CheckpointWrite,
    ListCheckpoints,
    ReadCheckpoint,
)
from greenroom.runtime import Context, Slices

_ROWS_AT_ONCE: Final = 10_000
_CHECKPOINTS_AT_ONCE: Final = 1_000
_COUNTED: Final = {records.CHECKPOINTS: "checkpoints", records.WRITES: "checkpoint_writes"}
_ORDER: Final = (records.CHECKPOINTS, records.WRITES, records.VALUES, records.REST)
"""The order of removal: at any time, the records that remain are readable."""
_LAST = b"\xff"
"""Greater than every first byte of a text."""


def find(request: ReadCheckpoint, context: Context) -> StoredCheckpoint | None:
    """Return the checkpoint with an id, or the newest checkpoint of a namespace."""
    if request.checkpoint_id is None:
        return next(_newest_first(request.namespace, None, context), None)
    if len(request.checkpoint_id.encode()) > MOST_ID_BYTES:
        return None
    return context.get(records.checkpoint_key(request.namespace, request.checkpoint_id), StoredCheckpoint)


def read_checkpoint(
    stored: StoredCheckpoint, asked: ReadCheckpoint, context: Context
) -> Slices[CheckpointRead]:
    """Return a checkpoint with a page of the requested values and writes."""
    values: list[ChannelValue] = []
    writes: list[CheckpointWrite] = []
    size = 0
    follows: int | None = None
    for number, each in enumerate(
        islice(_belongings(stored, asked.channels, context), asked.skip, None), asked.skip
    ):
        if size >= PAGE_BYTES:
            follows = number
            break
        value = each.value
        size += 0 if value is None else len(value.data)
        if isinstance(each, CheckpointWrite):
            writes.append(each)
        else:
            values.append(each)
        yield
    return CheckpointRead(
        namespace=stored.namespace,
        checkpoint_id=stored.checkpoint_id,
        parent_id=stored.parent_id,
        checkpoint=get_data(
            context, records.checkpoint_key(stored.namespace, stored.checkpoint_id), stored.data
        ),
        metadata=stored.metadata,
        values=values,
        writes=writes,
        next=follows,
    )


def _belongings(
    stored: StoredCheckpoint, channels: Collection[str] | None, context: Context
) -> Iterator[ChannelValue | CheckpointWrite]:
    for channel, digest in stored.values.items():
        if channels is not None and channel not in channels:
            continue
        key = records.value_key(stored.namespace, digest)
        kept = context.get(key, StoredValue)
        if kept is not None:
            yield ChannelValue(channel, get_data(context, key, kept.data))
    prefix = records.writes_key(stored.namespace, stored.checkpoint_id)
    for key, write in context.scan(StoredWrite, prefix=prefix):
        if channels is None or write.channel in channels:
            value = get_data(context, key, write.data)
            yield CheckpointWrite(write.task_path, write.task_id, write.index, write.channel, value)


def page(request: ListCheckpoints, context: Context) -> Slices[list[CheckpointHead]]:
    """Return a page of checkpoints of one namespace, or of all namespaces, merged by id."""
    if request.namespace is None:
        names = yield from namespaces(context)
    else:
        names = [request.namespace]
    bounds = [each for each in (request.before, request.after and request.after[0]) if each is not None]
    highest = min(bounds, default=None)
    orders = [_newest_first(each, highest, context) for each in names]
    heads: list[CheckpointHead] = []
    size = 0
    for stored in heapq.merge(*orders, key=_place, reverse=True):
        yield
        if not _is_wanted(stored, request):
            continue
        if len(heads) >= request.limit or size >= PAGE_BYTES:
            break
        heads.append(CheckpointHead(stored.namespace, stored.checkpoint_id, stored.metadata))
        size += len(stored.metadata.data)
    return heads


def namespaces(context: Context) -> Slices[list[str]]:
    """Return the namespaces of a thread."""
    found: list[str] = []
    start: bytes | None = None
    while True:
        stored = next(context.scan(StoredCheckpoint, prefix=records.CHECKPOINTS, start=start), None)
        if stored is None:
            return found
        found.append(stored[1].namespace)
        start = records.checkpoint_key(found[-1], "") + _LAST
        yield


def _newest_first(namespace: str, highest: str | None, context: Context) -> Iterator[StoredCheckpoint]:
    prefix = records.checkpoint_key(namespace, "")
    start = None if highest is None else records.checkpoint_key(namespace, highest)
    for _, stored in context.scan(StoredCheckpoint, prefix=prefix, start=start, reverse=True):
        yield stored


def _place(stored: StoredCheckpoint) -> tuple[str, str]:
    return stored.checkpoint_id, stored.namespace


def _is_wanted(stored: StoredCheckpoint, request: ListCheckpoints) -> bool:
    if request.after is not None and _place(stored) >= request.after:
        return False
    if request.before is not None and stored.checkpoint_id >= request.before:
        return False
    return request.checkpoint_id in {None, stored.checkpoint_id}


def remove_all(context: Context) -> Slices[tuple[dict[str, int], bool]]:
    """Stage the removal of one batch; return counts, and whether more remains."""
    context.use_reserve()
    most = context.most_rows(_ROWS_AT_ONCE)
    counts: Counter[str] = Counter()
    for number, key in enumerate(_keys(context)):
        if number == most:
            return dict(counts), True
        context.delete(key)
        if key[:1] in _COUNTED:
            counts[_COUNTED[key[:1]]] += 1
        yield
    return dict(counts), False


def count(context: Context) -> Slices[dict[str, int]]:
    """Return the numbers of checkpoints and writes."""
    counts: Counter[str] = Counter()
    for prefix, name in _COUNTED.items():
        for _ in context.scan(msgspec.Raw, prefix=prefix):
            counts[name] += 1
            yield
    return dict(counts)


def find_by_runs(run_ids: set[str], context: Context) -> Slices[list[records.StoredCheckpoint]]:
    """Return the checkpoints of some runs."""
    found: list[records.StoredCheckpoint] = []
    for _, stored in context.scan(records.StoredCheckpoint, prefix=records.CHECKPOINTS):
        if stored.run_id in run_ids:
            found.append(stored)
        yield
    return found


def find_old(context: Context) -> Slices[list[records.StoredCheckpoint]]:
    """Return the checkpoints that the newest checkpoint of their namespace does not need."""
    found: list[records.StoredCheckpoint] = []
    for namespace in (yield from namespaces(context)):
        by_id: dict[str, records.StoredCheckpoint] = {}
        prefix = records.checkpoint_key(namespace, "")
        for _, stored in context.scan(records.StoredCheckpoint, prefix=prefix, reverse=True):
            by_id[stored.checkpoint_id] = stored
            yield
        for needed in _needed(by_id, context):
            del by_id[needed]
        found += by_id.values()
    return found


def drop(selected: list[records.StoredCheckpoint], context: Context) -> Slices[bool]:
    """Stage the removal of checkpoints, writes and unshared values; return whether more remains."""
    context.use_reserve()
    now = selected[: context.most_rows(_CHECKPOINTS_AT_ONCE)]
    orphans: set[tuple[str, bytes]] = set()
    for stored in now:
        key = records.checkpoint_key(stored.namespace, stored.checkpoint_id)
        records.delete_data(context, key, stored.data)
        orphans.update((stored.namespace, value) for value in stored.values.values())
        prefix = records.writes_key(stored.namespace, stored.checkpoint_id)
        for each, write in [*context.scan(records.StoredWrite, prefix=prefix)]:
            records.delete_data(context, each, write.data)
        yield
    for namespace in {stored.namespace for stored in now}:
        prefix = records.checkpoint_key(namespace, "")
        for _, kept in context.scan(records.StoredCheckpoint, prefix=prefix):
            orphans.difference_update((namespace, value) for value in kept.values.values())
            yield
    for namespace, value in orphans:
        key = records.value_key(namespace, value)
        orphan = context.get(key, records.StoredValue)
        if orphan is not None:
            records.delete_data(context, key, orphan.data)
        yield
    return len(now) < len(selected)


def _needed(newest_first: dict[str, records.StoredCheckpoint], context: Context) -> list[str]:
    """Return the newest checkpoint and the ancestors that complete its values.

    Only channels that are stored as writes since an earlier value need ancestors.
    """
    newest = next(iter(newest_first.values()))
    missing = set(newest.deltas)
    needed: list[str] = []
    stored: records.StoredCheckpoint | None = newest
    while stored is not None and stored.checkpoint_id not in needed:
        needed.append(stored.checkpoint_id)
        missing = {channel for channel in missing if not _has_value(stored, channel, context)}
        stored = newest_first.get(stored.parent_id or "") if missing else None
    return needed


def _has_value(stored: records.StoredCheckpoint, channel: str, context: Context) -> bool:
    digest = stored.values.get(channel)
    if digest is None:
        return False
    return context.get(records.value_key(stored.namespace, digest), msgspec.Raw) is not None


def _keys(context: Context) -> Iterator[bytes]:
    for prefix in _ORDER:
        for key, _ in context.scan(msgspec.Raw, prefix=prefix):
            yield key
