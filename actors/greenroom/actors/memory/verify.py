"""Verification of the index against the memories, and its rebuild."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from greenroom.actors.index import Document
from greenroom.actors.memory import records, root_summary, upgrade
from greenroom.actors.memory.repository import MemoryRepository
from greenroom.actors.schemas import memories as requests
from greenroom.runtime import Context, Slices

_MOST_PROBLEMS = 20


def verify(
    repository: MemoryRepository, request: requests.VerifyIndex, context: Context
) -> Slices[requests.IndexVerified]:
    """Answer how the index differs from the memories, and rebuild it if that was asked and is needed."""
    if repository.indexed_to is not None and not request.rebuild:
        unindexed = yield from _unindexed(repository, context)
        return requests.IndexVerified(memories=0, problems=[], rebuilt=False, unindexed=unindexed)
    yield from upgrade.finish(repository, context)
    yield from repository.uses.write(context, repository.index)
    counted = _Counted(repository, context)
    problems = yield from repository.index.check(context, counted.documents())
    rebuilt = bool(problems) and request.rebuild
    if rebuilt:
        counted = _Counted(repository, context)
        yield from repository.index.rebuild(context, counted.documents())
    if request.rebuild:  # nobody compares what there is in short: it would take as long as making it
        yield from root_summary.remake(repository, context)
    return requests.IndexVerified(
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
