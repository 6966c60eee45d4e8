"""Requests of the memory service for several memories: change, prolong, list namespaces."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.namespaces import is_below
from greenroom.actors.core.replies import paging
from greenroom.actors.core.replies.damage import read_undamaged
from greenroom.actors.core.validation.times import SECOND
from greenroom.actors.memories.reading.reads import scopes
from greenroom.actors.memories.requests import replies, requests
from greenroom.actors.memories.storage import embedding, indexing, records
from greenroom.actors.memories.storage.records import Entry
from greenroom.actors.memories.storage.repository import MemoryRepository, StoredEntry
from greenroom.actors.memories.writing import removal
from greenroom.actors.memories.writing.writes import Draft, write
from greenroom.runtime import Context, Slices


def change(repository: MemoryRepository, request: requests.ChangeMemories, context: Context) -> Slices[None]:
    """Store and remove memories in order, all or none."""
    for each in request.changes:
        policy.check_writes_namespace(context.principal, each.namespace)
        repository.name_root(each.namespace)
    yield from indexing.finish(repository, context)
    if all(each.value is UNSET for each in request.changes):
        context.use_reserve()
    written: list[tuple[int, str]] = []
    for each in request.changes:
        stored = repository.find(context, repository.sub(each.namespace), None, each.key)
        if not isinstance(each.value, UnsetType):
            written.append((yield from _store(repository, context, each, bytes(each.value), stored)))
        elif stored is not None:
            removal.remove(repository, context, stored)
            _record(repository, context, "delete_memory", stored.entry, None, purged=True)
        yield
    repository.unlist_if_empty(context)
    # Later changes may have replaced or removed earlier versions.
    left = [each for each in written if repository.by_update(context, each[0]) is not None]
    yield from embedding.embed_or_queue(repository, context, left)


def _store(
    repository: MemoryRepository,
    context: Context,
    change: requests.MemoryChange,
    value: bytes,
    stored: StoredEntry | None,
) -> Slices[tuple[int, str]]:
    """Stage a version of a memory; return its number and the text to embed."""
    old = None if stored is None else stored.entry
    writer = context.principal.agent_id
    draft = Draft(
        key=change.key if old is None else old.key,
        sub=repository.sub(change.namespace),
        value=value,
        compress=True,
        metadata=bytes(change.metadata),
        partition=policy.memory_partition(context.principal, change.namespace)
        if old is None
        else repository.partition(old),
        expires_at=None if change.expires_in is None else _later(context, change.expires_in),
        author=writer if old is None else repository.author(old),
        by=writer,
    )
    entry = (yield from write(repository, context, draft, stored)).entry
    _record(repository, context, "store_memory", entry, None if old is None else old.version)
    return entry.update, embedding.text_to_embed(value, records.JSON, repository.author(entry))


def prolong(
    repository: MemoryRepository, request: requests.ProlongMemories, context: Context
) -> Slices[None]:
    """Set later expiries; memories that are gone or never expire are skipped."""
    yield from indexing.finish(repository, context)
    for lease in request.leases:
        policy.check_writes_namespace(context.principal, lease.namespace)
        stored = repository.find(context, repository.sub(lease.namespace), None, lease.key)
        if stored is not None and stored.entry.expires_at is not None:
            _prolong(repository, context, stored, _later(context, lease.expires_in))
        yield


def _prolong(repository: MemoryRepository, context: Context, stored: StoredEntry, until: int) -> None:
    where, entry = stored
    assert entry.expires_at is not None, "the caller checked it"
    if until <= entry.expires_at:
        return
    of_version = records.version_key(entry.number, entry.version)
    version = repository.version(context, entry)
    context.delete(records.expiry_key(entry.expires_at, entry.number, entry.version))
    context.put(records.expiry_key(until, entry.number, entry.version), where)
    context.put(of_version, msgspec.structs.replace(version, expires_at=until))
    context.put(where, msgspec.structs.replace(entry, expires_at=until))
    repository.index.change(context, entry.update, expires_at=until)
    repository.publish(context, entry)
    removal.sweep_by(repository, context, until)
    _record(repository, context, "prolong_memory", entry, entry.version)


def list_namespaces(
    repository: MemoryRepository, request: requests.ListSubNamespaces, context: Context
) -> Slices[replies.NamespacePage]:
    """Return a page of the namespaces in which the caller sees memories.

    Each namespace costs a read of its newest memory, or of a few if the newest is hidden or expired.
    """
    yield from indexing.finish(repository, context)
    binding = f"namespaces {request.namespace}"
    last = None if request.cursor is None else paging.decode(request.cursor, binding)
    found: list[str] = []
    for scope in scopes(context, last):
        if len(found) == request.limit:
            assert last is not None, "one was found before"
            return replies.NamespacePage(namespaces=found, next_cursor=paging.encode(last, binding))
        found += yield from _at(repository, context, scope, request.namespace)
        last = scope
    return replies.NamespacePage(namespaces=found, next_cursor=None)


def _at(repository: MemoryRepository, context: Context, scope: bytes, below: str) -> Slices[list[str]]:
    """Return the namespace of a scope, if it is requested and not empty."""
    for _, where in context.scan(bytes, prefix=records.ORDER + scope, reverse=True):
        entry = read_undamaged(context, repository.listed_at, context, where)
        if entry is None:
            continue
        namespace = repository.namespace(entry.sub)
        if not is_below(namespace, below):
            break
        if records.is_there(entry, context.now) and repository.may_see(context.principal, entry):
            return [namespace]
        yield
    return []


def _later(context: Context, seconds: float) -> int:
    return context.now + max(1, round(seconds * SECOND))


def _record(
    repository: MemoryRepository,
    context: Context,
    action: str,
    entry: Entry,
    old_version: int | None,
    **details: bool,
) -> None:
    repository.record(
        context,
        action,
        entry,
        old_version=old_version,
        version=entry.version,
        value_size=entry.value_size,
        **details,
    )
