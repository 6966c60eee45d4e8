"""Search the newest memories by words, without time to read the index."""

from __future__ import annotations

from typing import Final

from greenroom.actors.content.text.analyze import tokens
from greenroom.actors.content.text.verbatim import build_verbatim
from greenroom.actors.core.replies.grades import GRADES
from greenroom.actors.memories.requests import replies, requests
from greenroom.actors.memories.storage.repository import MemoryRepository, StoredEntry
from greenroom.actors.memories.storage.values import to_search_text
from greenroom.actors.memories.storage.views import ALL, LARGE_BYTES, EntryFilter, newest_first, to_view
from greenroom.runtime import Context, Slices

READING: Final = 0.4
"""The share of a search's time that must be left for a search by words."""
ANSWERING: Final = 0.15
"""The share of a search's time that must be left for its reply."""
_CHARACTERS: Final = 8_000


def newest_with_words(
    repository: MemoryRepository, request: requests.FindMemories, context: Context, least: float
) -> Slices[replies.RootSearchResult]:
    """Among the newest memories, find those with most query words until ``least`` seconds are left.

    The rarity of words is unknown, so the relevance is not measured, and is at most "medium".
    """
    wanted = _terms(request.text or "")
    stop_words = build_verbatim(request.text or "")
    entry_filter = EntryFilter(repository, context, request.filters or ALL, None)
    found: list[tuple[float, int, StoredEntry]] = []
    looked = 0
    for stored in newest_first(repository, context):
        if context.seconds_left() < least:
            break
        if entry_filter.fits(stored.entry):
            looked += 1
            value, version = yield from repository.value(context, stored.entry)
            text = yield from to_search_text(value, version.form)
            share = len(wanted & _terms(text[:_CHARACTERS])) / len(wanted) if wanted else 0.0
            if stop_words is not None:
                share = yield from stop_words.likeness(text[:_CHARACTERS])
            relevance = GRADES["medium"] * share
            if share and share >= request.min_score and relevance >= (request.min_relevance or 0.0):
                found.append((share, -looked, stored))
        yield
    found.sort(key=lambda each: each[:2], reverse=True)
    hits: list[replies.FoundMemory] = []
    for share, _, stored in found[: request.limit]:
        memory = yield from to_view(repository, context, stored.entry, most=LARGE_BYTES)
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
