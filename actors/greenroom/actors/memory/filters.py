"""Filters over entries, one by one: for requests that scan entries instead of the index."""

from __future__ import annotations

from collections.abc import Iterator

from greenroom.actors.auth import namespaces as names
from greenroom.actors.memory import links, records
from greenroom.actors.memory.records import PLAIN, Entry, EntryDetails
from greenroom.actors.memory.repository import MemoryRepository, StoredEntry
from greenroom.actors.schemas.memory_replies import MemoryFilters
from greenroom.runtime import Context

ALL = MemoryFilters()


class EntryFilter:
    """Filters and a namespace, ready to be asked about entries in the name of a message's sender.

    Args:
        repository: The root's.
        context: The message's.
        filters: What was given.
        below: Leading segments besides those of the filters; None: all of the root.
    """

    def __init__(
        self, repository: MemoryRepository, context: Context, filters: MemoryFilters, below: str | None
    ) -> None:
        self._repository = repository
        self._context = context
        self._filters = filters
        self._below = tuple(prefix for prefix in (below, filters.namespace) if prefix is not None)
        self._tags = None if filters.tags is None else frozenset(filters.tags)
        self.after, self.before = filters.created_between(context.now)

    def fits(self, entry: Entry) -> bool:
        """Return whether an entry is there, may be seen, and fits."""
        repository, filters, details = self._repository, self._filters, entry.details or PLAIN
        if not records.is_there(entry, self._context.now):
            return False
        namespace = repository.namespace(details.sub)
        return (
            repository.may_see(self._context.principal, entry)
            and all(names.is_below(namespace, prefix) for prefix in self._below)
            and filters.key in {None, entry.key}
            and entry.key.startswith(filters.key_prefix or "")
            and filters.kind in {None, details.kind}
            and filters.scope in {None, repository.partition(entry).scope}
            and filters.author in {None, repository.author(entry)}
            and filters.conversation_id in {None, details.conversation}
            and filters.session_id in {None, entry.session_id}
            and details.importance >= (filters.min_importance or 0.0)
            and self.after <= entry.created_at < self.before
            and self._has_tags(details)
            and (filters.superseded or links.successor(repository, self._context, entry) is None)
        )

    def _has_tags(self, details: EntryDetails) -> bool:
        if self._tags is None:
            return True
        if self._filters.tag_match == "all":
            return self._tags.issubset(details.tags)
        return not self._tags.isdisjoint(details.tags)


def newest_first(context: Context, highest: int | None = None) -> Iterator[StoredEntry]:
    """Yield all entries that are not forgotten, newest update first, up to the update ``highest``."""
    start = None if highest is None else records.update_key(highest)
    for _, where in context.scan(bytes, prefix=records.UPDATES, start=start, reverse=True):
        entry = context.get(where, Entry)
        assert entry is not None, "an order row goes with its entry"
        yield StoredEntry(where, entry)
