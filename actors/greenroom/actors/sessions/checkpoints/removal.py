"""Remove checkpoints of a thread: all, those of some runs, or old ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import msgspec

from greenroom.actors.sessions.checkpoints import records
from greenroom.actors.sessions.checkpoints.reading import namespaces
from greenroom.runtime import Context, Slices

_ROWS_AT_ONCE: Final = 10_000
_CHECKPOINTS_AT_ONCE: Final = 1_000
_COUNTED: Final = {records.CHECKPOINTS: "checkpoints", records.WRITES: "checkpoint_writes"}
_ORDER: Final = (records.CHECKPOINTS, records.WRITES, records.VALUES, records.REST)
"""The order of removal: the rest is readable at any time."""


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
    """Return the checkpoints that the newest of their namespace does not need."""
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

    Only channels stored as writes since an earlier value need ancestors.
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
