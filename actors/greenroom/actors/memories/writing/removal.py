"""Removal of memories: forgetting, purging, and sweeping up expired ones."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.validation.times import SECOND
from greenroom.actors.memories.storage import links, records, root_summary
from greenroom.actors.memories.storage.records import Entry, VersionTimes
from greenroom.actors.memories.storage.repository import MemoryRepository, StoredEntry
from greenroom.actors.schemas import keyvalue as requests
from greenroom.runtime import Context, Slices

SWEEP = "sweep"
SWEEP_EVERY = 60 * SECOND
"""Expiry times are rounded up to this, so that one sweep finds what expires close together."""
SWEEP_EVERY_HEARD = SECOND
"""The same where somebody may listen: an owner hears of what expired by the sweep."""
SWEEP_BATCH = 200
"""Effects of one sweep, about: it bounds how long others wait, for the disk."""
SWEEP_SLICES = 4
"""Slices of the loop, of 5 ms at most each, that one sweep takes: it bounds how long the actor is busy."""
EFFECTS_OF_EXPIRY = 11
"""Its row, the version and, when it was the newest, the entry with places, id, end and index rows."""


def unlist(repository: MemoryRepository, context: Context, entry: Entry) -> None:
    """Stage that an entry's newest version is in no listing and no search any more."""
    repository.mapped.pop(entry.update, None)
    repository.publish(context, entry)
    for key in records.order_keys(entry):
        context.delete(key)
    if repository.is_indexed(entry):
        repository.index.remove(context, entry.update)
        root_summary.forget(repository, context, entry.update)


def clear(repository: MemoryRepository, context: Context, stored: StoredEntry) -> None:
    """Stage that the place of an entry that is no longer there becomes free.

    What has expired is removed. What was forgotten keeps its history and moves aside.
    """
    where, entry = stored
    if entry.deleted_at is None or not records.is_live(entry.expires_at, context.now):
        remove(repository, context, stored)
        return
    prefix = records.entry_key(entry.session_id, entry.key, entry.sub)
    aside = prefix + records.forgotten_suffix(entry.number)
    context.delete(where)
    context.put(aside, entry)
    context.put(records.id_key(repository.tail(entry.number)), aside)
    if entry.expires_at is not None:
        context.put(records.expiry_key(entry.expires_at, entry.number, entry.version), aside)


def forget(repository: MemoryRepository, context: Context, stored: StoredEntry, by: str) -> None:
    """Stage that an entry is gone from reads and searches, as somebody wants it; its history stays."""
    where, entry = stored
    unlist(repository, context, entry)
    repository.note_end(context, entry)
    links.relink(repository, context, entry, None)
    details = msgspec.structs.replace(
        repository.details_of(context, entry), deleted_at=context.now, deleted_by=by, supersedes=None
    )
    links.keep(context, entry, details)
    context.put(where, msgspec.structs.replace(entry, details=details))
    if repository.forgotten is not None:
        repository.forgotten[entry.number] = context.now


def remove(repository: MemoryRepository, context: Context, stored: StoredEntry) -> None:
    """Stage an entry's end at the same cost for any history: what is long is left to the sweep."""
    where, entry = stored
    repository.note_end(context, entry)
    if entry.deleted_at is None:
        unlist(repository, context, entry)
    else:
        repository.publish_about(context, entry)
    context.delete(where)
    if repository.header is not None:
        context.delete(records.id_key(repository.tail(entry.number)))
    links.relink(repository, context, entry, None)
    is_linked = entry.details is not None and entry.details.superseded_by is not None
    is_linked = is_linked or _is_paired(context, entry.number)
    if repository.uses.drop(context, entry.number).ratings or entry.versions > 1 or is_linked:
        context.put(records.deleted_key(entry.number), True)
        sweep_soon(context)
    else:
        context.delete(records.version_key(entry.number, entry.version))
        if entry.expires_at is not None:
            context.delete(records.expiry_key(entry.expires_at, entry.number, entry.version))


def _is_paired(context: Context, number: int) -> bool:
    return next(context.scan(bool, prefix=records.pairs_prefix(number)), None) is not None


def finish(repository: MemoryRepository, context: Context) -> None:
    """Stage what follows from removals; to be called once after all that a message removes."""
    if repository.unlist_if_empty(context):
        root_summary.clear(repository, context)


def sweep(repository: MemoryRepository, context: Context) -> Slices[None]:
    """Stage the end of a batch of what has expired or was purged, and come back for the rest.

    What expired first goes first.
    """
    context.use_reserve()
    batch = context.most_rows(SWEEP_BATCH)
    expired = effects = slices = 0
    for key, where in context.scan(bytes, prefix=records.EXPIRIES):
        expires_at, number, version = (int.from_bytes(key[at : at + 8]) for at in (1, 9, 17))
        if records.is_live(expires_at, context.now):
            sweep_by(repository, context, expires_at)
            break
        if effects >= batch or slices >= SWEEP_SLICES:
            sweep_soon(context)
            break
        expired += 1
        effects += EFFECTS_OF_EXPIRY
        context.delete(key)
        context.delete(records.version_key(number, version))
        entry = context.get(where, Entry)
        if entry is not None and (entry.number, entry.version) == (number, version):
            remove(repository, context, StoredEntry(where, entry))
        if context.should_yield():
            slices += 1
            yield
    if expired:
        finish(repository, context)
        audit_record.record(context, "expire_memory", None, owner=context.address.key, versions=expired)
    yield from _purge_history(context, batch - effects)


def sweep_by(repository: MemoryRepository, context: Context, time: int) -> None:
    """Stage a sweep soon after ``time``, unless one comes before."""
    every = SWEEP_EVERY_HEARD if repository.is_resource else SWEEP_EVERY
    due = (time // every + 1) * every
    already = context.timer_due(SWEEP)
    if already is None or due < already:
        context.set_timer(SWEEP, due, requests.SweepMemory())


def sweep_soon(context: Context) -> None:
    """Stage a sweep at once."""
    due = context.now + 1
    if context.timer_due(SWEEP) != due:
        context.set_timer(SWEEP, due, requests.SweepMemory())


def purge(context: Context) -> Slices[None]:
    """Stage the removal of all that is left of removed entries."""
    for keys in _left_over(context):
        for key in keys:
            context.delete(key)
        if context.should_yield():
            yield


def _purge_history(context: Context, effects: int) -> Slices[None]:
    """Stage about so many removals of what is left of removed entries; come back for the rest."""
    for keys in _left_over(context):
        if effects <= 0:
            sweep_soon(context)
            return
        for key in keys:
            context.delete(key)
        effects -= len(keys)
        if context.should_yield():
            yield


def _left_over(context: Context) -> Iterator[tuple[bytes, ...]]:
    """Yield the keys of what is left of removed entries, those together that go together; the mark last."""
    for mark, _ in context.scan(bool, prefix=records.DELETED):
        number = int.from_bytes(mark[1:])
        for key, ends in context.scan(VersionTimes, prefix=records.versions_prefix(number)):
            if ends.expires_at is None:
                yield (key,)
            else:
                yield key, records.expiry_key(ends.expires_at, number, int.from_bytes(key[9:17]))
        for prefix_of in (records.ratings_prefix, records.successors_prefix, records.pairs_prefix):
            for key, _ in context.scan(msgspec.Raw, prefix=prefix_of(number)):
                yield (key,)
        yield (mark,)
