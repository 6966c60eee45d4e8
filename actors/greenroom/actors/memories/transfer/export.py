"""Export memories that the caller may see, as lines, in order of creation."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from greenroom.actors.core.auth import namespaces as names
from greenroom.actors.core.replies.damage import note_damage, skip_damaged
from greenroom.actors.core.replies.memory_types import DEFAULT_IMPORTANCE, import_source
from greenroom.actors.core.validation.times import optional_datetime, to_datetime
from greenroom.actors.memories.requests import transfer as requests
from greenroom.actors.memories.requests.replies import MemoryFilters
from greenroom.actors.memories.requests.transfer import MemoryLine
from greenroom.actors.memories.storage import indexing, links, records
from greenroom.actors.memories.storage.records import PLAIN, Entry
from greenroom.actors.memories.storage.repository import MemoryRepository, StoredEntry
from greenroom.actors.memories.storage.views import EntryFilter
from greenroom.runtime import Context, RecordDamagedError, Slices

ALL = MemoryFilters(superseded=True)
"""Includes superseded memories, so that links are exported with both ends."""
_NO_METADATA = b"{}"
_MAX_KEY = 255
_encode = msgspec.json.Encoder().encode


def export_page(
    repository: MemoryRepository, request: requests.ExportPage, context: Context
) -> Slices[requests.ExportedPage]:
    """Return the next memories; each memory is in exactly one page, whatever is written meanwhile."""
    yield from indexing.finish(repository, context)
    fits = EntryFilter(repository, context, request.filters or ALL, request.namespace).fits
    lines: list[msgspec.Raw] = []
    lost: dict[bytes, RecordDamagedError] = {}
    size = last = 0
    start = records.versions_prefix(request.start)
    for key in context.keys(records.versions_prefix(0)[:1], start=start):
        number = int.from_bytes(key[1:9])
        if number == last:  # another version of the same entry
            continue
        if size >= request.limit_bytes:
            yield from _note_listed(context, lost)
            return requests.ExportedPage(lines=lines, next=number)
        last = number
        stored = _read_entry(repository, context, number, lost)
        if stored is not None and fits(stored.entry):
            line = yield from skip_damaged(context, _line(repository, context, stored.entry))
            if line is not None:
                lines.append(msgspec.Raw(line))
                size += len(line)
        yield
    yield from _note_listed(context, lost)
    return requests.ExportedPage(lines=lines, next=None)


def _read_entry(
    repository: MemoryRepository, context: Context, number: int, lost: dict[bytes, RecordDamagedError]
) -> StoredEntry | None:
    """Return an entry; None for a damaged one, which is added to ``lost``."""
    try:
        return repository.by_number(context, number)
    except RecordDamagedError as error:
        if where := repository.place_of(context, number):
            lost[where] = error
        else:
            note_damage(context, error)
        return None


def _note_listed(context: Context, lost: dict[bytes, RecordDamagedError]) -> Slices[None]:
    """Report the lost entries that an order lists; no order lists forgotten entries.

    A damaged row of the order may be that of a lost entry: then all lost entries are reported.
    """
    unread: list[RecordDamagedError] = []
    if lost:
        for _, where in context.scan(bytes, prefix=records.UPDATES, on_damage=unread.append):
            if where in lost:
                note_damage(context, lost.pop(where))
            yield
    for error in lost.values() if unread else ():
        note_damage(context, error)


def _line(repository: MemoryRepository, context: Context, entry: Entry) -> Slices[bytes]:
    details = entry.details or PLAIN
    value, version = yield from repository.value(context, entry)
    is_text = bool(details.form & records.TEXT)
    replaced = links.predecessor(repository, context, entry)
    if replaced is not None and (replaced.sub, replaced.session_id) != (entry.sub, entry.session_id):
        replaced = None  # a line refers to a memory by key alone, within its own namespace and session
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
            # The default object itself, because only this object is omitted.
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
    """Return an entry's key, with its owner's name where an import needs it."""
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
