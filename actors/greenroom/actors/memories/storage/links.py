"""Supersession: which memory takes the place of which.

A memory hides what it supersedes from all who see it, and as long as it is there, but for one that nobody
has looked at, which hides nothing yet. So nothing has to be done when it expires, is forgotten, or is given
another scope: readers look whether it hides for them. There are no rings: the newest word counts.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.memories.storage import records
from greenroom.actors.memories.storage.records import Entry, EntryDetails, Version
from greenroom.actors.memories.storage.repository import MemoryRepository, StoredEntry
from greenroom.runtime import Context, Slices


def successor(repository: MemoryRepository, context: Context, entry: Entry) -> Entry | None:
    """Return a memory that hides an entry from the sender: of several in a partition the newest; or None."""
    if entry.details is None or entry.details.superseded_by is None:
        return None
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


def superseded(repository: MemoryRepository, context: Context, entry: Entry) -> Entry | None:
    """Return the memory that an entry took the place of, if the sender sees it and it is there."""
    if entry.details is None or entry.details.supersedes is None:
        return None
    stored = repository.by_number(context, entry.details.supersedes)
    if stored is None or not records.is_there(stored.entry, context.now):
        return None
    return stored.entry if repository.may_see(context.principal, stored.entry) else None


def _hides(entry: Entry, now: int) -> bool:
    """Return whether an entry that supersedes another one hides it."""
    return records.is_there(entry, now) and not (entry.details or records.PLAIN).unreviewed


def open_ring(repository: MemoryRepository, context: Context, entry: Entry, hidden: Entry) -> Slices[None]:
    """Stage that an entry which is to supersede ``hidden`` is not superseded by it, directly or not.

    Raises:
        Refusal: ``VALIDATION_ERROR``: it would supersede itself.
    """
    if hidden.number == entry.number:
        raise auth_errors.invalid("supersedes", "supersedes: a memory cannot take the place of itself")
    below: int | None = hidden.number
    while below is not None:
        stored = repository.by_number(context, below)
        details = None if stored is None else stored.entry.details
        below = None if details is None else details.supersedes
        if stored is not None and details is not None and below == entry.number:
            _release(repository, context, stored, details)
            return
        if context.should_yield():
            yield


def relink(
    repository: MemoryRepository,
    context: Context,
    before: Entry | None,
    after: Entry | None,
    *,
    is_new: bool = False,
) -> None:
    """Stage the link of an entry's new state in the place of that of the old one; None: there is none.

    Args:
        repository: The root's.
        context: The message's.
        before: The entry as it was.
        after: The entry as it is.
        is_new: Whether it supersedes another one now.
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


def keep(context: Context, before: Entry, after: EntryDetails | None) -> None:
    """Stage that an entry's newest version says what it superseded, if that ends and it does not say it."""
    old = None if before.details is None else before.details.supersedes
    if old == (None if after is None else after.supersedes):
        return
    where = records.version_key(before.number, before.version)
    version = context.get(where, Version)
    if version is not None and version.details is not None and version.details.supersedes is None:
        details = msgspec.structs.replace(version.details, supersedes=old or records.NOTHING)
        context.put(where, msgspec.structs.replace(version, details=details))


def _release(
    repository: MemoryRepository, context: Context, stored: StoredEntry, details: EntryDetails
) -> None:
    """Stage that an entry supersedes nothing any more."""
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
    """Yield the partitions in which there are links, without reading all of these."""
    start = prefix
    while (first := next(iter(context.scan(bool, prefix=prefix, start=start)), None)) is not None:
        partition = int.from_bytes(first[0][len(prefix) : -8])
        yield partition
        start = prefix + records.partition_suffix(partition + 1)
