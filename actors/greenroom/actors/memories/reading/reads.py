"""Read memories: one, its versions, a page of them, the places of a key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.replies import paging
from greenroom.actors.core.replies.damage import note_damage, read_undamaged, skip_damaged
from greenroom.actors.core.replies.memory_types import import_source
from greenroom.actors.core.replies.replies import MemoryRead
from greenroom.actors.core.validation.times import optional_datetime, to_datetime
from greenroom.actors.core.validation.types import no_fields
from greenroom.actors.memories.requests import replies, requests
from greenroom.actors.memories.requests.keyvalue_requests import GetMemory
from greenroom.actors.memories.storage import indexing, records
from greenroom.actors.memories.storage.records import Entry, Version
from greenroom.actors.memories.storage.repository import MemoryRepository, StoredEntry
from greenroom.actors.memories.storage.views import (
    ALL,
    PREVIEW,
    EntryFilter,
    newest_first,
    to_version_view,
    to_view,
    version_id,
)
from greenroom.actors.memories.writing.store_requests import find_named
from greenroom.runtime import Context, RecordDamagedError, Slices

if TYPE_CHECKING:
    from greenroom.actors.search.index.corpus import Corpus

PAGE_BYTES = 1_048_576
"""One page has about this many bytes of contents; the last memory may exceed this size."""
BYTES_A_MEMORY = 500
"""The estimated size of a memory without its content."""
NEAR_KEYS = 3
"""The refusal of a missing key names at most this many similar keys."""
_NEAR_AMONG = 500
_NEAR = 75
_BEHIND_UPDATES = b"\xff" * 8


def read(
    repository: MemoryRepository, request: requests.ReadMemory, context: Context
) -> Slices[replies.MemoryShown]:
    """Return a whole memory, of any size."""
    yield from indexing.finish(repository, context)
    stored = find_named(repository, context, request.memory_id, request.key, request.namespace)
    entry = stored.entry
    number = request.version or entry.version
    version = None
    if number <= entry.version:
        version = repository.version_of(context, entry, number)
    if version is None or not records.is_live(version.expires_at, context.now):
        where = None if request.key is None else request.namespace or repository.root
        raise auth_errors.no_memory(request.memory_id or request.key, where=where)
    repository.uses.note(entry, context)
    repository.uses.write_soon(context)
    return replies.MemoryShown(
        memory=(yield from to_version_view(repository, context, entry, number, version, most=None))
    )


def look_up(
    repository: MemoryRepository, request: requests.LookUpMemories, context: Context
) -> Slices[replies.MemoriesKnown]:
    """Return keys and beginnings by id; this is not counted as a use."""
    yield from indexing.finish(repository, context)
    known: dict[str, replies.KnownMemory] = {}
    for memory_id in request.memory_ids:
        stored = read_undamaged(context, repository.find_id, context, memory_id)
        memory = None
        if stored is not None:
            memory = yield from skip_damaged(context, to_view(repository, context, stored.entry))
        if memory is not None:
            known[memory_id] = replies.KnownMemory(
                key=memory.key, version=memory.version, text=memory.text[:PREVIEW]
            )
        yield
    return replies.MemoriesKnown(known=known)


def read_value(repository: MemoryRepository, request: GetMemory, context: Context) -> Slices[MemoryRead]:
    """Return a memory of a namespace in the form of an agent's key-value memory."""
    if request.session_id is not None:
        name = "namespace" if request.memory_id is None else "memory_id"
        raise auth_errors.invalid(name, f"{name}: give either {name} or session_id, not both")
    by_name = requests.ReadMemory(
        memory_id=request.memory_id, key=request.key, namespace=request.namespace, version=request.version
    )
    memory = (yield from read(repository, by_name, context)).memory
    content = memory.value
    stored = None if memory.key.isascii() else repository.find_id(context, memory.memory_id)
    return MemoryRead(
        key=memory.key,
        value=msgspec.Raw(msgspec.json.encode(memory.content)) if content is UNSET else content,
        metadata=no_fields() if memory.metadata is UNSET else memory.metadata,
        created_at=memory.created_at,
        updated_at=memory.updated_at,
        expires_at=memory.expires_at,
        scope=records.scope_name(memory.session_id),
        version=memory.version,
        namespace=memory.namespace,
        imported=memory.imported,
        other_forms=UNSET if stored is None else repository.other_forms(context, stored.entry),
    )


def list_versions(
    repository: MemoryRepository, request: requests.ListVersions, context: Context
) -> Slices[replies.MemoryVersions]:
    """Return a page of versions, oldest first; for a key, also versions of forgotten memories."""
    yield from indexing.finish(repository, context)
    if (request.memory_id is None) == (request.key is None):
        raise auth_errors.neither_id_nor_key()
    binding = f"versions {request.memory_id} {request.namespace} {request.key}"
    after = b"" if request.cursor is None else paging.decode(request.cursor, binding)
    entries = sorted(_entries(repository, request, context), key=lambda stored: stored.entry.number)
    found: list[replies.VersionView] = []
    positions: list[bytes] = []
    has_more = False
    for stored in entries:
        for position, version in _versions(repository, context, stored, after):
            if len(found) == request.limit:
                has_more = True
                break
            found.append(_version(repository, stored.entry, int.from_bytes(position[8:]), version))
            positions.append(position)
            yield
        if has_more:
            break
    if not found:
        raise repository.not_found(context, request.memory_id, request.key, request.namespace)
    kept = paging.fit_to_budget(
        found, request.max_tokens, lambda each: {"memory_id": each.memory_id, "version": each.version}
    )
    has_more = has_more or kept.passed < len(found)
    return replies.MemoryVersions(
        versions=kept.kept,
        count=len(kept.kept),
        next_cursor=paging.encode(positions[kept.passed - 1], binding) if has_more else None,
        left_out=kept.left_out,
        over_budget=kept.over_budget,
    )


def newest_versions(
    repository: MemoryRepository, context: Context, entry: Entry, most: int
) -> list[replies.VersionView]:
    """Return an entry's unexpired versions, newest first, at most ``most``."""
    found: list[replies.VersionView] = []
    prefix = records.versions_prefix(entry.number)
    met = _noting(repository, context, entry)
    for key, version in context.scan(Version, prefix=prefix, reverse=True, on_damage=met):
        if len(found) == most:
            break
        if records.is_live(version.expires_at, context.now):
            found.append(_version(repository, entry, int.from_bytes(key[9:]), version))
    return found


def _entries(
    repository: MemoryRepository, request: requests.ListVersions, context: Context
) -> list[StoredEntry]:
    if request.memory_id is not None:
        stored = repository.find_id(context, request.memory_id, forgotten=True)
        return [] if stored is None else [stored]
    assert request.key is not None, "one of both was given"
    keys = records.entry_keys(None, request.key, repository.sub(request.namespace))
    return [
        stored
        for stored in repository.entries_of_key(context, keys)
        if records.is_live(stored.entry.expires_at, context.now)
        and repository.may_see(context.principal, stored.entry)
    ]


def _versions(
    repository: MemoryRepository, context: Context, stored: StoredEntry, after: bytes
) -> Iterator[tuple[bytes, Version]]:
    """Yield an entry's unexpired versions, each with the numbers of entry and version as bytes."""
    prefix = records.versions_prefix(stored.entry.number)
    start = prefix
    if after[:8] > stored.entry.number.to_bytes(8):
        return
    if after[:8] == stored.entry.number.to_bytes(8):
        start = prefix + (int.from_bytes(after[8:]) + 1).to_bytes(8)
    met = _noting(repository, context, stored.entry)
    for key, version in context.scan(Version, prefix=prefix, start=start, on_damage=met):
        if records.is_live(version.expires_at, context.now):
            yield key[1:], version


def _noting(
    repository: MemoryRepository, context: Context, entry: Entry
) -> Callable[[RecordDamagedError], None]:
    return lambda error: note_damage(context, repository.lost(error, entry))


def _version(
    repository: MemoryRepository, entry: Entry, number: int, version: Version
) -> replies.VersionView:
    details = version.details
    return replies.VersionView(
        memory_id=repository.memory_id(entry.number),
        id=version_id(entry, number, version),
        version=number,
        author=repository.author(entry) if details is None else details.author,
        imported=UNSET if details is None else import_source(details.imported),
        stored_at=to_datetime(version.stored_at),
        expires_at=optional_datetime(version.expires_at),
        size_bytes=len(version.value),
        deleted_at=optional_datetime(entry.deleted_at),
        task_id=None if details is None else details.task_id,
    )


def list_page(
    repository: MemoryRepository, request: requests.ListMemories, context: Context
) -> Slices[replies.MemoryPage]:
    """Return a page; a memory that is updated meanwhile moves to the front."""
    yield from indexing.finish(repository, context)
    filters = request.filters or ALL
    digest = blake2b(msgspec.json.encode(filters), digest_size=8).hexdigest()
    binding = f"memories {request.namespace} {digest}"
    highest = None
    if request.cursor is not None:
        highest = paging.decode_number(request.cursor, binding) - 1
    fitting = EntryFilter(repository, context, filters, request.namespace)
    views: list[replies.MemoryView] = []
    updates: list[int] = []
    size, has_more = 0, False
    for stored in newest_first(repository, context, highest):
        if fitting.fits(stored.entry):
            size += stored.entry.value_size + BYTES_A_MEMORY
            if len(views) == request.limit or (views and size > PAGE_BYTES):
                has_more = True
                break
            view = yield from skip_damaged(context, to_view(repository, context, stored.entry))
            if view is not None:
                views.append(view)
                updates.append(stored.entry.update)
        yield
    cut = paging.fit_to_budget(
        views, request.max_tokens, lambda each: {"memory_id": each.memory_id, "key": each.key}
    )
    has_more = has_more or cut.passed < len(views)
    return replies.MemoryPage(
        memories=cut.kept,
        count=len(cut.kept),
        next_cursor=paging.encode(updates[cut.passed - 1].to_bytes(8), binding) if has_more else None,
        imitates=repository.imitates if views else UNSET,
        tokens=cut.tokens,
        left_out=cut.left_out,
        over_budget=cut.over_budget,
    )


def rows_of_key(
    repository: MemoryRepository, context: Context, corpus: Corpus, key: str
) -> Slices[list[int]]:
    """Return the index rows of all memories with a key, visible or not."""
    rows = []
    for stored in (yield from _entries_of_key(repository, context, key)):
        row = corpus.row(stored.entry.update)
        if row is not None:
            rows.append(row)
    return rows


def locate(
    repository: MemoryRepository, request: requests.LocateKey, context: Context
) -> Slices[replies.KeyLocated]:
    """Return the places where a key has memories that the caller may see."""
    yield from indexing.finish(repository, context)
    places = [
        replies.KeyPlace(
            namespace=repository.namespace(stored.entry.sub),
            memory_id=repository.memory_id(stored.entry.number),
            session_id=stored.entry.session_id,
        )
        for stored in (yield from _entries_of_key(repository, context, request.key))
        if records.is_live(stored.entry.expires_at, context.now)
        and (request.forgotten or stored.entry.deleted_at is None)
        and repository.may_see(context.principal, stored.entry)
    ]
    return replies.KeyLocated(places=places)


def find_near_keys(
    repository: MemoryRepository, request: requests.FindNearKeys, context: Context
) -> Slices[list[str]]:
    """Return keys of the newest visible memories that are similar to a key."""
    keys: dict[str, None] = {}
    for stored in islice(newest_first(repository, context), _NEAR_AMONG):
        entry = stored.entry
        if (
            request.namespace in {None, repository.namespace(entry.sub)}
            and records.is_live(entry.expires_at, context.now)
            and repository.may_see(context.principal, entry)
        ):
            keys[entry.key] = None
        yield
    from rapidfuzz import fuzz, process  # noqa: PLC0415 - rarely needed, and slow to load

    near = process.extract(
        request.key, keys.keys(), scorer=fuzz.ratio, processor=str.lower, score_cutoff=_NEAR, limit=NEAR_KEYS
    )
    return [key for key, *_ in near]


def _entries_of_key(repository: MemoryRepository, context: Context, key: str) -> Slices[list[StoredEntry]]:
    found: list[StoredEntry] = []
    for scope in scopes(context):
        places = records.keys_in_scope(scope, key)
        found += read_undamaged(context, list, repository.live_entries_of_key(context, places)) or []
        yield
    return found


def scopes(context: Context, after: bytes | None = None) -> Iterator[bytes]:
    """Yield the scopes after ``after``: the root, namespaces below it, sessions.

    It reads one row for each scope.
    """
    start = None if after is None else records.ORDER + after + _BEHIND_UPDATES
    if start is None:
        yield records.GLOBAL
    while (first := next(context.scan(bytes, prefix=records.ORDER, start=start), None)) is not None:
        scope = records.scope_of_update(first[0])
        start = records.ORDER + scope + _BEHIND_UPDATES
        if scope != records.GLOBAL:
            yield scope
