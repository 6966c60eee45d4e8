"""Reading memories: one of them, its versions, a page of those that a reader sees, the places of a key."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.replies import paging
from greenroom.actors.core.replies.memory_types import import_source
from greenroom.actors.core.replies.replies import MemoryRead
from greenroom.actors.core.validation.times import optional_datetime, to_datetime
from greenroom.actors.core.validation.types import no_fields
from greenroom.actors.memories.requests import replies, requests
from greenroom.actors.memories.storage import indexing, records
from greenroom.actors.memories.storage.records import Entry, Version
from greenroom.actors.memories.storage.repository import MemoryRepository, StoredEntry
from greenroom.actors.memories.storage.views import (
    ALL,
    PREVIEW,
    EntryFilter,
    newest_first,
    shown,
    shown_version,
    version_id,
)
from greenroom.actors.memories.writing.store_requests import named
from greenroom.actors.schemas.keyvalue import GetMemory
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    from greenroom.actors.search.index.corpus import Corpus

PAGE_BYTES = 1_048_576
"""Contents of one page, about; one more memory may go beyond it."""
BYTES_A_MEMORY = 500
"""What the rest of a memory counts for besides its content."""
NEAR_KEYS = 3
"""Keys that are named in the place of one that is missing."""
_NEAR_AMONG = 500
_NEAR = 75
_BEHIND_UPDATES = b"\xff" * 8


def read(
    repository: MemoryRepository, request: requests.ReadMemory, context: Context
) -> Slices[replies.MemoryShown]:
    """Answer a memory whole, however large it is."""
    yield from indexing.finish(repository, context)
    stored = named(repository, context, request.memory_id, request.key, request.namespace)
    entry = stored.entry
    number = request.version or entry.version
    version = None
    if number <= entry.version:
        version = context.get(records.version_key(entry.number, number), Version)
    if version is None or not records.is_live(version.expires_at, context.now):
        where = None if request.key is None else request.namespace or repository.root
        raise auth_errors.no_memory(request.memory_id or request.key, where=where)
    repository.uses.note(entry, context)
    repository.uses.write_soon(context)
    return replies.MemoryShown(
        memory=(yield from shown_version(repository, context, entry, number, version, most=None))
    )


def look_up(
    repository: MemoryRepository, request: requests.LookUpMemories, context: Context
) -> Slices[replies.MemoriesKnown]:
    """Answer what is known by ids; who only looks does not use it."""
    yield from indexing.finish(repository, context)
    known: dict[str, replies.KnownMemory] = {}
    for memory_id in request.memory_ids:
        stored = repository.find_id(context, memory_id)
        if stored is not None:
            memory = yield from shown(repository, context, stored.entry)
            known[memory_id] = replies.KnownMemory(
                key=memory.key, version=memory.version, text=memory.text[:PREVIEW]
            )
        if context.should_yield():
            yield
    return replies.MemoriesKnown(known=known)


def value(repository: MemoryRepository, request: GetMemory, context: Context) -> Slices[MemoryRead]:
    """Answer a memory of a namespace in the form of an agent's key-value memory."""
    if request.session_id is not None:
        name = "namespace" if request.memory_id is None else "memory_id"
        raise auth_errors.invalid(name, f"{name}: give either {name} or session_id, not both")
    named_so = requests.ReadMemory(
        memory_id=request.memory_id, key=request.key, namespace=request.namespace, version=request.version
    )
    memory = (yield from read(repository, named_so, context)).memory
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


def versions(
    repository: MemoryRepository, request: requests.ListVersions, context: Context
) -> Slices[replies.MemoryVersions]:
    """Answer a page of versions, oldest first; of a key, also those of what was forgotten under it."""
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
        for position, version in _versions(context, stored, after):
            if len(found) == request.limit:
                has_more = True
                break
            found.append(_version(repository, stored.entry, int.from_bytes(position[8:]), version))
            positions.append(position)
            if context.should_yield():
                yield
        if has_more:
            break
    if not found:
        raise repository.not_found(context, request.memory_id, request.key, request.namespace)
    kept = paging.take_in_order(
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
    """Return an entry's versions that have not expired, the newest first, at most so many."""
    found: list[replies.VersionView] = []
    prefix = records.versions_prefix(entry.number)
    for key, version in context.scan(Version, prefix=prefix, reverse=True):
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


def _versions(context: Context, stored: StoredEntry, after: bytes) -> Iterator[tuple[bytes, Version]]:
    """Yield an entry's versions that have not expired, each with its entry's number and its own as bytes."""
    prefix = records.versions_prefix(stored.entry.number)
    start = prefix
    if after[:8] > stored.entry.number.to_bytes(8):
        return
    if after[:8] == stored.entry.number.to_bytes(8):
        start = prefix + (int.from_bytes(after[8:]) + 1).to_bytes(8)
    for key, version in context.scan(Version, prefix=prefix, start=start):
        if records.is_live(version.expires_at, context.now):
            yield key[1:], version


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


def page(
    repository: MemoryRepository, request: requests.ListMemories, context: Context
) -> Slices[replies.MemoryPage]:
    """Answer a page; a memory that is updated meanwhile moves to the front."""
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
    for stored in newest_first(context, highest):
        if fitting.fits(stored.entry):
            size += stored.entry.value_size + BYTES_A_MEMORY
            if len(views) == request.limit or (views and size > PAGE_BYTES):
                has_more = True
                break
            views.append((yield from shown(repository, context, stored.entry)))
            updates.append(stored.entry.update)
        if context.should_yield():
            yield
    cut = paging.take_in_order(
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
    """Return the index rows of all memories that have a key, visible or not."""
    rows = []
    for stored in (yield from _held(repository, context, key)):
        row = corpus.row(stored.entry.update)
        if row is not None:
            rows.append(row)
    return rows


def locate(
    repository: MemoryRepository, request: requests.LocateKey, context: Context
) -> Slices[replies.KeyLocated]:
    """Answer where a key has memories that the sender may see."""
    yield from indexing.finish(repository, context)
    places = [
        replies.KeyPlace(
            namespace=repository.namespace(stored.entry.sub),
            memory_id=repository.memory_id(stored.entry.number),
            session_id=stored.entry.session_id,
        )
        for stored in (yield from _held(repository, context, request.key))
        if records.is_live(stored.entry.expires_at, context.now)
        and (request.forgotten or stored.entry.deleted_at is None)
        and repository.may_see(context.principal, stored.entry)
    ]
    return replies.KeyLocated(places=places)


def near_keys(
    repository: MemoryRepository, request: requests.FindNearKeys, context: Context
) -> Slices[list[str]]:
    """Answer which keys of the newest memories that the sender may see look like one."""
    keys: dict[str, None] = {}
    for stored in islice(newest_first(context), _NEAR_AMONG):
        entry = stored.entry
        if (
            request.namespace in {None, repository.namespace(entry.sub)}
            and records.is_live(entry.expires_at, context.now)
            and repository.may_see(context.principal, entry)
        ):
            keys[entry.key] = None
        if context.should_yield():
            yield
    from rapidfuzz import fuzz, process  # noqa: PLC0415 - few need it, and it takes long to load

    near = process.extract(
        request.key, keys.keys(), scorer=fuzz.ratio, processor=str.lower, score_cutoff=_NEAR, limit=NEAR_KEYS
    )
    return [key for key, *_ in near]


def _held(repository: MemoryRepository, context: Context, key: str) -> Slices[list[StoredEntry]]:
    found: list[StoredEntry] = []
    for scope in scopes(context):
        found += repository.live_entries_of_key(context, records.keys_in_scope(scope, key))
        if context.should_yield():
            yield
    return found


def scopes(context: Context, after: bytes | None = None) -> Iterator[bytes]:
    """Yield what tells the root, the namespaces below it and the sessions apart; of each one row is read.

    Args:
        context: The message's.
        after: Those that follow this one alone.
    """
    start = None if after is None else records.ORDER + after + _BEHIND_UPDATES
    if start is None:
        yield records.GLOBAL
    while (first := next(context.scan(bytes, prefix=records.ORDER, start=start), None)) is not None:
        scope = records.scope_of_update(first[0])
        start = records.ORDER + scope + _BEHIND_UPDATES
        if scope != records.GLOBAL:
            yield scope
