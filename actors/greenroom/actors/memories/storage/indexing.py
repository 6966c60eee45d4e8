"""The search index of memories: index entries of older stores, verify and rebuild."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from greenroom.actors.core.replies.damage import read_undamaged
from greenroom.actors.memories.requests import keyvalue_requests as keyvalue
from greenroom.actors.memories.requests import requests as memories
from greenroom.actors.memories.storage import records
from greenroom.actors.memories.storage.repository import MemoryRepository
from greenroom.actors.search.index import Document
from greenroom.runtime import Context, Slices

TIMER = "upgrade"
BATCH = 200
"""One background commit indexes at most this many entries."""
_MOST_PROBLEMS = 20


def schedule(repository: MemoryRepository, context: Context) -> None:
    """Set a timer to index entries of an older store, if any are left."""
    if repository.indexed_to is not None and context.timer_due(TIMER) is None:
        context.set_timer(TIMER, context.now + 1, keyvalue.UpgradeMemory())


def finish(repository: MemoryRepository, context: Context) -> Slices[None]:
    """Stage the index rows of all remaining entries, for a reader that needs all entries."""
    yield from step(repository, context, None)


def step(repository: MemoryRepository, context: Context, most: int | None = BATCH) -> Slices[None]:
    """Stage ids and index rows of at most ``most`` entries; None means all."""
    if repository.indexed_to is None:
        return
    repository.ensure_root(context, repository.root)
    first = repository.indexed_to + 1
    entries = context.scan(bytes, prefix=records.UPDATES, start=records.update_key(first))
    for done, (key, where) in enumerate(entries):
        if done == most:
            _record_progress(repository, context, int.from_bytes(key[1:]) - 1)
            context.set_timer(TIMER, context.now + 1, keyvalue.UpgradeMemory())
            return
        entry = read_undamaged(context, repository.listed_at, context, where)
        if entry is None:
            continue
        value, _ = yield from repository.value(context, entry)
        context.put(records.id_key(repository.tail(entry.number)), where)
        quality = repository.uses.quality(context, entry)
        document = yield from repository.document(entry, value, quality)
        yield from repository.index.add(context, document)
        yield
    _record_progress(repository, context, None)


def _record_progress(repository: MemoryRepository, context: Context, update: int | None) -> None:
    assert repository.header is not None, "it was begun"
    repository.put_header(context, msgspec.structs.replace(repository.header, indexed_to=update))


def verify(
    repository: MemoryRepository, request: memories.VerifyIndex, context: Context
) -> Slices[memories.IndexVerified]:
    """Compare the index with the memories; rebuild it if that is requested and needed."""
    if repository.indexed_to is not None and not request.rebuild:
        unindexed = yield from _count_unindexed(repository, context)
        return memories.IndexVerified(memories=0, problems=[], rebuilt=False, unindexed=unindexed)
    yield from finish(repository, context)
    yield from repository.uses.write(context, repository.index)
    counted = _Counted(repository, context)
    problems = yield from repository.index.check(context, counted.documents())
    rebuilt = bool(problems) and request.rebuild
    if rebuilt:
        counted = _Counted(repository, context)
        yield from repository.index.rebuild(context, counted.documents())
    return memories.IndexVerified(
        memories=counted.number, problems=problems[:_MOST_PROBLEMS], rebuilt=rebuilt
    )


def _count_unindexed(repository: MemoryRepository, context: Context) -> Slices[int]:
    """Count the entries that the first search or the timer will index."""
    assert repository.indexed_to is not None, "some are not"
    first = records.update_key(repository.indexed_to + 1)
    count = 0
    for _ in context.scan(msgspec.Raw, prefix=records.UPDATES, start=first):
        count += 1
        yield
    return count


class _Counted:
    """The documents that the index must have; `number` counts the documents that were yielded."""

    def __init__(self, repository: MemoryRepository, context: Context) -> None:
        self.number = 0
        self._repository = repository
        self._context = context

    def documents(self) -> Iterator[Document | None]:
        for document in self._repository.documents(self._context):
            self.number += document is not None
            yield document
