"""Upgrade of an older store: its memories are indexed, once, by themselves."""

from __future__ import annotations

import msgspec

from greenroom.actors.memory import records
from greenroom.actors.memory.records import Entry
from greenroom.actors.memory.repository import MemoryRepository
from greenroom.actors.schemas import keyvalue as requests
from greenroom.runtime import Context, Slices

TIMER = "upgrade"
BATCH = 200
"""Entries that are indexed in one commit when nobody waits for it."""


def soon(repository: MemoryRepository, context: Context) -> None:
    """Stage that what is not in the index comes into it, if there is such."""
    if repository.indexed_to is not None and context.timer_due(TIMER) is None:
        context.set_timer(TIMER, context.now + 1, requests.UpgradeMemory())


def finish(repository: MemoryRepository, context: Context) -> Slices[None]:
    """Stage that everything is in the index, for a reader that needs all of it."""
    yield from step(repository, context, None)


def step(repository: MemoryRepository, context: Context, most: int | None = BATCH) -> Slices[None]:
    """Stage so many entries' ids and index rows, or those of all."""
    if repository.indexed_to is None:
        return
    repository.ensure_root(context, repository.root)
    first = repository.indexed_to + 1
    entries = context.scan(bytes, prefix=records.UPDATES, start=records.update_key(first))
    for done, (key, where) in enumerate(entries):
        if done == most:
            _reached(repository, context, int.from_bytes(key[1:]) - 1)
            context.set_timer(TIMER, context.now + 1, requests.UpgradeMemory())
            return
        entry = context.get(where, Entry)
        assert entry is not None, "an order row goes with its entry"
        value, _ = yield from repository.value(context, entry)
        context.put(records.id_key(repository.tail(entry.number)), where)
        quality = repository.uses.quality(context, entry)
        document = yield from repository.document(context, entry, value, quality)
        yield from repository.index.add(context, document)
        if context.should_yield():
            yield
    _reached(repository, context, None)


def _reached(repository: MemoryRepository, context: Context, update: int | None) -> None:
    assert repository.header is not None, "it was begun"
    repository.put_header(context, msgspec.structs.replace(repository.header, indexed_to=update))
