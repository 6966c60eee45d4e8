"""Reading one memory: its newest version, an older one, or the list of its versions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET

from greenroom.actors.auth import errors as auth_errors
from greenroom.actors.base import budget, cursor
from greenroom.actors.base.times import optional_datetime, to_datetime
from greenroom.actors.memory import records
from greenroom.actors.memory import upgrade as upgrading
from greenroom.actors.memory.records import Version
from greenroom.actors.memory.repository import Held, Keeper
from greenroom.actors.memory.store_requests import named
from greenroom.actors.memory.views import shown_version, version_id
from greenroom.actors.schemas import memories as requests
from greenroom.actors.schemas import memory_replies as replies
from greenroom.actors.schemas.replies import MemoryRead
from greenroom.actors.schemas.types import no_fields

if TYPE_CHECKING:
    from greenroom.actors.schemas.keyvalue import GetMemory
    from greenroom.runtime import Context, Slices


def read(keeper: Keeper, request: requests.ReadMemory, context: Context) -> Slices[replies.MemoryShown]:
    """Answer a memory whole, however large it is."""
    yield from upgrading.finish(keeper, context)
    held = named(keeper, context, request.memory_id, request.key, request.namespace)
    entry = held.entry
    number = request.version or entry.version
    version = None
    if number <= entry.version:
        version = context.get(records.version_key(entry.number, number), Version)
    if version is None or not records.is_live(version.expires_at, context.now):
        where = None if request.key is None else request.namespace or keeper.root
        raise auth_errors.no_memory(request.memory_id or request.key, where=where)
    keeper.uses.note(entry, context.now)
    keeper.uses.write_soon(context)
    return replies.MemoryShown(
        memory=(yield from shown_version(keeper, context, entry, number, version, most=None))
    )


def value(keeper: Keeper, request: GetMemory, context: Context) -> Slices[MemoryRead]:
    """Answer a memory of a namespace in the form of an agent's key-value memory."""
    if request.session_id is not None:
        raise auth_errors.invalid("namespace", "namespace: give either namespace or session_id, not both")
    named_so = requests.ReadMemory(key=request.key, namespace=request.namespace, version=request.version)
    memory = (yield from read(keeper, named_so, context)).memory
    content = memory.value
    return MemoryRead(
        key=memory.key,
        value=msgspec.Raw(msgspec.json.encode(memory.content)) if content is UNSET else content,
        metadata=no_fields() if memory.metadata is UNSET else memory.metadata,
        created_at=memory.created_at,
        updated_at=memory.updated_at,
        expires_at=memory.expires_at,
        scope=records.scope_name(None),
        version=memory.version,
        namespace=memory.namespace,
    )


def versions(
    keeper: Keeper, request: requests.ListVersions, context: Context
) -> Slices[replies.MemoryVersions]:
    """Answer a page of versions, oldest first; of a key, also those of what was forgotten under it."""
    yield from upgrading.finish(keeper, context)
    if (request.memory_id is None) == (request.key is None):
        raise auth_errors.invalid("memory_id", "memory_id: give either memory_id or key")
    binding = f"versions {request.memory_id} {request.namespace} {request.key}"
    after = b"" if request.cursor is None else cursor.decode(request.cursor, binding)
    entries = sorted(_entries(keeper, request, context), key=lambda held: held.entry.number)
    found: list[replies.VersionView] = []
    positions: list[bytes] = []
    has_more = False
    for held in entries:
        for position, version in _versions(context, held, after):
            if len(found) == request.limit:
                has_more = True
                break
            found.append(_version(keeper, held, int.from_bytes(position[8:]), version))
            positions.append(position)
            if context.slice_over():
                yield
        if has_more:
            break
    if not found:
        raise keeper.not_found(context, request.memory_id, request.key, request.namespace)
    kept = budget.cut(
        found, request.max_tokens, lambda each: {"memory_id": each.memory_id, "version": each.version}
    )
    has_more = has_more or kept.passed < len(found)
    return replies.MemoryVersions(
        versions=kept.kept,
        count=len(kept.kept),
        next_cursor=cursor.encode(positions[kept.passed - 1], binding) if has_more else None,
        left_out=kept.left_out,
        over_budget=kept.over_budget,
    )


def _entries(keeper: Keeper, request: requests.ListVersions, context: Context) -> list[Held]:
    if request.memory_id is not None:
        held = keeper.find_id(context, request.memory_id, forgotten=True)
        return [] if held is None else [held]
    assert request.key is not None, "one of both was given"
    prefix = records.entry_key(None, request.key, keeper.sub(request.namespace))
    return [
        held
        for held in keeper.places(context, prefix)
        if records.is_live(held.entry.expires_at, context.now)
        and keeper.may_see(context.principal, held.entry)
    ]


def _versions(context: Context, held: Held, after: bytes) -> Iterator[tuple[bytes, Version]]:
    """Yield an entry's versions that have not expired, each with its entry's number and its own as bytes."""
    prefix = records.versions_prefix(held.entry.number)
    start = prefix
    if after[:8] > held.entry.number.to_bytes(8):
        return
    if after[:8] == held.entry.number.to_bytes(8):
        start = prefix + (int.from_bytes(after[8:]) + 1).to_bytes(8)
    for key, version in context.scan(Version, prefix=prefix, start=start):
        if records.is_live(version.expires_at, context.now):
            yield key[1:], version


def _version(keeper: Keeper, held: Held, number: int, version: Version) -> replies.VersionView:
    more = version.more
    return replies.VersionView(
        memory_id=keeper.memory_id(held.entry.number),
        id=version_id(held.entry, number, version),
        version=number,
        author=keeper.author(held.entry) if more is None else more.author,
        stored_at=to_datetime(version.stored_at),
        expires_at=optional_datetime(version.expires_at),
        size_bytes=len(version.value) if more is None else more.size,
        deleted_at=optional_datetime(held.entry.deleted_at),
        task_id=None if more is None else more.task_id,
    )
