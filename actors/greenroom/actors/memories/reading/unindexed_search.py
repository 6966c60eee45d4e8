"""Search in a root whose index there was no time to read: the newest memories with words of the query."""

from __future__ import annotations

from typing import Final

from greenroom.actors.content.text.analyze import tokens
from greenroom.actors.content.text.verbatim import verbatim
from greenroom.actors.core.replies.grades import GRADES
from greenroom.actors.memories.requests import replies, requests
from greenroom.actors.memories.storage import records
from greenroom.actors.memories.storage.repository import MemoryRepository, StoredEntry
from greenroom.actors.memories.storage.values import searched_text
from greenroom.actors.memories.storage.views import ALL, LARGE_BYTES, EntryFilter, newest_first, shown
from greenroom.runtime import Context, Slices

READING: Final = 0.4
"""Of the time that a search has when it begins, what must be left for a search by words alone."""
ANSWERING: Final = 0.15
"""Likewise for its answer."""
_CHARACTERS: Final = 8_000


def newest_with_words(
    repository: MemoryRepository, request: requests.FindMemories, context: Context, least: float
) -> Slices[replies.RootSearchResult]:
    """Answer those of the newest memories that have most words of the query.

    Nothing is known of how rare a word is, so their relevance is not measured, and said to be medium at most.

    Args:
        repository: The root's.
        request: The search.
        context: The message's.
        least: How many seconds must be left.
    """
    wanted = _terms(request.text or "")
    stop_words = verbatim(request.text or "")
    entry_filter = EntryFilter(repository, context, request.filters or ALL, None)
    found: list[tuple[float, int, StoredEntry]] = []
    looked = 0
    for stored in newest_first(context):
        if context.seconds_left() < least:
            break
        if entry_filter.fits(stored.entry):
            looked += 1
            value, version = yield from repository.value(context, stored.entry)
            form = records.JSON if version.details is None else version.details.form
            text = value.decode() if form & records.TEXT else (yield from searched_text(value, form, context))
            share = len(wanted & _terms(text[:_CHARACTERS])) / len(wanted) if wanted else 0.0
            if stop_words is not None:
                share = yield from stop_words.likeness(text[:_CHARACTERS], context.should_yield)
            relevance = GRADES["medium"] * share
            if share and share >= request.min_score and relevance >= (request.min_relevance or 0.0):
                found.append((share, -looked, stored))
        if context.should_yield():
            yield
    found.sort(key=lambda each: each[:2], reverse=True)
    hits: list[replies.FoundMemory] = []
    for share, _, stored in found[: request.limit]:
        memory = yield from shown(repository, context, stored.entry, most=LARGE_BYTES)
        relevance = GRADES["medium"] * share
        hits.append(
            replies.FoundMemory(
                memory=memory, score=relevance, quality=None, relevance=relevance, match=share
            )
        )
    return replies.RootSearchResult(
        hits=hits,
        total=len(found),
        is_minimum=True,
        counts={"visible": looked},
        model="words",
        unread=looked,
    )


def _terms(text: str) -> set[str]:
    return {token.posted[0] for token in tokens(text) if token.posted}
