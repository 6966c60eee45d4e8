"""Store and update memories, for the tools and for the memory service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.replies import memory_types as kinds
from greenroom.actors.core.replies.memory_types import DEFAULT_IMPORTANCE
from greenroom.actors.core.replies.paging import tokens_of_size
from greenroom.actors.core.validation.parse import parse_part
from greenroom.actors.core.validation.times import (
    optional_datetime,
    parse_time_argument,
    to_datetime,
    to_microseconds,
)
from greenroom.actors.memories.requests import replies, requests
from greenroom.actors.memories.requests.requests import StoreMemory, UpdateMemory
from greenroom.actors.memories.storage import embedding, indexing, records
from greenroom.actors.memories.storage.records import PLAIN, Entry, Version
from greenroom.actors.memories.storage.repository import MemoryRepository, StoredEntry
from greenroom.actors.memories.storage.values import compression_ratio, unpack
from greenroom.actors.memories.writing import near_duplicates
from greenroom.actors.memories.writing.writes import Draft, WriteResult, write
from greenroom.runtime import Context, Slices


def store(
    repository: MemoryRepository, request: requests.StoreMemory, context: Context
) -> Slices[replies.MemorySaved]:
    """Store a memory, or a new version if the key has a memory."""
    namespace = request.namespace or repository.root
    repository.name_root(namespace)
    policy.check_writes_namespace(context.principal, namespace)
    value = content_of(request.content, request.value)
    if value is None:
        raise auth_errors.invalid("content", "content: it is required, or a value in its place")
    metadata = read_metadata(request)
    known, others = metadata.known, metadata.others
    expires_at = expiry_time(metadata, context.now)
    yield from indexing.finish(repository, context)
    key = request.key or f"memory_{context.random.randbytes(8).hex()}"
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
        metadata=to_object(others),
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
    new = content_of(request.content, request.value)
    metadata = read_metadata(request)
    known, others = metadata.known, metadata.others
    is_same = request.kind is request.supersedes is None and _flag(request.unreviewed) is None
    is_same = is_same and is_empty(metadata)
    if new == (b"null", records.JSON):
        new = None  # some clients send every argument
    if new is None and is_same:
        raise auth_errors.invalid(
            "content",
            "content: nothing to change is given; give content, value, metadata, "
            f"{', '.join(kinds.KNOWN)}, kind, supersedes or unreviewed",
        )
    expires_at = expiry_time(metadata, context.now)
    yield from indexing.finish(repository, context)
    stored = find_named(repository, context, request.memory_id, request.key, request.namespace)
    entry = stored.entry
    namespace = repository.namespace(entry.sub)
    policy.check_writes_namespace(context.principal, namespace)
    check_version(repository, namespace, entry.key, stored, request.expected_version)
    old = repository.partition(entry)
    partition = policy.moved_partition(old, context.principal, namespace, known.scope or old.scope)
    supersedes = find_superseded(repository, context, request.supersedes)
    version = repository.version(context, entry)
    draft = yield from draft_of(repository, context, entry, version)
    if new is not None:
        (draft.value, draft.form), draft.compress = new, request.compress
    draft.metadata = merge_metadata(version.metadata, others)
    draft.partition = partition
    draft.kind = request.kind or draft.kind
    draft.importance = _importance(known.importance, draft.importance)
    if known.expiry is not UNSET:
        draft.expires_at = expires_at
    if known.tags is not UNSET:
        draft.tags = tuple(known.tags or ())
    draft.supersedes = supersedes
    draft.unreviewed = _flag(request.unreviewed)
    return (yield from save(repository, context, draft, stored, "update_memory"))


def draft_of(repository: MemoryRepository, context: Context, entry: Entry, version: Version) -> Slices[Draft]:
    """Return a draft of an entry by the caller, with the value of a version."""
    details = entry.details or PLAIN
    return Draft(
        key=entry.key,
        sub=details.sub,
        session_id=entry.session_id,
        value=(yield from unpack(version.value, version.form)),
        form=version.form & records.TEXT,
        compress=bool(version.form & records.COMPRESSED),
        metadata=version.metadata,
        partition=repository.partition(entry),
        expires_at=entry.expires_at,
        kind=details.kind,
        tags=details.tags,
        importance=details.importance,
        author=details.author,
        by=context.principal.agent_id,
        conversation=details.conversation,
        position=details.position,
    )


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
    version = repository.version(context, stored.entry)
    draft = yield from draft_of(repository, context, stored.entry, version)
    draft.value, draft.form, draft.compress = bytes(request.value), records.JSON, False
    draft.by, draft.task_id = request.updated_by, request.task_id
    return (yield from save(repository, context, draft, stored, "update_memory"))


def find_named(
    repository: MemoryRepository,
    context: Context,
    memory_id: str | None,
    key: str | None,
    namespace: str | None,
) -> StoredEntry:
    """Return the memory of an id or a key, of which exactly one is given."""
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
    """Refuse a version that the caller does not expect; 0 means no memory."""
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
    repository.record(
        context,
        action,
        entry,
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


_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of metadata with a meaning; null counts as absent."""

    tags: kinds.Tags | UnsetType | None = UNSET
    importance: kinds.Fraction | UnsetType | None = UNSET
    expiry: str | UnsetType | None = UNSET
    scope: kinds.Scope | UnsetType | None = UNSET


class Metadata(NamedTuple):
    """The metadata of a request, split into known fields and others.

    ``beside`` names the known fields that were passed as arguments, outside of the metadata.
    """

    known: Known
    others: Mapping[str, msgspec.Raw]
    beside: frozenset[str] = frozenset()


def read_metadata(request: StoreMemory | UpdateMemory) -> Metadata:
    """Read ``metadata`` and the known fields that were passed as arguments."""
    raw = request.metadata
    known = parse_part(Known, bytes(raw), "metadata")
    others = {name: value for name, value in _members(raw).items() if name not in kinds.KNOWN}
    beside: dict[str, Any] = {}
    for name in kinds.KNOWN:
        value, inner = getattr(request, name), getattr(known, name)
        if value is UNSET or value is None:
            continue
        if inner is not UNSET and inner != value:
            raise auth_errors.invalid(
                name, f"{name}: it is given here and as metadata.{name}, and they differ; give one of them"
            )
        beside[name] = value
    return Metadata(msgspec.structs.replace(known, **beside), others, frozenset(beside))


def is_empty(metadata: Metadata) -> bool:
    """Return whether a request has neither metadata nor known fields."""
    return not metadata.others and all(getattr(metadata.known, name) is UNSET for name in kinds.KNOWN)


def to_object(members: Mapping[str, msgspec.Raw]) -> bytes:
    """Return the JSON object of members."""
    pairs = (msgspec.json.encode(name) + b":" + bytes(value) for name, value in members.items())
    return b"{" + b",".join(pairs) + b"}"


def merge_metadata(stored: bytes, others: Mapping[str, msgspec.Raw]) -> bytes:
    """Merge members into stored metadata; null removes a member."""
    if not others:
        return stored
    members = {**_members(stored), **others}
    return to_object({name: value for name, value in members.items() if bytes(value) != b"null"})


def content_of(content: str | None, value: msgspec.Raw | UnsetType) -> tuple[bytes, int] | None:
    """Return a content or a value as bytes, and its form; None without either.

    A value of null beside a content counts as absent, because some clients send every argument.
    """
    if content is not None and value is not UNSET and bytes(value) != b"null":
        raise auth_errors.invalid("value", "value: give either content or value, not both")
    if content is not None:
        text = content.encode()
        if len(text) > kinds.MAX_CONTENT_BYTES:
            raise auth_errors.too_large("content", len(text), kinds.MAX_CONTENT_BYTES)
        return text, records.TEXT
    return None if isinstance(value, UnsetType) else (bytes(value), records.JSON)


def expiry_time(metadata: Metadata, now: int) -> int | None:
    """Return the expiry in microseconds since 1970; a date lasts until its end in UTC."""
    given = metadata.known.expiry
    if not isinstance(given, str):
        return None
    field = "expiry" if "expiry" in metadata.beside else "metadata.expiry"
    ends = to_microseconds(parse_time_argument(field, given, ends_day=True))
    if ends <= now:
        raise auth_errors.invalid(field, f"{field}: {given!r} is past")
    return ends
