"""Searches in a session: replies, and explanations of scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from greenroom.actors.core.replies import paging, replies
from greenroom.actors.core.replies.damage import read_undamaged
from greenroom.actors.core.replies.results_explained import (
    NOTHING,
    ResultExplained,
    WhyThatResult,
    explain_place,
    list_mode,
    signal_parts,
)
from greenroom.actors.search.embedding.vector_messages import (
    StoreVectors,
    TextsToEmbed,
    UnembeddedTexts,
    VectorsStored,
)
from greenroom.actors.sessions.handlers.reads import record_search
from greenroom.actors.sessions.requests import requests
from greenroom.actors.sessions.search import preview
from greenroom.actors.sessions.search.message_search import PreparedSearch
from greenroom.actors.sessions.session import Session
from greenroom.actors.sessions.storage import message_log
from greenroom.actors.sessions.storage.records import identify, view
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    from greenroom.actors.sessions.search.index import Match
    from greenroom.actors.sessions.search.scores import Reasons

HIGH, MEDIUM = 80, 60
SHOWN: Final = 240_000
"""The previews of one search scan this many characters for single words: 0.1 s."""
_UNKNOWN = "there is no such message in this session, or you may not see it"
_OLDER = "it is older than the searched messages"
_PREVIEW = 20_000  # characters that a preview scans for single words


def search_by_words(
    session: Session, request: requests.SearchContext, context: Context
) -> Slices[replies.SearchResults]:
    """Search for a process of an older version, which sends no vectors."""
    return search(session, requests.FindMessages(asked=request), context)


def search(
    session: Session, request: requests.FindMessages, context: Context
) -> Slices[replies.SearchResults]:
    """Return the best matches, and write an audit record."""
    session.require_visible(context)
    search_request = request.asked
    looked = yield from session.message_search.prepare(request, context)
    session.message_search.note_lost(context, looked.partitions)
    matches = yield from looked.messages.search(looked.wanted)
    looked_at = SHOWN // max(1, len(matches))
    hits: list[replies.SearchHit] = []
    size = 0
    for match in matches:
        entry = read_undamaged(context, message_log.find, context, looked.partitions, match.id)
        if entry is None:
            continue
        size += message_log.answer_bytes(entry.message)
        if hits and size > message_log.PAGE_BYTES:
            break
        # After a jump of the clock the window of ids can include an older message.
        if entry.message.timestamp >= looked.since:
            shown = preview(entry.message.content, search_request.query, looked_at=looked_at)
            hits.append(
                replies.SearchHit(
                    message=view(entry, context.principal),
                    score=round(match.score, 2),
                    match_preview=shown.text,
                    match_start=shown.start,
                    match_end=shown.end,
                    relevance=relevance(match.score),
                )
            )
        yield
    cut = paging.fit_to_budget(hits, search_request.max_tokens, lambda hit: identify(hit.message))
    scanned = looked.window.scanned
    record_search(context, "search_context", len(cut.kept), query_characters=len(search_request.query))
    return replies.SearchResults(
        results=cut.kept,
        query=search_request.query,
        threshold=search_request.fuzzy_threshold,
        search_scope=search_request.search_scope,
        message_count=len(cut.kept),
        scanned=scanned,
        truncated=scanned < session.counters.count(looked.partitions) or len(cut.kept) < len(matches),
        partial=UNSET if looked.partial is None else True,
        partial_reason=UNSET if looked.partial is None else looked.partial,
        left_out=cut.left_out,
        over_budget=cut.over_budget,
    )


def relevance(score: float) -> replies.Relevance:
    """Return a score as a word."""
    if score >= HIGH:
        return "high"
    return "medium" if score >= MEDIUM else "low"


def find_texts(session: Session, request: TextsToEmbed, context: Context) -> Slices[UnembeddedTexts]:
    """Return texts of messages without vectors in a space."""
    found = yield from session.message_search.texts(request, context)
    context.damage = ()  # the embedder does not report damage
    return found


def store_vectors(session: Session, request: StoreVectors, context: Context) -> Slices[VectorsStored]:
    """Store vectors of messages."""
    return session.message_search.store(request, context)


def explain(
    session: Session, request: requests.ExplainMessages, context: Context
) -> Slices[requests.MessagesExplained]:
    """Search as usual, with reasons, and write the same audit record."""
    session.require_visible(context)
    search_request = request.asked.asked
    looked = yield from session.message_search.prepare(request.asked, context)
    matches, about = yield from looked.messages.explain(looked.wanted, request.about)
    hits: list[ResultExplained] = []
    for match, reasons in matches:
        if (hit := _explain_hit(context, looked, match, reasons, len(hits) + 1)) is not None:
            hits.append(hit)
        yield
    record_search(context, "search_context", len(hits), query_characters=len(search_request.query))
    mode = list_mode(
        "",
        hits,
        len(hits),
        total=len(hits),
        seconds=0.0,
        how=f"from a score of {search_request.fuzzy_threshold:g} on, "
        f"among the newest {looked.window.scanned:,} messages",
        partial=looked.partial,
    )
    named: WhyThatResult | None = None
    if request.about is not None and about is not None:
        hit = _explain_hit(context, looked, *about, None)
        named = explain_place(mode, hit, _why_not(about[0].score, looked.wanted.threshold, len(hits)))
    elif request.about is not None:
        is_older = message_log.find(context, looked.partitions, request.about) is not None
        named = explain_place(mode, None, _OLDER if is_older else _UNKNOWN)
    return requests.MessagesExplained(mode=mode, about=named)


def _explain_hit(
    context: Context,
    looked: PreparedSearch,
    match: Match,
    reasons: Reasons,
    place: int | None,
) -> ResultExplained | None:
    """Return a message as a result; None if it is older than the window."""
    entry = message_log.find(context, looked.partitions, match.id)
    if entry is None or entry.message.timestamp < looked.since:
        return None
    return ResultExplained(
        id=str(match.id),
        title=entry.message.sender,
        text=preview(entry.message.content, looked.wanted.text, looked_at=_PREVIEW).text,
        place=place,
        score=round(match.score / 100, 4),
        signals=signal_parts(reasons.parts, {}),
        decided=reasons.decided,
    )


def _why_not(score: float, least: float, others: int) -> str:
    if not score:
        return NOTHING
    if score < least:
        return f"its score is {score:g}, and {least:g} is wanted at least"
    return f"{others} others are better"
