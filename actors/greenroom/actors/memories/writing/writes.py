"""The write path: the only place that creates a memory or adds a version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.policy import MemoryPartition
from greenroom.actors.core.replies.memory_types import DEFAULT_IMPORTANCE, MemoryKind
from greenroom.actors.memories.storage import indexing, links, records
from greenroom.actors.memories.storage.records import Entry, EntryDetails, Quality, Version, VersionDetails
from greenroom.actors.memories.storage.repository import MemoryRepository, StoredEntry
from greenroom.actors.memories.storage.values import pack
from greenroom.actors.memories.writing import removal
from greenroom.runtime import Context, Slices


@dataclass(slots=True, kw_only=True)
class Draft:
    """A version to write.

    Attributes:
        value: The content as UTF-8, or the bytes of the JSON.
        sub: The namespace below the root.
        session_id: The session that it belongs to, in an agent's namespace.
        form: `JSON` or `TEXT`.
        compress: Whether a large value is compressed.
        metadata: The bytes of a JSON object.
        author: The author of the memory according to the caller; None for the owner.
        by: The author of this version according to the caller; None for the author.
        imported: The author of this version according to its source, which is only recorded.
        reattributes: Whether this version's author and source replace the memory's author and source.
        supersedes: The entry that it supersedes; None keeps the link of the previous version.
        releases: Whether it ends the link, so that it supersedes nothing.
        created_at: The time of creation, if it is not now. All times are in microseconds since 1970.
        updated_at: The time of this version, if it is not now.
        unreviewed: Whether a rule made it and no person has reviewed it; None keeps the previous value.
        plain: Whether fields that a plain key-value memory lacks keep their values.
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
    imported: str | None = None
    reattributes: bool = False
    task_id: str | None = None
    conversation: str | None = None
    position: int | None = None
    supersedes: StoredEntry | None = None
    releases: bool = False
    created_at: int | None = None
    updated_at: int | None = None
    unreviewed: bool | None = None
    plain: bool = False


class WriteResult(NamedTuple):
    """The entry with its new version, and whether it is a new entry."""

    entry: Entry
    created: bool


class _Place(NamedTuple):
    """The record key of an entry, and the dead entry there that must be removed.

    ``is_new`` says whether the place differs from the previous version's place.
    """

    where: bytes
    occupant: Entry | None = None
    is_new: bool = True


def write(
    repository: MemoryRepository, context: Context, draft: Draft, stored: StoredEntry | None
) -> Slices[WriteResult]:
    """Stage a new version of ``stored``, or a new entry; the rights were checked before.

    The order matters:

    1. First all checks that may refuse, while nothing is staged: place, ring of supersessions, root's name.
    2. Then the numbers, because the header has the numbers of the partitions.
    3. The old rows are deleted before new rows are put, since both may have the same keys.
    4. The entry comes before its link, because the code for links finds the hidden memory by rows, too.
    5. The counter of its uses comes before the index, which ranks by it.
    6. The root's counter comes last: until then the number is unused.

    Raises:
        Refusal: ``KEY_EXISTS``: the place has a memory that the caller may not see. ``VALIDATION_ERROR``: it
            would move to another entry's place, or supersede itself.
    """
    old = None if stored is None else stored.entry
    packed = (yield from pack(draft.value)) if draft.compress else None
    place = _place(repository, context, draft, stored)
    if draft.supersedes is not None and old is not None:
        yield from links.break_ring(repository, context, old, draft.supersedes.entry)
    repository.ensure_root(context, repository.root)
    update = repository.counter + 1
    details = _details(repository, context, draft, old, packed)
    if old is not None:
        links.record_supersession(context, old, details)
    _make_room(repository, context, stored, place)
    version = _next_version(repository, context, draft, stored, place)
    entry = _entry(draft, old, version, context.now, update, details)
    payload = draft.value if packed is None else packed
    _stage(repository, context, place, entry, _version(draft, entry, payload))
    links.relink(repository, context, old, entry, is_new=draft.supersedes is not None)
    quality = Quality() if old is None else repository.uses.settle(context, old)
    if repository.indexed_to is None:
        document = yield from repository.document(entry, draft.value, quality)
        yield from repository.index.add(context, document)
    repository.counter = update
    repository.publish(context, entry)
    repository.uses.write_soon(context)
    indexing.schedule(repository, context)
    return WriteResult(entry, old is None)


def _place(
    repository: MemoryRepository, context: Context, draft: Draft, stored: StoredEntry | None
) -> _Place:
    places = repository.places(draft.session_id, draft.key, draft.sub, draft.partition)
    occupants = {where: context.get(where, Entry) for where in places}
    stays = stored is not None and stored.record_key in places
    if stored is None or not (stays and stored.entry.deleted_at is None):
        for where, occupant in occupants.items():
            if occupant is None or not records.is_there(occupant, context.now):
                continue
            if stored is None:  # the caller may not see it, so it must not replace it
                raise auth_errors.hidden_memory_exists(draft.key)
            if where != stored.record_key:
                raise auth_errors.invalid(
                    "scope", f"scope: there is another memory {occupant.key!r} of that scope; forget it first"
                )
    if stored is not None and stays:
        return _Place(stored.record_key, is_new=False)
    return _Place(places[0], occupants[places[0]])


def _make_room(
    repository: MemoryRepository, context: Context, stored: StoredEntry | None, place: _Place
) -> None:
    """Stage the removal of the place's dead entry, and of the old rows."""
    if place.occupant is not None:
        removal.clear(repository, context, StoredEntry(place.where, place.occupant))
    if stored is not None:
        removal.unlist(repository, context, stored.entry)
        if place.is_new:
            repository.note_end(context, stored.entry)
            context.delete(stored.record_key)


def _details(
    repository: MemoryRepository, context: Context, draft: Draft, old: Entry | None, packed: bytes | None
) -> EntryDetails | None:
    before = None if old is None else old.details
    if draft.plain:
        return before and msgspec.structs.replace(before, form=records.JSON, stored_size=len(draft.value))
    links = before or records.PLAIN
    superseded = None if draft.releases else links.supersedes
    by_owner = context.principal is not None and policy.owns_memory(context.principal, draft.partition)
    details = EntryDetails(
        partition=repository.partition_number(context, draft.partition),
        sub=draft.sub,
        kind=draft.kind,
        tags=draft.tags,
        importance=draft.importance,
        author=draft.author,
        conversation=draft.conversation,
        position=draft.position,
        supersedes=superseded if draft.supersedes is None else draft.supersedes.entry.number,
        superseded_by=links.superseded_by,
        form=draft.form | (0 if packed is None else records.COMPRESSED),
        stored_size=len(draft.value if packed is None else packed),
        by_owner=by_owner,
        imported=draft.imported if old is None or draft.reattributes else links.imported,
        unreviewed=links.unreviewed if draft.unreviewed is None else draft.unreviewed,
        is_dated=links.is_dated or draft.created_at is not None,
    )
    is_changed = old is not None and not by_owner and _has_owner_of(repository, old, draft)
    return _note_change(context, details, old) if old is not None and is_changed else details


def _has_owner_of(repository: MemoryRepository, old: Entry, draft: Draft) -> bool:
    before, now = repository.partition(old), draft.partition
    return (before.user, before.agent) == (now.user, now.agent)


def _note_change(context: Context, details: EntryDetails, old: Entry) -> EntryDetails:
    """Note the owner's last version, and who wrote a newer one in its place."""
    before, by = old.details or records.PLAIN, context.principal
    return msgspec.structs.replace(
        details,
        own_version=old.version if before.by_owner else before.own_version,
        changed_by=None if by is None else by.user or by.agent_id,
    )


def _next_version(
    repository: MemoryRepository, context: Context, draft: Draft, stored: StoredEntry | None, place: _Place
) -> int:
    """Return the next version number, which the key never had before."""
    last = 0 if stored is None else stored.entry.version
    if place.is_new or (stored is not None and stored.entry.deleted_at is not None):
        keys = records.entry_keys(draft.session_id, draft.key, draft.sub)
        occupied = 0 if place.occupant is None else place.occupant.version
        last = max(last, occupied, repository.ended_version(context, keys))
    return last + 1


def _entry(
    draft: Draft, old: Entry | None, version: int, now: int, update: int, details: EntryDetails | None
) -> Entry:
    created = now if draft.created_at is None else draft.created_at
    return Entry(
        key=draft.key,
        session_id=draft.session_id,
        number=update if old is None else old.number,
        update=update,
        version=version,
        created_at=created if old is None else old.created_at,
        updated_at=now if draft.updated_at is None else draft.updated_at,
        expires_at=draft.expires_at,
        value_size=len(draft.value),
        details=details,
        skipped=version - 1 - (0 if old is None else old.versions),
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
            unreviewed=entry.details.unreviewed,
            supersedes=entry.details.supersedes or records.NOTHING,
            imported=draft.imported,
        )
    return Version(entry.updated_at, draft.expires_at, draft.metadata, payload, details)


def _stage(
    repository: MemoryRepository, context: Context, place: _Place, entry: Entry, version: Version
) -> None:
    where = place.where
    context.put(records.version_key(entry.number, entry.version), version)
    context.put(where, entry)
    for key in records.order_keys(entry):
        context.put(key, where)
    if place.is_new:
        context.put(records.id_key(repository.tail(entry.number)), where)
    if entry.expires_at is not None:
        repository.note_end(context, entry)  # it ends at its expiry, before any sweep
        context.put(records.expiry_key(entry.expires_at, entry.number, entry.version), where)
        removal.sweep_by(repository, context, entry.expires_at)
