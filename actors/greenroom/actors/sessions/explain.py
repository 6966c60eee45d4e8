"""A session that explains its searches to people: why each message has its score, and why not one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.replies.results_explained import (
    ResultExplained,
    ResultsOfMode,
    WhyThatResult,
    signal_parts,
)
from greenroom.actors.sessions.handlers.search import LookedAt
from greenroom.actors.sessions.requests.requests import ExplainMessages, MessagesExplained
from greenroom.actors.sessions.search import preview
from greenroom.actors.sessions.storage import message_log as log
from greenroom.actors.sessions.transcript import TranscribedSession
from greenroom.runtime import Context, Slices, handles

if TYPE_CHECKING:
    from greenroom.actors.sessions.search.index import Match
    from greenroom.actors.sessions.search.scores import Reasons

_UNKNOWN = "there is no such message in this session, or you may not see it"
_PREVIEW = 20_000  # characters in which a preview looks for single words


class ExplainedSession(TranscribedSession):
    """A session whose searches people look into."""

    @handles(ExplainMessages)
    def explain(self, request: ExplainMessages, context: Context) -> Slices[MessagesExplained]:
        """Search as a search is carried out, and leave its audit record."""
        self._visible(context)
        asked = request.asked.asked
        looked = yield from self._finder.prepare(request.asked, context, self._counters)
        matches, about = yield from looked.messages.explain(
            looked.wanted, request.about, context.should_yield
        )
        hits: list[ResultExplained] = []
        for match, reasons in matches:
            hits += _shown(context, looked, match, reasons, len(hits) + 1)
            if context.should_yield():
                yield
        places = {hit.id: place for place, hit in enumerate(hits, 1)}
        audit_record.record_read(
            context,
            context.principal,
            "search_context",
            context.address.key,
            found=len(hits),
            query_characters=len(asked.query),
        )
        told = None
        if request.about is not None:
            told = _why(context, looked, request.about, about, places)
        return MessagesExplained(
            mode=ResultsOfMode(
                mode="",
                hits=hits,
                places=places,
                total=len(hits),
                how=f"from a score of {asked.fuzzy_threshold:g} on, "
                f"among the newest {looked.window.scanned:,} messages",
                partial=looked.partial,
            ),
            about=told,
        )


def _shown(
    context: Context,
    looked: LookedAt,
    match: Match,
    reasons: Reasons,
    place: int | None,
) -> list[ResultExplained]:
    """Return a message as one result, or none where it is older than what is searched."""
    entry = log.find(context, looked.partitions, match.id)
    if entry is None or entry.message.timestamp < looked.since:
        return []
    shown = preview(entry.message.content, looked.wanted.text, looked_at=_PREVIEW)
    return [
        ResultExplained(
            id=str(match.id),
            title=entry.message.sender,
            text=shown.text,
            place=place,
            score=round(match.score / 100, 4),
            signals=signal_parts(reasons.parts, {}),
            decided=reasons.decided,
        )
    ]


def _why(
    context: Context,
    looked: LookedAt,
    message_id: int,
    about: tuple[Match, Reasons] | None,
    places: dict[str, int],
) -> WhyThatResult:
    """Say where a message stands, or why it does not."""
    place = places.get(str(message_id))
    if about is None:
        is_older = log.find(context, looked.partitions, message_id) is not None
        why = "it is older than what is looked at" if is_older else _UNKNOWN
        return WhyThatResult(mode="", place=None, reasons=[why], hit=None)
    match, reasons = about
    reasons_why: list[str] = []
    least = looked.wanted.threshold
    if place is None and not match.score:
        reasons_why.append("it has nothing of the query")
    elif place is None and match.score < least:
        reasons_why.append(f"its score is {match.score:g}, and {least:g} is wanted at least")
    elif place is None:
        reasons_why.append(f"{len(places)} others are better")
    hits = _shown(context, looked, match, reasons, place)
    return WhyThatResult(mode="", place=place, reasons=reasons_why, hit=hits[0] if hits else None)
