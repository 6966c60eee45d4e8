"""Memories as readers get them, and the filters of requests that scan entries instead of the index."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import UNSET

from greenroom.actors.core.auth import namespaces as names
from greenroom.actors.core.base.unicode_forms import begins, composed, same_text
from greenroom.actors.core.replies.memory_types import import_source
from greenroom.actors.core.validation.times import optional_datetime, to_datetime
from greenroom.actors.memories.requests import replies
from greenroom.actors.memories.requests.replies import MemoryFilters
from greenroom.actors.memories.storage import links, records
from greenroom.actors.memories.storage.records import PLAIN, Entry, EntryDetails, Version
from greenroom.actors.memories.storage.repository import MemoryRepository, StoredEntry
from greenroom.actors.memories.storage.values import unpack
from greenroom.runtime import Context, Slices

LARGE_BYTES = 1_048_576
"""A content that is larger is left out of answers with several memories."""
PREVIEW = 200
_NOTHING = b"{}"
ALL = MemoryFilters()


def shown(
    repository: MemoryRepository, context: Context, entry: Entry, *, most: int | None = LARGE_BYTES
) -> Slices[replies.MemoryView]:
    """Return an entry with its newest value, unless that has more than ``most`` bytes."""
    version = context.get(records.version_key(entry.number, entry.version), Version)
    assert version is not None, "an entry has its newest version"
    return (yield from shown_version(repository, context, entry, entry.version, version, most=most))


def shown_version(
    repository: MemoryRepository,
    context: Context,
    entry: Entry,
    number: int,
    version: Version,
    *,
    most: int | None = LARGE_BYTES,
) -> Slices[replies.MemoryView]:
    """Return an entry with the value that it had at one version."""
    details = entry.details or PLAIN
    then = version.details
    form = records.JSON if then is None else then.form
    size = len(version.value) if then is None else then.size
    withheld = most is not None and size > most
    value = b"" if withheld else (yield from unpack(version.value, form, context))
    quality = repository.uses.quality(context, entry)
    return replies.MemoryView(
        memory_id=repository.memory_id(entry.number),
        id=version_id(entry, number, version),
        key=entry.key,
        namespace=repository.namespace(details.sub),
        version=number,
        created_at=to_datetime(entry.created_at),
        updated_at=to_datetime(version.stored_at),
        content=value.decode() if form & records.TEXT and not withheld else None,
        value=UNSET if form & records.TEXT or withheld else msgspec.Raw(value),
        withheld=withheld,
        kind=details.kind if then is None else then.kind,
        tags=list(details.tags if then is None else then.tags),
        importance=details.importance if then is None else then.importance,
        scope=repository.partition(entry).scope,
        author=repository.author(entry),
        imported=import_source(details.imported),
        updated_by=None if then is None else then.author,
        session_id=entry.session_id,
        conversation_id=details.conversation,
        position=details.position,
        metadata=UNSET if version.metadata == _NOTHING else msgspec.Raw(version.metadata),
        expires_at=optional_datetime(version.expires_at),
        size_bytes=len(version.value),
        compressed=bool(form & records.COMPRESSED),
        uses=quality.uses,
        last_used=optional_datetime(quality.last_used),
        rating=round(quality.rating, 4),
        ratings=quality.ratings,
        supersedes=_id(repository, links.superseded(repository, context, entry)),
        superseded_by=_id(repository, links.successor(repository, context, entry)),
        deleted_at=optional_datetime(details.deleted_at),
        unreviewed=details.unreviewed if then is None else then.unreviewed,
    )


def compressed_form(context: Context, entry: Entry) -> replies.CompressedForm:
    """Return the newest value of an entry that is compressed, as it is stored."""
    version = context.get(records.version_key(entry.number, entry.version), Version)
    assert version is not None, "an entry has its newest version"
    form = records.JSON if version.details is None else version.details.form
    return replies.CompressedForm(member="content" if form & records.TEXT else "value", data=version.value)


def version_id(entry: Entry, number: int, version: Version) -> int:
    """Return the number of a version within its root.

    Older programs did not keep it; then it is the lowest that it can have been.
    """
    if version.details is not None:
        return version.details.update
    return entry.update if number == entry.version else entry.number + number - 1


def forgotten(repository: MemoryRepository, entry: Entry) -> replies.ForgottenMemory:
    """Return an entry as the answer to forgetting it."""
    return replies.ForgottenMemory(
        memory_id=repository.memory_id(entry.number),
        key=entry.key,
        namespace=repository.namespace(entry.sub),
        version=entry.version,
        updated_at=to_datetime(entry.updated_at),
        size_bytes=entry.stored_size,
    )


def _id(repository: MemoryRepository, entry: Entry | None) -> str | None:
    return None if entry is None else repository.memory_id(entry.number)


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
        self._tags = None if filters.tags is None else frozenset(map(composed, filters.tags))
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
            and (filters.key is None or same_text(filters.key, entry.key))
            and begins(entry.key, filters.key_prefix or "")
            and filters.kind in {None, details.kind}
            and filters.scope in {None, repository.partition(entry).scope}
            and filters.author in {None, repository.author(entry)}
            and filters.conversation_id in {None, details.conversation}
            and filters.session_id in {None, entry.session_id}
            and filters.unreviewed in {None, details.unreviewed}
            and details.importance >= (filters.min_importance or 0.0)
            and self.after <= entry.created_at < self.before
            and self._has_tags(details)
            and (filters.superseded or links.successor(repository, self._context, entry) is None)
        )

    def _has_tags(self, details: EntryDetails) -> bool:
        if self._tags is None:
            return True
        tags = set(map(composed, details.tags))
        if self._filters.tag_match == "all":
            return self._tags.issubset(tags)
        return not self._tags.isdisjoint(tags)


def newest_first(context: Context, highest: int | None = None) -> Iterator[StoredEntry]:
    """Yield all entries that are not forgotten, newest update first, up to the update ``highest``."""
    start = None if highest is None else records.update_key(highest)
    for _, where in context.scan(bytes, prefix=records.UPDATES, start=start, reverse=True):
        entry = context.get(where, Entry)
        assert entry is not None, "an order row goes with its entry"
        yield StoredEntry(where, entry)
