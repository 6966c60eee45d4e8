"""The reasons for empty answers, by type of request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec
import trio

from greenroom.actors.app.emptiness import knowledge
from greenroom.actors.app.emptiness.narrowing import Asker, Explanation, Filter
from greenroom.actors.core.audit.query import GetAuditLog, GetAuditState, ReadAuditLog
from greenroom.actors.core.keys.admin import ListApiKeys
from greenroom.actors.core.replies.empty_reasons import EmptyBecause, explain_no_match
from greenroom.actors.core.replies.replies import ListReply
from greenroom.actors.memories.recall.emptiness import WhyNoneListed, seconds_for
from greenroom.actors.memories.requests.keyvalue_requests import ListMemory
from greenroom.actors.memories.requests.requests import ListMemories
from greenroom.actors.sessions.handlers.find_sessions import FindSessions
from greenroom.actors.sessions.requests.requests import (
    GetMessages,
    SearchBySender,
    SearchByTimerange,
    SearchContext,
)
from greenroom.actors.sessions.storage.directory import ListSessions
from greenroom.actors.sessions.workflows.tools import GetWorkflowPatterns, SuggestNextAction
from greenroom.runtime import GreenroomError

R = TypeVar("R", bound=ListReply)

SECONDS: Final = 1.0
"""The time limit for finding a reason; after it the answer has none."""
MOST_RECORDS: Final = 1_000
"""The newest audit records among which a match for a filter is searched."""
_STEPS: Final = "steps"
_MESSAGES: Final = "messages"
_MOST: Final = 1_000
"""The most messages that are read."""
_USUAL_THRESHOLD: Final = next(
    field.default for field in msgspec.structs.fields(SearchContext) if field.name == "fuzzy_threshold"
)


async def _of_memories(asker: Asker, request: ListMemories, _: Any) -> EmptyBecause:
    reason: EmptyBecause = await asker.ask(WhyNoneListed(request=request))
    return reason


async def _of_records(asker: Asker, request: GetAuditLog, _: Any) -> EmptyBecause | None:
    """Return which filters no record matches; this look-up is not audited as a read."""
    last = (await asker.ask(GetAuditState())).last
    found = (await asker.ask(ReadAuditLog(start=max(0, last - MOST_RECORDS), limit=MOST_RECORDS))).records
    if not found:
        return None
    given = {name: value for name, value in request.filters().items() if name != "limit"}
    alone = {
        name: value
        for name, value in given.items()
        if not any(GetAuditLog(**{name: value}).matches(each) for each in found)
    }
    return explain_no_match(
        asker.principal.scopes,
        "records",
        alone or given,
        lambda name: {value for each in found if isinstance(value := getattr(each, name, None), str)},
    )


async def _of_steps(asker: Asker, _request: Any, reply: Any) -> EmptyBecause | None:
    """Return that no steps are recorded, or too few for a pattern."""
    if not reply.steps:
        return asker.because("nothing_stored" if asker.learns_workflows else "learning_off", what=_STEPS)
    return None


async def _nothing_repeated(asker: Asker, _request: Any, reply: Any) -> EmptyBecause:
    return asker.because("nothing_repeated", count=f"{reply.steps:,}")


async def _of_messages(asker: Asker, request: Any, _: Any) -> EmptyBecause | None:
    """Return that the session has no messages, or which parameter excludes them."""
    found = await asker.ask(GetMessages(session_id=request.session_id, limit=_MOST))
    if found.lacks_reason:
        return asker.because("nothing_stored", what=_MESSAGES)
    if isinstance(request, GetMessages) and request.since_id is not None:
        return asker.because("nothing_new", what=_MESSAGES)
    parameters: dict[str, object] = {}
    if isinstance(request, SearchBySender):
        parameters = {"sender": request.sender}
    elif isinstance(request, SearchByTimerange):
        parameters = {"start_time": request.start_time, "end_time": request.end_time}
    senders = {message.sender for message in found.messages}
    return (
        explain_no_match(asker.principal.scopes, _MESSAGES, parameters, lambda _: senders)
        if parameters
        else None
    )


async def _nothing_relevant(asker: Asker, _request: Any, _reply: Any) -> EmptyBecause:
    return asker.because("nothing_relevant", what=_MESSAGES)


EXPLANATIONS: Final[Mapping[type[Any], Explanation]] = {
    **knowledge.EXPLANATIONS,
    ListSessions: Explanation(
        "sessions",
        {
            "status": Filter(),
            "project_id": Filter(lambda found: (each.project_id for each in found.sessions)),
        },
    ),
    FindSessions: Explanation(
        "sessions",
        {
            "status": Filter(),
            "project_id": Filter(lambda found: (each.session.project_id for each in found.sessions)),
            "agent": Filter(lambda found: (each.session.created_by for each in found.sessions)),
            "tool": Filter(),
            "text": Filter(),
        },
    ),
    GetMessages: Explanation(_MESSAGES, {"visibility_filter": Filter(widest="all")}, first=_of_messages),
    SearchBySender: Explanation(_MESSAGES, first=_of_messages),
    SearchByTimerange: Explanation(_MESSAGES, first=_of_messages),
    SearchContext: Explanation(
        _MESSAGES,
        {
            "search_scope": Filter(widest="all"),
            "recent_hours": Filter(),
            "max_rows_scanned": Filter(),
            "fuzzy_threshold": Filter(widest=_USUAL_THRESHOLD),
        },
        first=_of_messages,
        last=_nothing_relevant,
        wide={},
    ),
    ListMemory: Explanation(
        "keys of your own",
        {
            "session_id": Filter(lambda found: (each.session_id for each in found.entries), widest="all"),
            "prefix": Filter(lambda found: (each.key for each in found.entries)),
        },
    ),
    ListMemories: Explanation("memories", first=_of_memories),
    GetWorkflowPatterns: Explanation(
        _STEPS, {"context": Filter(widest=[])}, _of_steps, _nothing_repeated, wide={}
    ),
    SuggestNextAction: Explanation(_STEPS, {"context": Filter()}, _of_steps, _nothing_repeated, wide={}),
    GetAuditLog: Explanation("records", first=_of_records),
    ListApiKeys: Explanation("API keys", {"include_ended": Filter(widest=True)}),
}
"""All requests with possibly empty answers, except memory searches, which give their own reasons."""


async def explain_empty(asker: Asker, request: Any, reply: R) -> R:
    """Return an empty answer with its reason."""
    reason: EmptyBecause | None = None
    with trio.move_on_after(seconds_for(SECONDS)):
        try:
            reason = await EXPLANATIONS[type(request)].explain(asker, request, reply)
        except GreenroomError:  # a failed look-up must not cost the answer
            reason = None
    return msgspec.structs.replace(reply, empty_because=reason or asker.because("unexplained"))
