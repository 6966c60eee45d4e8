"""Storing and updating memories, for the memory layer's tools and for the memory service."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET

from greenroom.actors.audit import record as audit_record
from greenroom.actors.auth import errors as auth_errors
from greenroom.actors.auth import policy
from greenroom.actors.base.times import optional_datetime, to_datetime
from greenroom.actors.base.token_estimate import tokens_of_size
from greenroom.actors.memory import drafts as drafting
from greenroom.actors.memory import embedding, records
from greenroom.actors.memory import near_duplicates as similar
from greenroom.actors.memory import upgrade as upgrading
from greenroom.actors.memory.records import PLAIN
from greenroom.actors.memory.repository import Held, Keeper
from greenroom.actors.memory.writes import Draft, Written, write
from greenroom.actors.schemas import memories as requests
from greenroom.actors.schemas import memory_replies as replies
from greenroom.actors.schemas import memory_types as kinds
from greenroom.actors.schemas.memory_types import DEFAULT_IMPORTANCE

if TYPE_CHECKING:
    from greenroom.runtime import Context, Slices


def store(keeper: Keeper, request: requests.StoreMemory, context: Context) -> Slices[replies.MemorySaved]:
    """Store a memory, or a new version of the one that has the key."""
    namespace = request.namespace or keeper.root
    keeper.name_root(namespace)
    policy.check_writes_namespace(context.principal, namespace)
    given = drafting.content_of(request.content, request.value)
    if given is None:
        raise auth_errors.invalid("content", "content: it is required, or a value in its place")
    metadata = drafting.read_metadata(request)
    known, others = metadata.known, metadata.others
    expires_at = drafting.expiry_time(metadata, context.now)
    yield from upgrading.finish(keeper, context)
    key = request.key or drafting.made_up_key(context.random.randbytes(8))
    held = keeper.find(context, keeper.sub(namespace), None, key)
    check_version(keeper, namespace, key, held, request.expected_version)
    shelf = policy.memory_shelf(context.principal, namespace, known.scope or None)
    if held is not None:
        old = keeper.shelf(held.entry)
        shelf = policy.moved_shelf(old, context.principal, namespace, known.scope or old.scope)
    writer = request.author or context.principal.agent_id
    draft = Draft(
        key=key,
        sub=keeper.sub(namespace),
        value=given[0],
        form=given[1],
        compress=request.compress,
        metadata=drafting.joined(others),
        shelf=shelf,
        expires_at=expires_at,
        kind=request.kind or "semantic",
        tags=tuple(known.tags or ()),
        importance=_importance(known.importance, DEFAULT_IMPORTANCE),
        author=writer if held is None else keeper.author(held.entry),
        by=writer,
        conversation=request.conversation_id,
        position=request.position,
        supersedes=superseded(keeper, context, request.supersedes),
    )
    return (yield from _saved(keeper, context, draft, held, "store_memory"))


def update(keeper: Keeper, request: requests.UpdateMemory, context: Context) -> Slices[replies.MemorySaved]:
    """Store a new version: what is not given stays as it is; members of the metadata replace its own."""
    given = drafting.content_of(request.content, request.value)
    metadata = drafting.read_metadata(request)
    known, others = metadata.known, metadata.others
    if given is None and request.kind is request.supersedes is None and drafting.changes_nothing(metadata):
        raise auth_errors.invalid(
            "content",
            "content: nothing to change is given; give content, value, metadata, "
            f"{', '.join(kinds.KNOWN)}, kind or supersedes",
        )
    expires_at = drafting.expiry_time(metadata, context.now)
    yield from upgrading.finish(keeper, context)
    held = named(keeper, context, request.memory_id, request.key, request.namespace)
    entry = held.entry
    namespace = keeper.namespace(entry.sub)
    policy.check_writes_namespace(context.principal, namespace)
    check_version(keeper, namespace, entry.key, held, request.expected_version)
    old = keeper.shelf(entry)
    shelf = policy.moved_shelf(old, context.principal, namespace, known.scope or old.scope)
    supersedes = superseded(keeper, context, request.supersedes)
    value, version = yield from keeper.value(context, entry)
    more = entry.more or PLAIN
    draft = Draft(
        key=entry.key,
        sub=more.sub,
        session_id=entry.session_id,
        value=value if given is None else given[0],
        form=more.form & records.TEXT if given is None else given[1],
        compress=request.compress if given is not None else bool(more.form & records.COMPRESSED),
        metadata=drafting.merged(version.metadata, others),
        shelf=shelf,
        expires_at=entry.expires_at if known.expiry is UNSET else expires_at,
        kind=request.kind or more.kind,
        tags=more.tags if known.tags is UNSET else tuple(known.tags or ()),
        importance=_importance(known.importance, more.importance),
        author=more.author,
        by=context.principal.agent_id,
        conversation=more.conversation,
        position=more.position,
        supersedes=supersedes,
    )
    return (yield from _saved(keeper, context, draft, held, "update_memory"))


def add(keeper: Keeper, request: requests.AddMemory, context: Context) -> Slices[replies.MemorySaved]:
    """Store the first version of a memory, for the memory service."""
    policy.check_writes_namespace(context.principal, request.namespace)
    keeper.name_root(request.namespace)
    yield from upgrading.finish(keeper, context)
    sub = keeper.sub(request.namespace)
    if keeper.find(context, sub, None, request.key) is not None:
        raise auth_errors.memory_exists(request.key, request.namespace)
    draft = Draft(
        key=request.key,
        sub=sub,
        value=bytes(request.value),
        metadata=bytes(request.metadata),
        shelf=policy.memory_shelf(context.principal, request.namespace),
        kind=request.memory_type,
        author=request.created_by,
        by=request.created_by,
        task_id=request.task_id,
    )
    return (yield from _saved(keeper, context, draft, None, "add_memory"))


def revise(keeper: Keeper, request: requests.ReviseMemory, context: Context) -> Slices[replies.MemorySaved]:
    """Store the next version of a memory's value, for the memory service."""
    policy.check_writes_namespace(context.principal, request.namespace)
    yield from upgrading.finish(keeper, context)
    held = keeper.find(context, keeper.sub(request.namespace), None, request.key)
    check_version(keeper, request.namespace, request.key, held, request.expected_version)
    if held is None:
        raise keeper.not_found(context, None, request.key, request.namespace)
    _, version = yield from keeper.value(context, held.entry)
    more = held.entry.more or PLAIN
    draft = Draft(
        key=request.key,
        sub=more.sub,
        value=bytes(request.value),
        metadata=version.metadata,
        shelf=keeper.shelf(held.entry),
        expires_at=held.entry.expires_at,
        kind=more.kind,
        tags=more.tags,
        importance=more.importance,
        author=more.author,
        by=request.updated_by,
        task_id=request.task_id,
        conversation=more.conversation,
        position=more.position,
    )
    return (yield from _saved(keeper, context, draft, held, "update_memory"))


def named(
    keeper: Keeper, context: Context, memory_id: str | None, key: str | None, namespace: str | None
) -> Held:
    """Return the one memory that an id or a key names.

    Raises:
        Refusal: ``MEMORY_NOT_FOUND``; ``VALIDATION_ERROR``: neither or both were given.
    """
    if (memory_id is None) == (key is None):
        raise auth_errors.invalid("memory_id", "memory_id: give either memory_id or key")
    if memory_id is not None:
        held = keeper.find_id(context, memory_id)
    else:
        assert key is not None, "one of both was given"
        held = keeper.find(context, keeper.sub(namespace), None, key)
    if held is None:
        raise keeper.not_found(context, memory_id, key, namespace)
    return held


def superseded(keeper: Keeper, context: Context, memory_id: str | None) -> Held | None:
    """Return the memory that a new one is to take the place of.

    Raises:
        Refusal: ``MEMORY_NOT_FOUND``: the caller sees none with this id here.
    """
    if memory_id is None:
        return None
    held = keeper.find_id(context, memory_id)
    if held is None:
        hidden = keeper.hides(context, memory_id, None)
        raise auth_errors.no_memory(memory_id, where=keeper.root, hidden=hidden)
    return held


def check_version(keeper: Keeper, namespace: str, key: str, held: Held | None, expected: int | None) -> None:
    """Check the version that a caller expects; 0 stands for no memory.

    Raises:
        Refusal: ``VERSION_CONFLICT`` with the current version.
    """
    current = 0 if held is None else held.entry.version
    if expected is None or expected == current:
        return
    details = {}
    if held is not None:
        updated_at = to_datetime(held.entry.updated_at).isoformat().replace("+00:00", "Z")
        details = {"memory_id": keeper.memory_id(held.entry.number), "updated_at": updated_at}
    raise auth_errors.version_conflict(key, namespace, expected, current, **details)


def _saved(
    keeper: Keeper, context: Context, draft: Draft, held: Held | None, action: str
) -> Slices[replies.MemorySaved]:
    written = yield from write(keeper, context, draft, held)
    alike = yield from similar.near(keeper, context, written.entry, draft)
    entry = written.entry
    text = embedding.embedded(draft.value, draft.form, keeper.author(entry))
    yield from embedding.attend(keeper, context, [(entry.update, text)])
    audit_record.record(
        context,
        action,
        entry.session_id,
        namespace=keeper.namespace(entry.sub),
        key=entry.key,
        version=entry.version,
        value_size=entry.value_size,
        task_id=draft.task_id,
    )
    return _reply(keeper, context, draft, written, alike)


def _reply(
    keeper: Keeper,
    context: Context,
    draft: Draft,
    written: Written,
    alike: list[replies.SimilarMemory],
) -> replies.MemorySaved:
    entry, size = written.entry, written.entry.value_size
    more = entry.more or PLAIN
    return replies.MemorySaved(
        memory_id=keeper.memory_id(entry.number),
        id=entry.update,
        key=entry.key,
        namespace=keeper.namespace(more.sub),
        version=entry.version,
        created=written.created,
        stored_at=to_datetime(context.now),
        expires_at=optional_datetime(entry.expires_at),
        size_bytes=size,
        compressed=bool(more.form & records.COMPRESSED),
        compression_ratio=round(size / max(1, written.stored_size), 2),
        tokens=tokens_of_size(size),
        tokens_saved=tokens_of_size(size) - tokens_of_size(written.stored_size),
        similar=alike,
        supersedes=None if draft.supersedes is None else keeper.memory_id(draft.supersedes.entry.number),
    )


def _importance(given: float | msgspec.UnsetType | None, otherwise: float) -> float:
    return given if isinstance(given, float) else otherwise
