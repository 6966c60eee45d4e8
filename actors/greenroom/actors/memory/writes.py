"""The write path of memories: the only one by which a memory is created or gets a new version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from greenroom.actors.auth import errors as auth_errors
from greenroom.actors.auth.policy import MemoryPartition
from greenroom.actors.memory import indexing, links, records, removal, root_summary
from greenroom.actors.memory.records import Entry, EntryDetails, Quality, Version, VersionDetails
from greenroom.actors.memory.repository import MemoryRepository, StoredEntry
from greenroom.actors.memory.values import pack
from greenroom.actors.schemas.memory_types import DEFAULT_IMPORTANCE, MemoryKind
from greenroom.runtime import Context, Slices


@dataclass(slots=True, kw_only=True)
class Draft:
    """A version that is to be written.

    Attributes:
        key: Its key.
        value: The content as UTF-8, or the bytes of the JSON.
        partition: Where it is to lie.
        sub: Its namespace below the root.
        session_id: The session that it belongs to, in an agent's namespace.
        form: `JSON` or `TEXT`.
        compress: Whether a large one is compressed.
        metadata: The bytes of a JSON object.
        expires_at: When it ends, in microseconds since 1970.
        kind: What kind of memory it is.
        tags: As given.
        importance: 0 to 1.
        author: Who is said to have written the memory; None: the owner.
        by: Who is said to have written this version; None: the author.
        task_id: For which task.
        conversation: Which conversation it belongs to.
        position: Its place there.
        supersedes: The entry that it takes the place of.
        created_at: When the memory was first written, if that is given; in microseconds since 1970.
        updated_at: When this version was written, if that is given.
        plain: Whether all that an agent's plain memory has not is to be left as it was.
    """

    key: str
    value: bytes
    partition: MemoryPartition
    sub: str = ""
    session_id: str | None = None
    form: int = records.JSON
    compress: bool = False
    metadata: bytes = b"{}"
    expires_at: int | None = None
    kind: MemoryKind = "semantic"
    tags: tuple[str, ...] = ()
    importance: float = DEFAULT_IMPORTANCE
    author: str | None = None
    by: str | None = None
    task_id: str | None = None
    conversation: str | None = None
    position: int | None = None
    supersedes: StoredEntry | None = None
    created_at: int | None = None
    updated_at: int | None = None
    plain: bool = False


class WriteResult(NamedTuple):
    """What was written.

    Attributes:
        entry: The entry with its new version.
        created: Whether it is a new entry.
        stored_size: The bytes that its value takes in the store.
    """

    entry: Entry
    created: bool
    stored_size: int


def write(
    repository: MemoryRepository, context: Context, draft: Draft, stored: StoredEntry | None
) -> Slices[WriteResult]:
    """Stage a new version of ``stored``, or a new entry; the caller has checked that it may.

    Args:
        repository: The root's.
        context: The message's.
        draft: What to write.
        stored: The entry to be given a new version, which is there; None: a new one.

    Raises:
        Refusal: ``KEY_EXISTS``: it would move where another entry is; ``VALIDATION_ERROR``: it would
            supersede itself. Nothing was staged then.
    """
    packed = None
    if draft.compress:
        packed = yield from pack(draft.value, context)
    old = None if stored is None else stored.entry
    common_root = repository.root if repository.header is None else repository.header.root
    prefix = records.entry_key(draft.session_id, draft.key, draft.sub)
    where, occupant = _place(repository, context, draft, stored, prefix)
    if draft.supersedes is not None and old is not None:
        yield from links.open_ring(repository, context, old, draft.supersedes.entry)
    repository.ensure_root(context, common_root)
    update = repository.counter + 1
    partition = (
        0
        if draft.plain and (old is None or old.details is None)
        else repository.partition_number(context, draft.partition)
    )
    if occupant is not None:
        removal.clear(repository, context, StoredEntry(where, occupant))
    if stored is not None and old is not None:
        removal.unlist(repository, context, old)
        if stored.record_key != where:
            context.delete(stored.record_key)
    payload = draft.value if packed is None else packed
    entry = _entry(draft, old, context.now, update, partition, packed)
    version = _version(draft, entry, payload)
    _stage(repository, context, where, entry, version, moved=stored is None or stored.record_key != where)
    links.relink(repository, context, old, entry, is_new=draft.supersedes is not None)
    quality = Quality() if old is None else repository.uses.settle(context, old)
    if repository.indexed_to is None:
        document = yield from repository.document(context, entry, draft.value, quality)
        analysed = yield from repository.index.add(context, document)
        root_summary.note(repository, context, entry, analysed)
    repository.counter = update
    repository.publish(context)
    repository.uses.write_soon(context)
    indexing.soon(repository, context)
    return WriteResult(entry, old is None, len(payload))


def _place(
    repository: MemoryRepository, context: Context, draft: Draft, stored: StoredEntry | None, prefix: bytes
) -> tuple[bytes, Entry | None]:
    """Return where the entry goes, and what lies there that must go."""
    where = prefix
    if repository.has_several_owners:
        number = repository.known_partition(draft.partition)
        if number is None:  # nothing can lie in a partition that is new
            return repository.entry_key(prefix, repository.next_partition()), None
        where = repository.entry_key(prefix, number)
    if stored is not None and stored.record_key == where:
        return where, None
    occupant = context.get(where, Entry)
    if occupant is not None and stored is not None and records.is_there(occupant, context.now):
        raise auth_errors.invalid(
            "scope", f"scope: there is another memory {draft.key!r} of that scope; forget it first"
        )
    return where, occupant


def _entry(
    draft: Draft, old: Entry | None, now: int, update: int, partition: int, packed: bytes | None
) -> Entry:
    details = None if old is None else old.details
    if not draft.plain:
        details = EntryDetails(
            partition=partition,
            sub=draft.sub,
            kind=draft.kind,
            tags=draft.tags,
            importance=draft.importance,
            author=draft.author,
            conversation=draft.conversation,
            position=draft.position,
            supersedes=None if details is None else details.supersedes,
            superseded_by=None if details is None else details.superseded_by,
            form=draft.form | (0 if packed is None else records.COMPRESSED),
            stored_size=len(draft.value if packed is None else packed),
        )
        if draft.supersedes is not None:
            details = msgspec.structs.replace(details, supersedes=draft.supersedes.entry.number)
    elif details is not None:
        details = msgspec.structs.replace(details, form=records.JSON, stored_size=len(draft.value))
    created = now if draft.created_at is None else draft.created_at
    return Entry(
        key=draft.key,
        session_id=draft.session_id,
        number=update if old is None else old.number,
        update=update,
        version=1 if old is None else old.version + 1,
        created_at=created if old is None else old.created_at,
        updated_at=now if draft.updated_at is None else draft.updated_at,
        expires_at=draft.expires_at,
        value_size=len(draft.value),
        details=details,
    )


def _version(draft: Draft, entry: Entry, payload: bytes) -> Version:
    details = None
    if entry.details is not None:
        details = VersionDetails(
            update=entry.update,
            form=entry.details.form,
            size=entry.value_size,
            author=draft.by,
            task_id=draft.task_id,
            kind=entry.details.kind,
            tags=entry.details.tags,
            importance=entry.details.importance,
        )
    return Version(entry.updated_at, draft.expires_at, draft.metadata, payload, details)


def _stage(
    repository: MemoryRepository,
    context: Context,
    where: bytes,
    entry: Entry,
    version: Version,
    *,
    moved: bool,
) -> None:
    context.put(records.version_key(entry.number, entry.version), version)
    context.put(where, entry)
    for key in records.order_keys(entry):
        context.put(key, where)
    if moved:
        context.put(records.id_key(repository.tail(entry.number)), where)
    if entry.expires_at is not None:
        context.put(records.expiry_key(entry.expires_at, entry.number, entry.version), where)
        removal.sweep_by(repository, context, entry.expires_at)
