"""Bringing what an older program stored into the index; it happens by itself, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from greenroom.actors.memory import records
from greenroom.actors.memory.records import Entry
from greenroom.actors.memory.repository import Keeper
from greenroom.actors.schemas import keyvalue as requests

if TYPE_CHECKING:
    from greenroom.runtime import Context, Slices

TIMER = "upgrade"
BATCH = 200
"""Entries that are indexed in one commit when nobody waits for it."""


def soon(keeper: Keeper, context: Context) -> None:
    """Stage that what is not in the index comes into it, if there is such."""
    if keeper.indexed_to is not None and context.timer_due(TIMER) is None:
        context.set_timer(TIMER, context.now + 1, requests.UpgradeMemory())


def finish(keeper: Keeper, context: Context) -> Slices[None]:
    """Stage that everything is in the index, for a reader that needs all of it."""
    yield from step(keeper, context, None)


def step(keeper: Keeper, context: Context, most: int | None = BATCH) -> Slices[None]:
    """Stage so many entries' ids and index rows, or those of all."""
    if keeper.indexed_to is None:
        return
    keeper.begin(context, keeper.root)
    first = keeper.indexed_to + 1
    entries = context.scan(bytes, prefix=records.UPDATES, start=records.update_key(first))
    for done, (key, where) in enumerate(entries):
        if done == most:
            _reached(keeper, context, int.from_bytes(key[1:]) - 1)
            context.set_timer(TIMER, context.now + 1, requests.UpgradeMemory())
            return
        entry = context.get(where, Entry)
        assert entry is not None, "an order row goes with its entry"
        value, _ = yield from keeper.value(context, entry)
        context.put(records.id_key(keeper.tail(entry.number)), where)
        quality = keeper.uses.quality(context, entry)
        document = yield from keeper.document(context, entry, value, quality)
        yield from keeper.index.add(context, document)
        if context.slice_over():
            yield
    _reached(keeper, context, None)


def _reached(keeper: Keeper, context: Context, update: int | None) -> None:
    assert keeper.common is not None, "it was begun"
    keeper.set_common(context, msgspec.structs.replace(keeper.common, indexed_to=update))
