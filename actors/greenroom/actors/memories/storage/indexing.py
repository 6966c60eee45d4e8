"""The index beside the memories: those of an older store come into it once; what differs is made anew."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from greenroom.actors.index import Document
from greenroom.actors.memories.requests import requests as memories
from greenroom.actors.memories.storage import records, root_summary
from greenroom.actors.memories.storage.records import Entry
from greenroom.actors.memories.storage.repository import MemoryRepository
from greenroom.actors.schemas import keyvalue
from greenroom.runtime import Context, Slices

TIMER = "upgrade"
BATCH = 200
"""Entries that are indexed in one commit when nobody waits for it."""
_MOST_PROBLEMS = 20


def soon(repository: MemoryRepository, context: Context) -> None:
    """Stage that what is not in the index comes into it, if there is such."""
    if repository.indexed_to is not None and context.timer_due(TIMER) is None:
        context.set_timer(TIMER, context.now + 1, keyvalue.UpgradeMemory())


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
            context.set_timer(TIMER, context.now + 1, keyvalue.UpgradeMemory())
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


def verify(
    repository: MemoryRepository, request: memories.VerifyIndex, context: Context
) -> Slices[memories.IndexVerified]:
    """Answer how the index differs from the memories, and rebuild it if that was asked and is needed."""
    if repository.indexed_to is not None and not request.rebuild:
        unindexed = yield from _unindexed(repository, context)
        return memories.IndexVerified(memories=0, problems=[], rebuilt=False, unindexed=unindexed)
    yield from finish(repository, context)
    yield from repository.uses.write(context, repository.index)
    counted = _Counted(repository, context)
    problems = yield from repository.index.check(context, counted.documents())
    rebuilt = bool(problems) and request.rebuild
    if rebuilt:
        counted = _Counted(repository, context)
        yield from repository.index.rebuild(context, counted.documents())
    if request.rebuild:  # nobody compares what there is in short: it would take as long as making it
        yield from root_summary.remake(repository, context)
    return memories.IndexVerified(
        memories=counted.number, problems=problems[:_MOST_PROBLEMS], rebuilt=rebuilt
    )


def _unindexed(repository: MemoryRepository, context: Context) -> Slices[int]:
    """Return how many entries come into the index at the first search, or are on their way."""
    assert repository.indexed_to is not None, "some are not"
    first = records.update_key(repository.indexed_to + 1)
    count = 0
    for _ in context.scan(msgspec.Raw, prefix=records.UPDATES, start=first):
        count += 1
        if context.should_yield():
            yield
    return count


class _Counted:
    """The memories that the index is to have, counted as they pass."""

    def __init__(self, repository: MemoryRepository, context: Context) -> None:
        self.number = 0
        self._repository = repository
        self._context = context

    def documents(self) -> Iterator[Document | None]:
        for document in self._repository.documents(self._context):
            self.number += document is not None
            yield document
