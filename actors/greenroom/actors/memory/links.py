"""Which memory takes the place of which.

A memory hides what it supersedes from all who see it, and as long as it is there. So nothing has to be
done when it expires, is forgotten, or is given another scope: readers look whether it hides for them.
There are no rings: the newest word counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from greenroom.actors.auth import errors as auth_errors
from greenroom.actors.memory import records
from greenroom.actors.memory.records import Entry, More

if TYPE_CHECKING:
    from collections.abc import Iterator

    from greenroom.actors.memory.repository import Held, Keeper
    from greenroom.runtime import Context, Slices


def successor(keeper: Keeper, context: Context, entry: Entry) -> Entry | None:
    """Return a memory that hides an entry from the sender: of several on a shelf the newest; or None."""
    if entry.more is None or entry.more.superseded_by is None:
        return None
    prefix = records.successors_prefix(entry.number)
    for shelf in _shelves(context, prefix):
        if keeper.sees_shelf(context.principal, shelf):
            for key, _ in context.scan(bool, prefix=prefix + records.shelf_place(shelf), reverse=True):
                held = keeper.numbered(context, int.from_bytes(key[-8:]))
                if held is not None and records.is_there(held.entry, context.now):
                    return held.entry
    return None


def superseded(keeper: Keeper, context: Context, entry: Entry) -> Entry | None:
    """Return the memory that an entry took the place of, if the sender sees it and it is there."""
    if entry.more is None or entry.more.supersedes is None:
        return None
    held = keeper.numbered(context, entry.more.supersedes)
    if held is None or not records.is_there(held.entry, context.now):
        return None
    return held.entry if keeper.may_see(context.principal, held.entry) else None


def open_ring(keeper: Keeper, context: Context, entry: Entry, hidden: Entry) -> Slices[None]:
    """Stage that an entry which is to supersede ``hidden`` is not superseded by it, directly or not.

    Raises:
        Refusal: ``VALIDATION_ERROR``: it would supersede itself.
    """
    if hidden.number == entry.number:
        raise auth_errors.invalid("supersedes", "supersedes: a memory cannot take the place of itself")
    below: int | None = hidden.number
    while below is not None:
        held = keeper.numbered(context, below)
        more = None if held is None else held.entry.more
        below = None if more is None else more.supersedes
        if held is not None and more is not None and below == entry.number:
            _release(keeper, context, held, more)
            return
        if context.slice_over():
            yield


def relink(
    keeper: Keeper, context: Context, before: Entry | None, after: Entry | None, *, is_new: bool = False
) -> None:
    """Stage the link of an entry's new state in the place of that of the old one; None: there is none.

    Args:
        keeper: The root's.
        context: The message's.
        before: The entry as it was.
        after: The entry as it is.
        is_new: Whether it supersedes another one now.
    """
    old, new = _link_key(before), _link_key(after)
    if old is not None and old != new:
        context.delete(old)
    if new is not None and old != new:
        context.put(new, True)
    if is_new and after is not None and after.more is not None and after.more.supersedes is not None:
        held = keeper.numbered(context, after.more.supersedes)
        assert held is not None, "what is superseded was found before"
        more = keeper.more(context, held.entry)
        more = msgspec.structs.replace(more, superseded_by=after.number)
        context.put(held.where, msgspec.structs.replace(held.entry, more=more))


def _release(keeper: Keeper, context: Context, held: Held, more: More) -> None:
    """Stage that an entry supersedes nothing any more."""
    alone = msgspec.structs.replace(held.entry, more=msgspec.structs.replace(more, supersedes=None))
    context.put(held.where, alone)
    relink(keeper, context, held.entry, alone)
    if keeper.is_indexed(alone):
        keeper.index.change(context, alone.update, supersedes=0)


def _link_key(entry: Entry | None) -> bytes | None:
    if entry is None or entry.more is None or entry.more.supersedes is None:
        return None
    return records.successor_key(entry.more.supersedes, entry.more.shelf, entry.number)


def _shelves(context: Context, prefix: bytes) -> Iterator[int]:
    """Yield the shelves on which there are links, without reading all of these."""
    start = prefix
    while (first := next(iter(context.scan(bool, prefix=prefix, start=start)), None)) is not None:
        shelf = int.from_bytes(first[0][len(prefix) : -8])
        yield shelf
        start = prefix + records.shelf_place(shelf + 1)
