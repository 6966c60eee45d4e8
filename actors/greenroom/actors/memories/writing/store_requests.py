"""Store and update memories, for the tools and for the memory service."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.replies import memory_types as kinds
from greenroom.actors.core.replies.memory_types import DEFAULT_IMPORTANCE
from greenroom.actors.core.replies.paging import tokens_of_size
from greenroom.actors.core.validation.times import optional_datetime, to_datetime
from greenroom.actors.memories.requests import replies, requests
from greenroom.actors.memories.storage import embedding, indexing, records
from greenroom.actors.memories.storage.records import PLAIN
from greenroom.actors.memories.storage.repository import MemoryRepository, StoredEntry
from greenroom.actors.memories.storage.values import compression_ratio
from greenroom.actors.memories.writing import drafts, near_duplicates
from greenroom.actors.memories.writing.writes import Draft, WriteResult, write
from greenroom.runtime import Context, Slices


def store(
    repository: MemoryRepository, request: requests.StoreMemory, context: Context
) -> Slices[replies.MemorySaved]:
    """Store a memory, or a new version of the memory of the key."""
    namespace = request.namespace or repository.root
    repository.name_root(namespace)
    policy.check_writes_namespace(context.principal, namespace)
    value = drafts.content_of(request.content, request.value)
    if value is None:
        raise auth_errors.invalid("content", "content: it is required, or a value in its place")
    metadata = drafts.read_metadata(request)
    known, others = metadata.known, metadata.others
    expires_at = drafts.expiry_time(metadata, context.now)
    yield from indexing.finish(repository, context)
    key = request.key or drafts.generate_key(context.random.randbytes(8))
    stored = repository.find(context, repository.sub(namespace), None, key)
    check_version(repository, namespace, key, stored, request.expected_version)
    partition = policy.memory_partition(context.principal, namespace, known.scope or None)
    if stored is not None:
        old = repository.partition(stored.entry)
        partition = policy.moved_partition(old, context.principal, namespace, known.scope or old.scope)
    writer, source = context.principal.agent_id, None
    if policy.may_name_authors(context.principal):
        writer = request.author or writer
    elif request.author != writer:
        source = request.author
    draft = Draft(
        key=key if stored is None else stored.entry.key,
        sub=repository.sub(namespace),
        value=value[0],
        form=value[1],
        compress=request.compress,
        metadata=drafts.to_object(others),
        partition=partition,
        expires_at=expires_at,
        kind=request.kind or "semantic",
        tags=tuple(known.tags or ()),
        importance=_importance(known.importance, DEFAULT_IMPORTANCE),
        author=writer if stored is None else repository.author(stored.entry),
        by=writer,
        imported=source,
        conversation=request.conversation_id,
        position=request.position,
        supersedes=find_superseded(repository, context, request.supersedes),
        unreviewed=_flag(request.unreviewed),
    )
    return (yield from save(repository, context, draft, stored, "store_memory"))


def update(
    repository: MemoryRepository, request: requests.UpdateMemory, context: Context
) -> Slices[replies.MemorySaved]:
    """Store a new version: absent arguments keep their values; members of the metadata are merged."""
    new = drafts.content_of(request.content, request.value)
    metadata = drafts.read_metadata(request)
    known, others = metadata.known, metadata.others
    is_same = request.kind is request.supersedes is None and _flag(request.unreviewed) is None
    is_same = is_same and drafts.is_empty(metadata)
    if new == (b"null", records.JSON):
        new = None  # some clients send every argument
    if new is None and is_same:
        raise auth_errors.invalid(
            "content",
            "content: nothing to change is given; give content, value, metadata, "
            f"{', '.join(kinds.KNOWN)}, kind, supersedes or unreviewed",
        )
    expires_at = drafts.expiry_time(metadata, context.now)
    yield from indexing.finish(repository, context)
    stored = find_named(repository, context, request.memory_id, request.key, request.namespace)
    entry = stored.entry
    namespace = repository.namespace(entry.sub)
    policy.check_writes_namespace(context.principal, namespace)
    check_version(repository, namespace, entry.key, stored, request.expected_version)
    old = repository.partition(entry)
    partition = policy.moved_partition(old, context.principal, namespace, known.scope or old.scope)
    supersedes = find_superseded(repository, context, request.supersedes)
    value, version = yield from repository.value(context, entry)
    details = entry.details or PLAIN
    draft = Draft(
        key=entry.key,
        sub=details.sub,
        session_id=entry.session_id,
        value=value if new is None else new[0],
        form=details.form & records.TEXT if new is None else new[1],
        compress=request.compress if new is not None else bool(details.form & records.COMPRESSED),
        metadata=drafts.merge_metadata(version.metadata, others),
        partition=partition,
        expires_at=entry.expires_at if known.expiry is UNSET else expires_at,
        kind=request.kind or details.kind,
        tags=details.tags if known.tags is UNSET else tuple(known.tags or ()),
        importance=_importance(known.importance, details.importance),
        author=details.author,
        by=context.principal.agent_id,
        conversation=details.conversation,
        position=details.position,
        supersedes=supersedes,
        unreviewed=_flag(request.unreviewed),
    )
    return (yield from save(repository, context, draft, stored, "update_memory"))


def add(
    repository: MemoryRepository, request: requests.AddMemory, context: Context
) -> Slices[replies.MemorySaved]:
    """Store the first version of a memory, for the memory service."""
    policy.check_writes_namespace(context.principal, request.namespace)
    repository.name_root(request.namespace)
    yield from indexing.finish(repository, context)
    sub = repository.sub(request.namespace)
    if repository.find(context, sub, None, request.key) is not None:
        raise auth_errors.memory_exists(request.key, request.namespace)
    draft = Draft(
        key=request.key,
        sub=sub,
        value=bytes(request.value),
        metadata=bytes(request.metadata),
        partition=policy.memory_partition(context.principal, request.namespace),
        kind=request.memory_type,
        author=request.created_by,
        by=request.created_by,
        task_id=request.task_id,
    )
    return (yield from save(repository, context, draft, None, "add_memory"))


def revise(
    repository: MemoryRepository, request: requests.ReviseMemory, context: Context
) -> Slices[replies.MemorySaved]:
    """Store the next version of a memory's value, for the memory service."""
    policy.check_writes_namespace(context.principal, request.namespace)
    yield from indexing.finish(repository, context)
    stored = repository.find(context, repository.sub(request.namespace), None, request.key)
    check_version(repository, request.namespace, request.key, stored, request.expected_version)
    if stored is None:
        raise repository.not_found(context, None, request.key, request.namespace)
    _, version = yield from repository.value(context, stored.entry)
    details = stored.entry.details or PLAIN
    draft = Draft(
        key=stored.entry.key,
        sub=details.sub,
        value=bytes(request.value),
        metadata=version.metadata,
        partition=repository.partition(stored.entry),
        expires_at=stored.entry.expires_at,
        kind=details.kind,
        tags=details.tags,
        importance=details.importance,
        author=details.author,
        by=request.updated_by,
        task_id=request.task_id,
        conversation=details.conversation,
        position=details.position,
    )
    return (yield from save(repository, context, draft, stored, "update_memory"))


def find_named(
    repository: MemoryRepository,
    context: Context,
    memory_id: str | None,
    key: str | None,
    namespace: str | None,
) -> StoredEntry:
    """Return the memory of an id or a key, just one of which is given."""
    if (memory_id is None) == (key is None):
        raise auth_errors.neither_id_nor_key()
    if memory_id is not None:
        stored = repository.find_id(context, memory_id)
    else:
        assert key is not None, "one of both was given"
        stored = repository.find(context, repository.sub(namespace), None, key)
    if stored is None:
        raise repository.not_found(context, memory_id, key, namespace)
    return stored


def find_superseded(
    repository: MemoryRepository, context: Context, memory_id: str | None
) -> StoredEntry | None:
    """Return the memory that a new one is to supersede."""
    if memory_id is None:
        return None
    stored = repository.find_id(context, memory_id)
    if stored is None:
        hidden = repository.hides(context, memory_id, None)
        raise auth_errors.no_memory(memory_id, where=repository.root, hidden=hidden)
    return stored


def check_version(
    repository: MemoryRepository, namespace: str, key: str, stored: StoredEntry | None, expected: int | None
) -> None:
    """Refuse another version than the caller expects; 0 means no memory."""
    current = 0 if stored is None else stored.entry.version
    if expected is None or expected == current:
        return
    details = {}
    if stored is not None:
        updated_at = to_datetime(stored.entry.updated_at).isoformat().replace("+00:00", "Z")
        details = {"memory_id": repository.memory_id(stored.entry.number), "updated_at": updated_at}
    raise auth_errors.version_conflict(key, namespace, expected, current, **details)


def save(
    repository: MemoryRepository, context: Context, draft: Draft, stored: StoredEntry | None, action: str
) -> Slices[replies.MemorySaved]:
    """Write a checked draft, add an audit record, and return the reply."""
    written = yield from write(repository, context, draft, stored)
    entry = written.entry
    text = embedding.text_to_embed(draft.value, draft.form, repository.author(entry))
    yield from embedding.embed_or_queue(repository, context, [(entry.update, text)])
    space = embedding.serving_space(repository, context)
    found = yield from near_duplicates.find_similar(repository, context, entry, draft, space)
    audit_record.record(
        context,
        action,
        entry.session_id,
        namespace=repository.namespace(entry.sub),
        key=entry.key,
        old_version=None if stored is None else stored.entry.version,
        version=entry.version,
        value_size=entry.value_size,
        task_id=draft.task_id,
        by=draft.by,
    )
    return _reply(repository, context, draft, written, found)


def _reply(
    repository: MemoryRepository,
    context: Context,
    draft: Draft,
    written: WriteResult,
    found: near_duplicates.SimilarMemories,
) -> replies.MemorySaved:
    entry, tokens = written.entry, tokens_of_size(written.entry.value_size)
    details = entry.details or PLAIN
    return replies.MemorySaved(
        memory_id=repository.memory_id(entry.number),
        id=entry.update,
        key=entry.key,
        namespace=repository.namespace(details.sub),
        version=entry.version,
        created=written.created,
        stored_at=to_datetime(context.now),
        expires_at=optional_datetime(entry.expires_at),
        size_bytes=entry.stored_size,
        compressed=bool(details.form & records.COMPRESSED),
        compression_ratio=compression_ratio(entry.stored_size, entry.value_size),
        tokens=tokens,
        tokens_saved=tokens - tokens_of_size(entry.stored_size),
        similar=found.similar,
        conflicts_with=found.conflicts,
        supersedes=None if draft.supersedes is None else repository.memory_id(draft.supersedes.entry.number),
    )


def _importance(importance: float | msgspec.UnsetType | None, otherwise: float) -> float:
    return importance if isinstance(importance, float) else otherwise


def _flag(unreviewed: bool | msgspec.UnsetType | None) -> bool | None:  # noqa: FBT001 - a field of a request
    return unreviewed if isinstance(unreviewed, bool) else None
