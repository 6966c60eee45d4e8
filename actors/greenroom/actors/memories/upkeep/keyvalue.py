"""An agent's key-value memory: the older tools on its own namespace, and a resource."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec
from msgspec import UNSET, UnsetType

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.errors import MAX_VALUE_BYTES
from greenroom.actors.core.base.unicode_forms import starts_with
from greenroom.actors.core.replies import paging, replies
from greenroom.actors.core.replies.damage import skip_damaged
from greenroom.actors.core.replies.memory_types import import_source
from greenroom.actors.core.resources import resources
from greenroom.actors.core.resources.resource_uris import cursor_of
from greenroom.actors.core.validation.times import SECOND, optional_datetime, to_datetime
from greenroom.actors.core.validation.types import CLOSED, SessionStatus
from greenroom.actors.memories.reading import reads
from greenroom.actors.memories.requests import keyvalue_requests as requests
from greenroom.actors.memories.requests.keyvalue_requests import (
    MemoryByScope,
    MemoryCounts,
    MemoryFigures,
    MemoryItem,
    MemoryResource,
)
from greenroom.actors.memories.storage import records, views
from greenroom.actors.memories.storage.records import Entry, Version, is_live, view
from greenroom.actors.memories.storage.repository import MemoryRepository, StoredEntry
from greenroom.actors.memories.storage.values import SMALL_BYTES, unpack
from greenroom.actors.memories.writing import removal, store_requests
from greenroom.actors.memories.writing.writes import Draft, write
from greenroom.runtime import Context, RecordDamagedError, Slices, finish

BOTH_SCOPES = "all"
NEWEST_ENTRIES = 1_000
PAGE_BYTES = 1_048_576
"""One page of the resource has about this many bytes; its first entry may exceed this size."""
BYTES_AN_ENTRY = 500
"""The estimated size of an entry on a page, without its value and metadata."""


def store(
    repository: MemoryRepository, request: requests.SetMemory, context: Context
) -> replies.MemoryStored | Slices[replies.MemoryStored]:
    """Store the first or a further version under a key."""
    if request.session_id is not None:
        status: SessionStatus | None = context.precheck_answer
        if status is None:
            raise auth_errors.session_not_found(request.session_id)
        if status in CLOSED:
            raise auth_errors.session_closed(request.session_id, status)
    slices = _store(repository, request, context)
    if len(bytes(request.value)) > SMALL_BYTES:
        return slices
    return finish(slices)


def _store(
    repository: MemoryRepository, request: requests.SetMemory, context: Context
) -> Slices[replies.MemoryStored]:
    stored = repository.find_own(context, request.session_id, request.key)
    if stored is not None and not records.is_there(stored.entry, context.now):
        stored = None
    scope = records.scope_name(request.session_id)
    if stored is not None and not request.overwrite:
        raise auth_errors.key_exists(request.key, scope)
    expires_at = None if request.expires_in is None else context.now + request.expires_in * SECOND
    draft = Draft(
        key=request.key if stored is None else stored.entry.key,
        session_id=request.session_id,
        value=bytes(request.value),
        metadata=bytes(request.metadata),
        partition=policy.agent_partition(repository.address)
        if stored is None
        else repository.partition(stored.entry),
        expires_at=expires_at,
        by=policy.memory_owner(context.principal),
        plain=True,
    )
    entry = (yield from write(repository, context, draft, stored)).entry
    audit_record.record(
        context,
        "set_memory",
        request.session_id,
        key=entry.key,
        version=entry.version,
        value_size=entry.value_size,
        expires_in=request.expires_in,
    )
    return replies.MemoryStored(
        key=entry.key,
        scope=scope,
        expires_at=optional_datetime(expires_at),
        stored_at=to_datetime(context.now),
        version=entry.version,
    )


def read(
    repository: MemoryRepository, request: requests.GetMemory, context: Context
) -> replies.MemoryRead | Slices[replies.MemoryRead]:
    """Return the newest value or an older version, unless it or the entry has expired.

    An id or a namespace refers to a memory of another agent, or of the memory layer.
    """
    if request.namespace is not None or request.memory_id is not None:
        return reads.read_value(repository, request, context)
    if request.key is None:
        raise auth_errors.neither_id_nor_key()
    scope, now = records.scope_name(request.session_id), context.now
    stored = repository.find_own(context, request.session_id, request.key)
    entry = None if stored is None else stored.entry
    number = entry.version if entry is not None and request.version is None else request.version
    version = None
    if entry is not None and number is not None and number <= entry.version and records.is_there(entry, now):
        version = repository.version_of(context, entry, number)
    if entry is None or number is None or version is None or not records.is_live(version.expires_at, now):
        raise auth_errors.memory_not_found(request.key, scope)
    repository.uses.note(entry, context)
    repository.uses.write_soon(context)
    forms = repository.other_forms(context, entry)
    if version.form != records.JSON:
        return _read_converted(entry, version, number, forms)
    return _reply(entry, version, number, forms, version.value)


def _read_converted(
    entry: Entry, version: Version, number: int, forms: list[str] | UnsetType
) -> Slices[replies.MemoryRead]:
    return _reply(entry, version, number, forms, (yield from _json(version)))


def _json(version: Version) -> Slices[bytes]:
    """Return a value as JSON, decompressed; a text becomes a string."""
    value = yield from unpack(version.value, version.form)
    return msgspec.json.encode(value.decode()) if version.form & records.TEXT else value


def _reply(
    entry: Entry, version: Version, number: int, forms: list[str] | UnsetType, value: bytes
) -> replies.MemoryRead:
    return replies.MemoryRead(
        key=entry.key,
        value=msgspec.Raw(value),
        metadata=msgspec.Raw(version.metadata),
        created_at=to_datetime(entry.created_at),
        updated_at=to_datetime(version.stored_at),
        expires_at=optional_datetime(version.expires_at),
        scope=records.scope_name(entry.session_id),
        version=number,
        imported=UNSET if entry.details is None else import_source(entry.details.imported),
        other_forms=forms,
    )


def list_entries(
    repository: MemoryRepository, request: requests.ListMemory, context: Context
) -> Slices[replies.MemoryList]:
    """Return a page, newest update first; an updated entry moves to the front."""
    binding = cursor_binding(request.session_id, request.prefix)
    highest = None
    if request.cursor is not None:
        highest = paging.decode_number(request.cursor, binding) - 1
    found: list[Entry] = []
    has_more = False
    for entry in newest_first(repository, context, request.session_id, highest):
        if records.is_live(entry.expires_at, context.now) and starts_with(entry.key, request.prefix or ""):
            if len(found) == request.limit:
                has_more = True
                break
            found.append(entry)
        yield
    page = paging.fit_to_budget(
        [view(entry) for entry in found],
        request.max_tokens,
        lambda each: {"key": each.key, "session_id": each.session_id},
    )
    has_more = has_more or page.passed < len(found)
    return replies.MemoryList(
        entries=page.kept,
        count=len(page.kept),
        scope_filter="global" if request.session_id is None else request.session_id,
        next_cursor=paging.encode(found[page.passed - 1].update.to_bytes(8), binding) if has_more else None,
        left_out=page.left_out,
        over_budget=page.over_budget,
    )


def delete(
    repository: MemoryRepository, request: requests.DeleteMemory, context: Context
) -> replies.MemoryDeleted:
    """Delete an entry with all versions; a missing key is no error."""
    if (request.key is None) == (request.memory_id is None):
        raise auth_errors.neither_id_nor_key()
    session_id = request.session_id
    stored: StoredEntry | None
    if request.key is not None:
        try:
            stored = repository.find_own(context, session_id, request.key)
        except RecordDamagedError:
            places = records.entry_keys(session_id, request.key)
            if not removal.remove_damaged(repository, context, places):
                raise
            audit_record.record(context, "delete_memory", session_id, key=request.key)
            scope = records.scope_name(session_id)
            return replies.MemoryDeleted(key=request.key, scope=scope, existed=True)
    else:
        stored = store_requests.find_named(repository, context, request.memory_id, None, None)
        policy.check_writes_namespace(context.principal, repository.namespace(stored.entry.sub))
        session_id = stored.entry.session_id
    key = request.key or "" if stored is None else stored.entry.key
    existed = stored is not None and records.is_there(stored.entry, context.now)
    context.use_reserve()
    if stored is not None and stored.entry.deleted_at is None:  # a forgotten memory keeps its history
        removal.remove(repository, context, stored)
        repository.unlist_if_empty(context)
    if existed:
        audit_record.record(context, "delete_memory", session_id, key=key)
    return replies.MemoryDeleted(key=key, scope=records.scope_name(session_id), existed=existed)


def cursor_binding(session_id: str | None, prefix: str | None) -> str:
    """Return the binding of a listing's cursor."""
    return f"memory {session_id} {prefix}"


def newest_first(
    repository: MemoryRepository, context: Context, session_id: str | None, highest: int | None
) -> Iterator[Entry]:
    """Yield the agent's own entries of one or all scopes; report damaged ones."""
    prefix = records.UPDATES if session_id == BOTH_SCOPES else records.updates_prefix(session_id)
    found = views.newest_first(repository, context, highest, prefix)
    return (stored.entry for stored in found if not stored.entry.sub)


def read_resource(
    repository: MemoryRepository, request: resources.ReadResource, context: Context
) -> Slices[MemoryResource]:
    """Return a page of the owner's live entries, newest update first, and their number."""
    if policy.memory_owner(context.principal) != context.address.key:
        raise auth_errors.denial(auth_errors.resource_not_found(request.uri))
    binding = cursor_binding(BOTH_SCOPES, None)
    cursor = cursor_of(request.uri)
    behind = None if cursor is None else paging.decode_number(cursor, binding)
    page = _Page()
    counts: Counter[str | None] = Counter()
    newest = None
    for entry in newest_first(repository, context, BOTH_SCOPES, None):
        if is_live(entry.expires_at, context.now):
            newest = newest or entry
            counts[entry.session_id] += 1
            if not page.has_more and (behind is None or entry.update < behind):
                item = yield from skip_damaged(context, _item(repository, entry, context))
                if item is not None:
                    page.add(entry, item)
        yield
    total = counts.total()
    audit_record.record_resource_read(context, entries=total)
    everywhere = counts.pop(None, 0)
    of_sessions = {session: count for session, count in counts.items() if session is not None}
    return MemoryResource(
        agent_id=context.address.key,
        memory=MemoryByScope(global_=page.everywhere, sessions=page.sessions),
        counts=MemoryCounts(global_=everywhere, sessions=of_sessions, total=total),
        statistics=MemoryFigures(
            global_keys=everywhere, session_scopes=len(of_sessions), total_entries=total
        ),
        has_more=page.has_more,
        cursor=paging.encode(page.last.to_bytes(8), binding) if page.has_more else None,
        resource_info=resources.ResourceInfo(
            uri=request.uri,
            reader=context.address.key,
            last_updated=None if newest is None else to_datetime(newest.updated_at),
        ),
    )


class _Page:
    """Entries by scope, as many as fit into a page."""

    def __init__(self) -> None:
        self.everywhere: dict[str, MemoryItem] = {}
        self.sessions: dict[str, dict[str, MemoryItem]] = {}
        self.has_more = False
        self.last = 0
        self._entries = self._bytes = 0

    def add(self, entry: Entry, item: MemoryItem) -> None:
        """Add an entry, unless the page is full."""
        value = b"" if item.value is UNSET else item.value
        self._bytes += len(memoryview(value)) + len(memoryview(item.metadata)) + BYTES_AN_ENTRY
        if self._entries == NEWEST_ENTRIES or (self._entries and self._bytes > PAGE_BYTES):
            self.has_more = True
            return
        self._entries += 1
        self.last = entry.update
        scope = self.everywhere
        if entry.session_id is not None:
            scope = self.sessions.setdefault(entry.session_id, {})
        scope[entry.key] = item


def _item(repository: MemoryRepository, entry: Entry, context: Context) -> Slices[MemoryItem]:
    version = repository.version(context, entry)
    value = b""
    if entry.value_size <= MAX_VALUE_BYTES:
        value = yield from _json(version)
    return MemoryItem(
        **msgspec.structs.asdict(view(entry)),
        value=msgspec.Raw(value) if 0 < len(value) <= MAX_VALUE_BYTES else UNSET,
        metadata=msgspec.Raw(version.metadata),
    )
