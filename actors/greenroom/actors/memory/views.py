"""Memories as readers get them."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from greenroom.actors.base.times import optional_datetime, to_datetime
from greenroom.actors.memory import links, records
from greenroom.actors.memory.records import PLAIN, Entry, Version
from greenroom.actors.memory.repository import MemoryRepository
from greenroom.actors.memory.values import unpack
from greenroom.actors.schemas import memory_replies as replies
from greenroom.runtime import Context, Slices

LARGE_BYTES = 1_048_576
"""A content that is larger is left out of answers with several memories."""
PREVIEW = 200
_NOTHING = b"{}"


def shown(
    repository: MemoryRepository, context: Context, entry: Entry, *, most: int | None = LARGE_BYTES
) -> Slices[replies.MemoryView]:
    """Return an entry with its newest value, unless that has more than ``most`` bytes."""
    version = context.get(records.version_key(entry.number, entry.version), Version)
    assert version is not None, "an entry has its newest version"
    return (yield from shown_version(repository, context, entry, entry.version, version, most=most))


def shown_version(
    repository: MemoryRepository,
    context: Context,
    entry: Entry,
    number: int,
    version: Version,
    *,
    most: int | None = LARGE_BYTES,
) -> Slices[replies.MemoryView]:
    """Return an entry with the value that it had at one version."""
    details = entry.details or PLAIN
    then = version.details
    form = records.JSON if then is None else then.form
    size = len(version.value) if then is None else then.size
    withheld = most is not None and size > most
    value = b"" if withheld else (yield from unpack(version.value, form, context))
    quality = repository.uses.quality(context, entry)
    return replies.MemoryView(
        memory_id=repository.memory_id(entry.number),
        id=version_id(entry, number, version),
        key=entry.key,
        namespace=repository.namespace(details.sub),
        version=number,
        created_at=to_datetime(entry.created_at),
        updated_at=to_datetime(version.stored_at),
        content=value.decode() if form & records.TEXT and not withheld else None,
        value=UNSET if form & records.TEXT or withheld else msgspec.Raw(value),
        withheld=withheld,
        kind=details.kind if then is None else then.kind,
        tags=list(details.tags if then is None else then.tags),
        importance=details.importance if then is None else then.importance,
        scope=repository.partition(entry).scope,
        author=repository.author(entry),
        updated_by=None if then is None else then.author,
        session_id=entry.session_id,
        conversation_id=details.conversation,
        position=details.position,
        metadata=UNSET if version.metadata == _NOTHING else msgspec.Raw(version.metadata),
        expires_at=optional_datetime(version.expires_at),
        size_bytes=size,
        compressed=bool(form & records.COMPRESSED),
        uses=quality.uses,
        last_used=optional_datetime(quality.last_used),
        rating=round(quality.rating, 4),
        ratings=quality.ratings,
        supersedes=_id(repository, links.superseded(repository, context, entry)),
        superseded_by=_id(repository, links.successor(repository, context, entry)),
        deleted_at=optional_datetime(details.deleted_at),
    )


def version_id(entry: Entry, number: int, version: Version) -> int:
    """Return the number of a version within its root.

    Older programs did not keep it; then it is the lowest that it can have been.
    """
    if version.details is not None:
        return version.details.update
    return entry.update if number == entry.version else entry.number + number - 1


def forgotten(repository: MemoryRepository, entry: Entry) -> replies.ForgottenMemory:
    """Return an entry as the answer to forgetting it."""
    return replies.ForgottenMemory(
        memory_id=repository.memory_id(entry.number),
        key=entry.key,
        namespace=repository.namespace(entry.sub),
        version=entry.version,
        updated_at=to_datetime(entry.updated_at),
        size_bytes=entry.value_size,
    )


def _id(repository: MemoryRepository, entry: Entry | None) -> str | None:
    return None if entry is None else repository.memory_id(entry.number)
