"""Exporting: the memories that a reader may see, as lines, in the order of their creation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET

from greenroom.actors.auth import namespaces as names
from greenroom.actors.auth import policy
from greenroom.actors.base.times import optional_datetime, to_datetime
from greenroom.actors.memory import links, records
from greenroom.actors.memory import upgrade as upgrading
from greenroom.actors.memory.filters import Filter
from greenroom.actors.memory.records import PLAIN, Entry
from greenroom.actors.schemas import transfer as requests
from greenroom.actors.schemas.memory_replies import MemoryFilters
from greenroom.actors.schemas.memory_types import DEFAULT_IMPORTANCE
from greenroom.actors.schemas.transfer import MemoryLine

if TYPE_CHECKING:
    from greenroom.actors.memory.repository import Keeper
    from greenroom.runtime import Context, Slices

ALL = MemoryFilters(superseded=True)
"""Also what a later memory hides: the link goes with it."""
_NO_METADATA = b"{}"
_MAX_KEY = 255
_encode = msgspec.json.Encoder().encode


def page(keeper: Keeper, request: requests.ExportPage, context: Context) -> Slices[requests.ExportedPage]:
    """Answer the next memories; each is in one page only, whatever is written meanwhile."""
    yield from upgrading.finish(keeper, context)
    fits = Filter(keeper, context, request.filters or ALL, request.namespace).fits
    lines: list[msgspec.Raw] = []
    size = last = 0
    start = records.versions_prefix(request.start)
    for key, _ in context.scan(msgspec.Raw, prefix=records.versions_prefix(0)[:1], start=start):
        number = int.from_bytes(key[1:9])
        if number == last:  # an older version of the same one
            continue
        if size >= request.limit_bytes:
            return requests.ExportedPage(lines=lines, next=number)
        last = number
        held = keeper.numbered(context, number)
        if held is not None and fits(held.entry):
            line = yield from _line(keeper, context, held.entry)
            lines.append(msgspec.Raw(line))
            size += len(line)
        if context.slice_over():
            yield
    return requests.ExportedPage(lines=lines, next=None)


def _line(keeper: Keeper, context: Context, entry: Entry) -> Slices[bytes]:
    more = entry.more or PLAIN
    value, version = yield from keeper.value(context, entry)
    is_text = bool(more.form & records.TEXT)
    replaced = links.superseded(keeper, context, entry)
    if replaced is not None and (replaced.sub, replaced.session_id) != (entry.sub, entry.session_id):
        replaced = None  # a line names by the key alone, so it has to be in the same place
    return _encode(
        MemoryLine(
            key=_key(keeper, context, entry),
            content=value.decode() if is_text else None,
            value=UNSET if is_text else msgspec.Raw(value),
            namespace=keeper.namespace(more.sub),
            created_at=to_datetime(entry.created_at),
            updated_at=None if entry.updated_at == entry.created_at else to_datetime(entry.updated_at),
            created_by=keeper.author(entry) or None,
            conversation_id=more.conversation,
            position=more.position,
            tags=list(more.tags),
            kind=more.kind,
            # The very object that is the default, which alone is left out.
            importance=DEFAULT_IMPORTANCE if more.importance == DEFAULT_IMPORTANCE else more.importance,
            scope=keeper.shelf(entry).scope,
            expires_at=optional_datetime(entry.expires_at),
            metadata=UNSET if version.metadata == _NO_METADATA else msgspec.Raw(version.metadata),
            supersedes=None if replaced is None else _key(keeper, context, replaced),
            session_id=entry.session_id,
        )
    )


def _key(keeper: Keeper, context: Context, entry: Entry) -> str:
    """Return an entry's key; with its owner's name if others of this key would come into its place."""
    if not keeper.has_several_owners:
        return entry.key
    shelf = keeper.shelf(entry)
    prefix = records.entry_key(entry.session_id, entry.key, entry.sub)
    for held in keeper.places(context, prefix):
        other = keeper.shelf(held.entry)
        if (
            held.entry.number < entry.number
            and other.scope == shelf.scope
            and records.is_there(held.entry, context.now)
            and policy.may_see_memory(context.principal, other)
        ):
            owner = names.segment(shelf.agent or shelf.user or "").replace(":", ".")
            return f"{entry.key[: _MAX_KEY - len(owner) - 1]}~{owner}"
    return entry.key
