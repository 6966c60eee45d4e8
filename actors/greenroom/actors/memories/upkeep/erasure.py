"""Erase a person from the memories below one root: memories, ratings and names."""

from __future__ import annotations

from collections import Counter
from typing import Final

import msgspec

from greenroom.actors.core.auth.policy import MemoryPartition
from greenroom.actors.core.erasure import ERASED, ErasedPart, EraseFrom, Person
from greenroom.actors.memories.storage import directory, embedding, indexing, records, usage_counters
from greenroom.actors.memories.storage.records import Entry, Rating, Version, VersionTimes
from greenroom.actors.memories.storage.repository import MemoryRepository, StoredEntry
from greenroom.actors.memories.writing import removal
from greenroom.actors.memories.writing.forget import AT_ONCE
from greenroom.actors.search.index.index import TIMER as TIDY
from greenroom.runtime import Context, Slices

_NO_OWNER: Final = MemoryPartition("private", None, None)
"""Replaces the partition of an erased owner: no principal may see it."""
_TIMERS: Final = (removal.SWEEP, indexing.TIMER, usage_counters.TIMER, TIDY)
_NUMBER: Final = slice(1, 9)


def erase(repository: MemoryRepository, request: EraseFrom, context: Context) -> Slices[ErasedPart]:
    """Erase a batch of a person's data, finally all traces; or only count the data."""
    person, is_whole = request.person, request.person.has_root(repository.root)
    counts: Counter[str] = Counter()
    found = yield from _find_entries(repository, person, context)
    remaining = not request.dry_run and len(found) > AT_ONCE
    if remaining:
        found = found[:AT_ONCE]
    for one in found:
        counts["memories"] += 1
        versions = context.scan(VersionTimes, prefix=records.versions_prefix(one.entry.number))
        counts["memory_versions"] += sum(1 for _ in versions)
        yield
    if not is_whole and not remaining:
        counts["ratings"] += len((yield from _ratings(person, context)))
    if not request.dry_run:
        context.use_reserve()
        repository.drop_summary(context)
        yield from _remove(repository, context, found)
        if not remaining:
            yield from (_wipe if is_whole else _clean)(repository, person, context)
        if is_whole:
            repository.activate(context)
    return ErasedPart(counts={kind: count for kind, count in counts.items() if count}, remaining=remaining)


def _find_entries(
    repository: MemoryRepository, person: Person, context: Context
) -> Slices[list[StoredEntry]]:
    is_whole = person.has_root(repository.root)
    found: list[StoredEntry] = []
    for where, entry in context.scan(Entry, prefix=records.ENTRIES):
        if is_whole or person.has_partition(repository.partition(entry)):
            found.append(StoredEntry(where, entry))
        yield
    return found


def _remove(repository: MemoryRepository, context: Context, found: list[StoredEntry]) -> Slices[None]:
    if found:
        yield from indexing.finish(repository, context)
    for one in found:
        current = repository.by_number(context, one.entry.number)
        if current is not None:  # the end of an earlier one may have changed its record
            removal.remove(repository, context, current)
        yield
    if found:
        repository.unlist_if_empty(context)


def _wipe(repository: MemoryRepository, _: Person, context: Context) -> Slices[None]:
    """Stage the removal of all records of the actor, and of its rows in indexes."""
    directory.remove(context, repository.root)
    embedding.unlist(repository, context)
    for timer in _TIMERS:
        context.cancel_timer(timer)
    for key, _record in list(context.scan(msgspec.Raw)):
        context.delete(key)
        yield


def _clean(repository: MemoryRepository, person: Person, context: Context) -> Slices[None]:
    """Remove a person's ratings and names from other people's memories and their index."""
    yield from removal.purge(context)
    ratings = yield from _ratings(person, context)
    for key, rating in ratings:
        context.delete(key)
        where = records.QUALITIES + key[_NUMBER]
        quality = context.get(where, records.Quality) or records.Quality()
        quality = msgspec.structs.replace(
            quality, rated=quality.rated - rating.rating, ratings=max(0, quality.ratings - 1)
        )
        context.put(where, quality)
    names = yield from _anonymize(person, context)
    header = repository.header
    if header is None or not (ratings or names or any(map(person.has_partition, header.partitions))):
        return
    partitions = tuple(_NO_OWNER if person.has_partition(each) else each for each in header.partitions)
    repository.put_header(context, msgspec.structs.replace(header, partitions=partitions))
    repository.relist(context)
    yield from repository.uses.write(context, repository.index)
    yield from repository.index.rebuild(context, repository.documents(context))


def _ratings(person: Person, context: Context) -> Slices[list[tuple[bytes, Rating]]]:
    """Return the ratings by a person or their agents, with their keys."""
    found: list[tuple[bytes, Rating]] = []
    for key, rating in context.scan(Rating, prefix=records.RATINGS):
        first, _, _ = rating.rater.removeprefix(":").partition("\0")
        if (first == person.user) if rating.rater.startswith(":") else person.has_agent(first):
            found.append((key, rating))
        yield
    return found


def _anonymize(person: Person, context: Context) -> Slices[int]:
    """Remove a person's name from others' memories and versions; return how many had it."""
    found = 0
    written: tuple[tuple[bytes, type[Entry | Version]], ...] = (
        (records.ENTRIES, Entry),
        (records.VERSIONS, Version),
    )
    for prefix, of in written:
        for key, record in context.scan(of, prefix=prefix):
            details = record.details
            named = [
                name
                for name in ("author", "deleted_by", "imported", "changed_by")
                if person.has_name(getattr(details, name, None))
            ]
            if details is not None and named:
                details = msgspec.structs.replace(details, **dict.fromkeys(named, ERASED))
                context.put(key, msgspec.structs.replace(record, details=details))
                found += 1
            yield
    return found
