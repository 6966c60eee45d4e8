"""Memories in the form that replies have, and filters for requests that scan entries."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import UNSET

from greenroom.actors.core.auth import namespaces as names
from greenroom.actors.core.base.unicode_forms import compose, same_text, starts_with
from greenroom.actors.core.replies.damage import filter_damage, note_damage, read_undamaged
from greenroom.actors.core.replies.memory_types import import_source
from greenroom.actors.core.validation.times import optional_datetime, to_datetime
from greenroom.actors.memories.requests import replies
from greenroom.actors.memories.requests.replies import MemoryFilters
from greenroom.actors.memories.storage import links, records
from greenroom.actors.memories.storage.records import PLAIN, Entry, EntryDetails, Version
from greenroom.actors.memories.storage.repository import MemoryRepository, StoredEntry
from greenroom.actors.memories.storage.values import unpack
from greenroom.runtime import Context, RecordDamagedError, Slices

LARGE_BYTES = 1_048_576
"""A larger content is left out of replies with several memories."""
PREVIEW = 200
_NOTHING = b"{}"
ALL = MemoryFilters()


def to_view(
    repository: MemoryRepository, context: Context, entry: Entry, *, most: int | None = LARGE_BYTES
) -> Slices[replies.MemoryView]:
    """Return an entry with its newest value, unless the value has more than ``most`` bytes."""
    version = repository.version(context, entry)
    return (yield from to_version_view(repository, context, entry, entry.version, version, most=most))


def to_version_view(
    repository: MemoryRepository,
    context: Context,
    entry: Entry,
    number: int,
    version: Version,
    *,
    most: int | None = LARGE_BYTES,
) -> Slices[replies.MemoryView]:
    """Return an entry with the value of one version."""
    details = entry.details or PLAIN
    then = version.details
    form = version.form
    size = len(version.value) if then is None else then.size
    withheld = most is not None and size > most
    value = b"" if withheld else (yield from unpack(version.value, form))
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
        supersedes=_id(repository, links.predecessor(repository, context, entry)),
        superseded_by=_id(repository, links.successor(repository, context, entry)),
        deleted_at=optional_datetime(details.deleted_at),
        unreviewed=details.unreviewed if then is None else then.unreviewed,
    )


def compressed_form(repository: MemoryRepository, context: Context, entry: Entry) -> replies.CompressedForm:
    """Return the newest value of an entry, compressed as it is stored."""
    version = repository.version(context, entry)
    is_text = bool(version.form & records.TEXT)
    return replies.CompressedForm(member="content" if is_text else "value", data=version.value)


def version_id(entry: Entry, number: int, version: Version) -> int:
    """Return the number of a version within its root.

    An older record may not have it; then return the lowest number that is possible.
    """
    if version.details is not None:
        return version.details.update
    return entry.update if number == entry.version else entry.number + number - 1


def to_forgotten(repository: MemoryRepository, entry: Entry) -> replies.ForgottenMemory:
    """Return the reply about a forgotten entry."""
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
    """Filters and a namespace prefix; an entry that the caller may not see never fits."""

    def __init__(
        self, repository: MemoryRepository, context: Context, filters: MemoryFilters, below: str | None
    ) -> None:
        self._repository = repository
        self._context = context
        self._filters = filters
        self._below = tuple(prefix for prefix in (below, filters.namespace) if prefix is not None)
        self._tags = None if filters.tags is None else frozenset(map(compose, filters.tags))
        self.after, self.before = filters.created_between(context.now)

    def fits(self, entry: Entry) -> bool:
        """Return whether an entry is live, visible to the caller, and passes the filters.

        An entry with an unreadable successor does not fit, and the reply reports the damage.
        """
        repository, filters, details = self._repository, self._filters, entry.details or PLAIN
        if not records.is_there(entry, self._context.now):
            return False
        namespace = repository.namespace(details.sub)
        return (
            repository.may_see(self._context.principal, entry)
            and all(names.is_below(namespace, prefix) for prefix in self._below)
            and (filters.key is None or same_text(filters.key, entry.key))
            and starts_with(entry.key, filters.key_prefix or "")
            and filters.kind in {None, details.kind}
            and filters.scope in {None, repository.partition(entry).scope}
            and filters.author in {None, repository.author(entry)}
            and filters.conversation_id in {None, details.conversation}
            and filters.session_id in {None, entry.session_id}
            and filters.unreviewed in {None, details.unreviewed}
            and details.importance >= (filters.min_importance or 0.0)
            and self.after <= entry.created_at < self.before
            and self._has_tags(details)
            and (filters.superseded or self._is_newest(entry))
        )

    def _is_newest(self, entry: Entry) -> bool:
        try:
            return links.successor(self._repository, self._context, entry) is None
        except RecordDamagedError as error:
            note_damage(self._context, error)
            return False

    def _has_tags(self, details: EntryDetails) -> bool:
        if self._tags is None:
            return True
        tags = set(map(compose, details.tags))
        if self._filters.tag_match == "all":
            return self._tags.issubset(tags)
        return not self._tags.isdisjoint(tags)


def newest_first(
    repository: MemoryRepository,
    context: Context,
    highest: int | None = None,
    prefix: bytes = records.UPDATES,
) -> Iterator[StoredEntry]:
    """Yield the entries that ``prefix`` lists, newest update first; leave out updates after ``highest``.

    Forgotten entries are not listed. Damaged entries are skipped, and the reply reports them.
    """
    start = None if highest is None else prefix + highest.to_bytes(8)
    met = filter_damage(context, prefix)
    for _, where in context.scan(bytes, prefix=prefix, start=start, reverse=True, on_damage=met):
        entry = read_undamaged(context, repository.listed_at, context, where)
        if entry is not None:
            yield StoredEntry(where, entry)
