"""Exporting: the memories that a reader may see, as lines, in the order of their creation."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from greenroom.actors.core.auth import namespaces as names
from greenroom.actors.core.replies.memory_types import DEFAULT_IMPORTANCE, import_source
from greenroom.actors.core.validation.times import optional_datetime, to_datetime
from greenroom.actors.memories.requests import transfer as requests
from greenroom.actors.memories.requests.replies import MemoryFilters
from greenroom.actors.memories.requests.transfer import MemoryLine
from greenroom.actors.memories.storage import indexing, links, records
from greenroom.actors.memories.storage.records import PLAIN, Entry
from greenroom.actors.memories.storage.repository import MemoryRepository
from greenroom.actors.memories.storage.views import EntryFilter
from greenroom.runtime import Context, Slices

ALL = MemoryFilters(superseded=True)
"""Also what a later memory hides: the link goes with it."""
_NO_METADATA = b"{}"
_MAX_KEY = 255
_encode = msgspec.json.Encoder().encode


def page(
    repository: MemoryRepository, request: requests.ExportPage, context: Context
) -> Slices[requests.ExportedPage]:
    """Answer the next memories; each is in one page only, whatever is written meanwhile."""
    yield from indexing.finish(repository, context)
    fits = EntryFilter(repository, context, request.filters or ALL, request.namespace).fits
    lines: list[msgspec.Raw] = []
    size = last = 0
    start = records.versions_prefix(request.start)
    for key, _ in context.scan(msgspec.Raw, prefix=records.versions_prefix(0)[:1], start=start):
        number = int.from_bytes(key[1:9])
        if number == last:  # an older version of the same one
            continue
        if size >= request.limit_bytes:
            return requests.ExportedPage(lines=lines, next=number)
        last = number
        stored = repository.by_number(context, number)
        if stored is not None and fits(stored.entry):
            line = yield from _line(repository, context, stored.entry)
            lines.append(msgspec.Raw(line))
            size += len(line)
        if context.should_yield():
            yield
    return requests.ExportedPage(lines=lines, next=None)


def _line(repository: MemoryRepository, context: Context, entry: Entry) -> Slices[bytes]:
    details = entry.details or PLAIN
    value, version = yield from repository.value(context, entry)
    is_text = bool(details.form & records.TEXT)
    replaced = links.superseded(repository, context, entry)
    if replaced is not None and (replaced.sub, replaced.session_id) != (entry.sub, entry.session_id):
        replaced = None  # a line names by the key alone, so it has to be in the same place
    return _encode(
        MemoryLine(
            key=_key(repository, context, entry),
            content=value.decode() if is_text else None,
            value=UNSET if is_text else msgspec.Raw(value),
            namespace=repository.namespace(details.sub),
            created_at=to_datetime(entry.created_at),
            updated_at=None if entry.updated_at == entry.created_at else to_datetime(entry.updated_at),
            created_by=repository.author(entry) or None,
            imported=import_source(details.imported) or None,
            conversation_id=details.conversation,
            position=details.position,
            tags=list(details.tags),
            kind=details.kind,
            # The very object that is the default, which alone is left out.
            importance=DEFAULT_IMPORTANCE if details.importance == DEFAULT_IMPORTANCE else details.importance,
            scope=repository.partition(entry).scope,
            expires_at=optional_datetime(entry.expires_at),
            metadata=UNSET if version.metadata == _NO_METADATA else msgspec.Raw(version.metadata),
            supersedes=None if replaced is None else _key(repository, context, replaced),
            session_id=entry.session_id,
            unreviewed=details.unreviewed or None,
        )
    )


def _key(repository: MemoryRepository, context: Context, entry: Entry) -> str:
    """Return an entry's key; with its owner's name if others of this key would come into its place."""
    if not repository.has_several_owners:
        return entry.key
    partition = repository.partition(entry)
    keys = records.entry_keys(entry.session_id, entry.key, entry.sub)
    for stored in repository.entries_of_key(context, keys):
        other = repository.partition(stored.entry)
        if (
            stored.entry.number < entry.number
            and other.scope == partition.scope
            and records.is_there(stored.entry, context.now)
            and repository.may_see(context.principal, stored.entry)
        ):
            owner = names.segment(partition.agent or partition.user or "").replace(":", ".")
            return f"{entry.key[: _MAX_KEY - len(owner) - 1]}~{owner}"
    return entry.key
