"""Count memories that the caller may see."""

from __future__ import annotations

import heapq
from collections import Counter

from msgspec import UNSET

from greenroom.actors.core.base.unicode_forms import compose
from greenroom.actors.core.replies.damage import skip_damaged
from greenroom.actors.core.replies.paging import tokens_of_size
from greenroom.actors.core.validation.times import DAY, optional_datetime, to_datetime
from greenroom.actors.memories.requests import replies, requests
from greenroom.actors.memories.storage import embedding, indexing, links, records
from greenroom.actors.memories.storage.records import PLAIN, Entry
from greenroom.actors.memories.storage.repository import MemoryRepository
from greenroom.actors.memories.storage.values import compression_ratio
from greenroom.actors.memories.storage.views import EntryFilter, newest_first
from greenroom.runtime import Context, Slices

MOST_NAMESPACES = 100
MOST_TAGS = 100
TOP_USED = 10
LATEST = 6
_LATEST_TEXT = 240  # characters
_LARGE = 262_144  # bytes; a larger content would be read whole for a few words
AGES = (("day", DAY), ("week", 7 * DAY), ("month", 30 * DAY), ("year", 365 * DAY))
OLDER = "older"
_EVERYTHING = replies.MemoryFilters(superseded=True)


def tally(
    repository: MemoryRepository, request: requests.CountMemories, context: Context
) -> Slices[requests.MemoriesCounted]:
    """Count memories, newest first, up to a maximum."""
    yield from indexing.finish(repository, context)
    fitting = EntryFilter(repository, context, _EVERYTHING, None)
    latest: list[Entry] = []
    days: Counter[int] = Counter()
    found, is_more = 0, False
    for stored in newest_first(repository, context):
        if fitting.fits(stored.entry):
            if found == request.most:
                is_more = True
                break
            found += 1
            days[stored.entry.created_at // DAY] += 1
            if len(latest) < LATEST:
                latest.append(stored.entry)
        yield
    return requests.MemoriesCounted(
        count=found,
        is_more=is_more,
        newest=latest[0].key if latest else None,
        newest_at=latest[0].updated_at if latest else 0,
        latest=(yield from _read_latest(repository, context, latest)),
        days=dict(days),
    )


def _read_latest(
    repository: MemoryRepository, context: Context, entries: list[Entry]
) -> Slices[list[requests.LatestMemory]]:
    """Return memories with the beginnings of their texts, without damaged ones."""
    found: list[requests.LatestMemory] = []
    for entry in entries:
        text: str | None = ""
        if entry.value_size <= _LARGE:
            text = yield from skip_damaged(context, repository.beginning(context, entry, _LATEST_TEXT))
        if text is not None:
            latest = requests.LatestMemory(
                memory_id=repository.memory_id(entry.number),
                key=entry.key,
                namespace=repository.namespace(entry.sub),
                text=text,
                author=repository.author(entry),
                at=entry.updated_at,
                unreviewed=(entry.details or PLAIN).unreviewed,
            )
            found.append(latest)
        yield
    return found


def count(
    repository: MemoryRepository, request: requests.MemoryStats, context: Context
) -> Slices[replies.MemoryStatistics]:
    """Count all memories below a namespace, by several properties."""
    yield from indexing.finish(repository, context)
    fitting = EntryFilter(repository, context, _EVERYTHING, request.namespace)
    sums: Counter[str] = Counter()
    counts = {name: Counter[str]() for name in ("namespace", "tag", "kind", "scope", "author", "age")}
    used: list[tuple[int, int, Entry]] = []
    times: list[int] = []
    for stored in newest_first(repository, context):
        entry = stored.entry
        if fitting.fits(entry):
            details = entry.details or PLAIN
            sums["memories"] += 1
            sums["versions"] += entry.versions
            sums["bytes"] += entry.value_size
            sums["stored"] += entry.stored_size
            sums["compressed"] += bool(details.form & records.COMPRESSED)
            sums["tokens"] += tokens_of_size(entry.value_size)
            sums["saved"] += tokens_of_size(entry.value_size) - tokens_of_size(entry.stored_size)
            sums["superseded"] += links.successor(repository, context, entry) is not None
            counts["namespace"][repository.namespace(details.sub)] += 1
            counts["tag"].update(dict.fromkeys(map(compose, details.tags), 1))
            counts["kind"][details.kind] += 1
            counts["scope"][repository.partition(entry).scope] += 1
            counts["author"][repository.author(entry)] += 1
            age = context.now - entry.created_at
            counts["age"][next((name for name, most in AGES if age < most), OLDER)] += 1
            times.append(entry.created_at)
            uses = repository.uses.quality(context, entry).uses
            if uses:
                item = (uses, entry.update, entry)
                (heapq.heappushpop if len(used) == TOP_USED else heapq.heappush)(used, item)
        yield
    return replies.MemoryStatistics(
        namespace=request.namespace or repository.root,
        memories=sums["memories"],
        versions=sums["versions"],
        bytes=sums["bytes"],
        stored_bytes=sums["stored"],
        compressed=sums["compressed"],
        compression_ratio=compression_ratio(sums["stored"], sums["bytes"]),
        tokens=sums["tokens"],
        tokens_saved=sums["saved"],
        superseded=sums["superseded"],
        by_namespace=dict(counts["namespace"].most_common(MOST_NAMESPACES)),
        more_namespaces=max(0, len(counts["namespace"]) - MOST_NAMESPACES),
        by_tag=dict(counts["tag"].most_common(MOST_TAGS)),
        by_kind=dict(counts["kind"].most_common()),
        by_scope=dict(counts["scope"].most_common()),
        by_author=dict(counts["author"].most_common(MOST_TAGS)),
        by_age={name: counts["age"][name] for name in (*(age for age, _ in AGES), OLDER)},
        top_used=[_to_used(repository, context, entry) for _, _, entry in sorted(used, reverse=True)],
        oldest=optional_datetime(min(times, default=None)),
        newest=optional_datetime(max(times, default=None)),
        embedding_space=embedding.space(repository, context),
        embedding_waiting=embedding.count_waiting(context),
        imitates=repository.imitates if times else UNSET,
    )


def _to_used(repository: MemoryRepository, context: Context, entry: Entry) -> replies.UsedMemory:
    quality = repository.uses.quality(context, entry)
    return replies.UsedMemory(
        memory_id=repository.memory_id(entry.number),
        key=entry.key,
        namespace=repository.namespace(entry.sub),
        uses=quality.uses,
        last_used=None if quality.last_used is None else to_datetime(quality.last_used),
    )
