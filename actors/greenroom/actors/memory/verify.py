"""Whether the index is what the memories say, and making it anew when it is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from greenroom.actors.memory import _gist as gist
from greenroom.actors.memory import records
from greenroom.actors.memory import upgrade as upgrading
from greenroom.actors.schemas import index_checks as requests

if TYPE_CHECKING:
    from collections.abc import Iterator

    from greenroom.actors.index import Document
    from greenroom.actors.memory.repository import Keeper
    from greenroom.runtime import Context, Slices

_MOST_PROBLEMS = 20


def verify(keeper: Keeper, request: requests.VerifyIndex, context: Context) -> Slices[requests.IndexVerified]:
    """Answer how the index differs from the memories, and rebuild it if that was asked and is needed."""
    if keeper.indexed_to is not None and not request.rebuild:
        unindexed = yield from _unindexed(keeper, context)
        return requests.IndexVerified(memories=0, problems=[], rebuilt=False, unindexed=unindexed)
    yield from upgrading.finish(keeper, context)
    yield from keeper.uses.write(context, keeper.index)
    counted = _Counted(keeper, context)
    problems = yield from keeper.index.check(context, counted.documents())
    rebuilt = bool(problems) and request.rebuild
    if rebuilt:
        counted = _Counted(keeper, context)
        yield from keeper.index.rebuild(context, counted.documents())
        yield from gist.remake(keeper, context)
    return requests.IndexVerified(
        memories=counted.number, problems=problems[:_MOST_PROBLEMS], rebuilt=rebuilt
    )


def _unindexed(keeper: Keeper, context: Context) -> Slices[int]:
    """Return how many entries come into the index at the first search, or are on their way."""
    assert keeper.indexed_to is not None, "some are not"
    first = records.update_key(keeper.indexed_to + 1)
    count = 0
    for _ in context.scan(msgspec.Raw, prefix=records.UPDATES, start=first):
        count += 1
        if context.slice_over():
            yield
    return count


class _Counted:
    """The memories that the index is to have, counted as they pass."""

    def __init__(self, keeper: Keeper, context: Context) -> None:
        self.number = 0
        self._keeper = keeper
        self._context = context

    def documents(self) -> Iterator[Document | None]:
        for document in self._keeper.documents(self._context):
            self.number += document is not None
            yield document
