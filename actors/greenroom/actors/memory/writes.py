"""Writing: the one way in which a memory comes to be or gets a new version, whoever asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from greenroom.actors.auth import errors as auth_errors
from greenroom.actors.memory import _gist as gist
from greenroom.actors.memory import links, records
from greenroom.actors.memory import removal as removing
from greenroom.actors.memory import upgrade as upgrading
from greenroom.actors.memory.records import Entry, More, Quality, Version, VersionMore
from greenroom.actors.memory.repository import Held, Keeper
from greenroom.actors.memory.values import pack
from greenroom.actors.schemas.memory_types import DEFAULT_IMPORTANCE, MemoryKind

if TYPE_CHECKING:
    from greenroom.actors.auth.policy import MemoryShelf
    from greenroom.runtime import Context, Slices


@dataclass(slots=True, kw_only=True)
class Draft:
    """A version that is to be written.

    Attributes:
        key: Its key.
        value: The content as UTF-8, or the bytes of the JSON.
        shelf: Where it is to lie.
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
    shelf: MemoryShelf
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
    supersedes: Held | None = None
    created_at: int | None = None
    updated_at: int | None = None
    plain: bool = False


class Written(NamedTuple):
    """What was written.

    Attributes:
        entry: The entry with its new version.
        created: Whether it is a new entry.
        stored_size: The bytes that its value takes in the store.
    """

    entry: Entry
    created: bool
    stored_size: int


def write(keeper: Keeper, context: Context, draft: Draft, held: Held | None) -> Slices[Written]:
    """Stage a new version of ``held``, or a new entry; the caller has checked that it may.

    Args:
        keeper: The root's.
        context: The message's.
        draft: What to write.
        held: The entry to be given a new version, which is there; None: a new one.

    Raises:
        Refusal: ``KEY_EXISTS``: it would move where another entry is; ``VALIDATION_ERROR``: it would
            supersede itself. Nothing was staged then.
    """
    packed = None
    if draft.compress:
        packed = yield from pack(draft.value, context)
    old = None if held is None else held.entry
    common_root = keeper.root if keeper.common is None else keeper.common.root
    prefix = records.entry_key(draft.session_id, draft.key, draft.sub)
    where, occupant = _place(keeper, context, draft, held, prefix)
    if draft.supersedes is not None and old is not None:
        yield from links.open_ring(keeper, context, old, draft.supersedes.entry)
    keeper.begin(context, common_root)
    update = keeper.counter + 1
    shelf = (
        0 if draft.plain and (old is None or old.more is None) else keeper.shelf_number(context, draft.shelf)
    )
    if occupant is not None:
        removing.clear(keeper, context, Held(where, occupant))
    if held is not None and old is not None:
        removing.unlist(keeper, context, old)
        if held.where != where:
            context.delete(held.where)
    stored = draft.value if packed is None else packed
    entry = _entry(draft, old, context.now, update, shelf, packed)
    version = _version(draft, entry, stored)
    _stage(keeper, context, where, entry, version, moved=held is None or held.where != where)
    links.relink(keeper, context, old, entry, is_new=draft.supersedes is not None)
    quality = Quality() if old is None else keeper.uses.settle(context, old)
    if keeper.indexed_to is None:
        document = yield from keeper.document(context, entry, draft.value, quality)
        analysed = yield from keeper.index.add(context, document)
        gist.note(keeper, context, entry, analysed)
    keeper.counter = update
    keeper.publish(context)
    keeper.uses.write_soon(context)
    upgrading.soon(keeper, context)
    return Written(entry, old is None, len(stored))


def _place(
    keeper: Keeper, context: Context, draft: Draft, held: Held | None, prefix: bytes
) -> tuple[bytes, Entry | None]:
    """Return where the entry goes, and what lies there that must go."""
    where = prefix
    if keeper.has_several_owners:
        number = keeper.known_shelf(draft.shelf)
        if number is None:  # nothing can lie on a shelf that is new
            return keeper.place(prefix, keeper.next_shelf()), None
        where = keeper.place(prefix, number)
    if held is not None and held.where == where:
        return where, None
    occupant = context.get(where, Entry)
    if occupant is not None and held is not None and records.is_there(occupant, context.now):
        raise auth_errors.invalid(
            "scope", f"scope: there is another memory {draft.key!r} of that scope; forget it first"
        )
    return where, occupant


def _entry(draft: Draft, old: Entry | None, now: int, update: int, shelf: int, packed: bytes | None) -> Entry:
    more = None if old is None else old.more
    if not draft.plain:
        more = More(
            shelf=shelf,
            sub=draft.sub,
            kind=draft.kind,
            tags=draft.tags,
            importance=draft.importance,
            author=draft.author,
            conversation=draft.conversation,
            position=draft.position,
            supersedes=None if more is None else more.supersedes,
            superseded_by=None if more is None else more.superseded_by,
            form=draft.form | (0 if packed is None else records.COMPRESSED),
            stored_size=len(draft.value if packed is None else packed),
        )
        if draft.supersedes is not None:
            more = msgspec.structs.replace(more, supersedes=draft.supersedes.entry.number)
    elif more is not None:
        more = msgspec.structs.replace(more, form=records.JSON, stored_size=len(draft.value))
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
        more=more,
    )


def _version(draft: Draft, entry: Entry, stored: bytes) -> Version:
    more = None
    if entry.more is not None:
        more = VersionMore(
            update=entry.update,
            form=entry.more.form,
            size=entry.value_size,
            author=draft.by,
            task_id=draft.task_id,
            kind=entry.more.kind,
            tags=entry.more.tags,
            importance=entry.more.importance,
        )
    return Version(entry.updated_at, draft.expires_at, draft.metadata, stored, more)


def _stage(
    keeper: Keeper, context: Context, where: bytes, entry: Entry, version: Version, *, moved: bool
) -> None:
    context.put(records.version_key(entry.number, entry.version), version)
    context.put(where, entry)
    for key in records.order_keys(entry):
        context.put(key, where)
    if moved:
        context.put(records.id_key(keeper.tail(entry.number)), where)
    if entry.expires_at is not None:
        context.put(records.expiry_key(entry.expires_at, entry.number, entry.version), where)
        removing.sweep_by(keeper, context, entry.expires_at)
