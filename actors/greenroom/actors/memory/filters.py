"""Which entries fit a filter, entry by entry: for what goes through the entries and not through the index."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from greenroom.actors.auth import namespaces as names
from greenroom.actors.base.times import DAY, to_microseconds
from greenroom.actors.memory import links, records
from greenroom.actors.memory.records import PLAIN, Entry, More
from greenroom.actors.memory.repository import Held, Keeper
from greenroom.actors.schemas.memory_replies import MemoryFilters

if TYPE_CHECKING:
    from datetime import datetime

    from greenroom.runtime import Context

ALL = MemoryFilters()


class Filter:
    """Filters and a namespace, ready to be asked about entries in the name of a message's sender.

    Args:
        keeper: The root's.
        context: The message's.
        filters: What was given.
        below: Leading segments besides those of the filters; None: all of the root.
    """

    def __init__(self, keeper: Keeper, context: Context, filters: MemoryFilters, below: str | None) -> None:
        self._keeper = keeper
        self._context = context
        self._filters = filters
        self._below = tuple(prefix for prefix in (below, filters.namespace) if prefix is not None)
        self._tags = None if filters.tags is None else frozenset(filters.tags)
        self.after, self.before = created_within(filters, context.now)

    def fits(self, entry: Entry) -> bool:
        """Return whether an entry is there, may be seen, and fits."""
        keeper, filters, more = self._keeper, self._filters, entry.more or PLAIN
        if not records.is_there(entry, self._context.now):
            return False
        namespace = keeper.namespace(more.sub)
        return (
            keeper.may_see(self._context.principal, entry)
            and all(names.is_below(namespace, prefix) for prefix in self._below)
            and filters.key in {None, entry.key}
            and entry.key.startswith(filters.key_prefix or "")
            and filters.kind in {None, more.kind}
            and filters.scope in {None, keeper.shelf(entry).scope}
            and filters.author in {None, keeper.author(entry)}
            and filters.conversation_id in {None, more.conversation}
            and filters.session_id in {None, entry.session_id}
            and more.importance >= (filters.min_importance or 0.0)
            and self.after <= entry.created_at < self.before
            and self._has_tags(more)
            and (filters.superseded or links.successor(keeper, self._context, entry) is None)
        )

    def _has_tags(self, more: More) -> bool:
        if self._tags is None:
            return True
        if self._filters.tag_match == "all":
            return self._tags.issubset(more.tags)
        return not self._tags.isdisjoint(more.tags)


def created_within(filters: MemoryFilters, now: int) -> tuple[int, int]:
    """Return from when on (included) and until when (not included), in microseconds since 1970."""
    after = _time(filters.after, -_EVER)
    if filters.max_age_days is not None:
        after = max(after, now - int(min(filters.max_age_days * DAY, _EVER)))
    return after, _time(filters.before, _EVER)


def newest_first(context: Context, highest: int | None = None) -> Iterator[Held]:
    """Yield all entries that are not forgotten, newest update first, up to the update ``highest``."""
    start = None if highest is None else records.update_key(highest)
    for _, where in context.scan(bytes, prefix=records.UPDATES, start=start, reverse=True):
        entry = context.get(where, Entry)
        assert entry is not None, "an order row goes with its entry"
        yield Held(where, entry)


def _time(given: datetime | None, otherwise: int) -> int:
    return otherwise if given is None else to_microseconds(given)


_EVER = 1 << 62
