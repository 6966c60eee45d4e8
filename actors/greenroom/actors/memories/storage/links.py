"""Supersession: which memory replaces which.

As long as a memory exists, it hides the memory that it supersedes from every caller who sees both. An
unreviewed memory hides nothing. When a memory expires, is forgotten, or changes its scope, no link changes:
each read checks whether the link still hides the older memory. Links form no rings: the newest link wins.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.replies.damage import read_undamaged
from greenroom.actors.memories.storage import derived_records, records
from greenroom.actors.memories.storage.records import Entry, EntryDetails, Version
from greenroom.actors.memories.storage.repository import MemoryRepository, StoredEntry
from greenroom.runtime import Context, RecordDamagedError, Slices


def successor(repository: MemoryRepository, context: Context, entry: Entry) -> Entry | None:
    """Return the newest memory that hides an entry from the caller, or None.

    If a link is damaged, it raises the error: then the entry must not be returned.
    """
    if entry.details is None or entry.details.superseded_by is None:
        return None
    try:
        return _successor(repository, context, entry)
    except RecordDamagedError as error:
        if derived_records.can_rebuild(context, error):
            raise
        raise repository.lost(error, entry) from error


def _successor(repository: MemoryRepository, context: Context, entry: Entry) -> Entry | None:
    prefix = records.successors_prefix(entry.number)
    for partition in _partitions(context, prefix):
        if repository.may_see_partition(context.principal, partition):
            for key, _ in context.scan(
                bool, prefix=prefix + records.partition_suffix(partition), reverse=True
            ):
                stored = repository.by_number(context, int.from_bytes(key[-8:]))
                if (
                    stored is not None
                    and _hides(stored.entry, context.now)
                    and repository.may_see(context.principal, stored.entry)
                ):
                    return stored.entry
    return None


def predecessor(repository: MemoryRepository, context: Context, entry: Entry) -> Entry | None:
    """Return the memory that an entry superseded, if it exists and is visible."""
    if entry.details is None or entry.details.supersedes is None:
        return None
    stored = read_undamaged(context, repository.by_number, context, entry.details.supersedes)
    if stored is None or not records.is_there(stored.entry, context.now):
        return None
    return stored.entry if repository.may_see(context.principal, stored.entry) else None


def _hides(entry: Entry, now: int) -> bool:
    """Return whether an entry hides the memory that it supersedes."""
    return records.is_there(entry, now) and not (entry.details or records.PLAIN).unreviewed


def break_ring(repository: MemoryRepository, context: Context, entry: Entry, hidden: Entry) -> Slices[None]:
    """Break the ring if ``hidden`` supersedes the entry, which will supersede ``hidden``."""
    if hidden.number == entry.number:
        raise auth_errors.invalid("supersedes", "supersedes: a memory cannot supersede itself")
    below: int | None = hidden.number
    while below is not None:
        stored = read_undamaged(context, repository.by_number, context, below)
        details = None if stored is None else stored.entry.details
        below = None if details is None else details.supersedes
        if stored is not None and details is not None and below == entry.number:
            _release(repository, context, stored, details)
            return
        yield


def relink(
    repository: MemoryRepository,
    context: Context,
    before: Entry | None,
    after: Entry | None,
    *,
    is_new: bool = False,
) -> None:
    """Replace the link of an entry's old state by the link of its new state.

    ``is_new`` says whether the supersession itself is new.
    """
    old, new = _link_key(before), _link_key(after)
    if old is not None and old != new:
        context.delete(old)
    if new is not None and old != new:
        context.put(new, True)
    if is_new and after is not None and after.details is not None and after.details.supersedes is not None:
        stored = repository.by_number(context, after.details.supersedes)
        assert stored is not None, "what is superseded was found before"
        details = repository.details_of(context, stored.entry)
        details = msgspec.structs.replace(details, superseded_by=after.number)
        context.put(stored.record_key, msgspec.structs.replace(stored.entry, details=details))


def record_supersession(context: Context, before: Entry, after: EntryDetails | None) -> None:
    """If an entry's link ends, stage in the newest version which memory it superseded."""
    old = None if before.details is None else before.details.supersedes
    if old == (None if after is None else after.supersedes):
        return
    where = records.version_key(before.number, before.version)
    try:
        version = context.get(where, Version)
    except RecordDamagedError:  # the version is lost anyway
        return
    if version is not None and version.details is not None and version.details.supersedes is None:
        details = msgspec.structs.replace(version.details, supersedes=old or records.NOTHING)
        context.put(where, msgspec.structs.replace(version, details=details))


def _release(
    repository: MemoryRepository, context: Context, stored: StoredEntry, details: EntryDetails
) -> None:
    """Stage the end of an entry's supersession."""
    alone = msgspec.structs.replace(stored.entry, details=msgspec.structs.replace(details, supersedes=None))
    context.put(stored.record_key, alone)
    relink(repository, context, stored.entry, alone)
    if repository.is_indexed(alone):
        repository.index.change(context, alone.update, supersedes=0)


def _link_key(entry: Entry | None) -> bytes | None:
    if entry is None or entry.details is None or entry.details.supersedes is None:
        return None
    return records.successor_key(entry.details.supersedes, entry.details.partition, entry.number)


def _partitions(context: Context, prefix: bytes) -> Iterator[int]:
    """Yield the partitions that have links, without reading all links."""
    start = prefix
    while (first := next(iter(context.scan(bool, prefix=prefix, start=start)), None)) is not None:
        partition = int.from_bytes(first[0][len(prefix) : -8])
        yield partition
        start = prefix + records.partition_suffix(partition + 1)
