"""Why searches in sessions, and listings of what an agent keeps, come back empty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from greenroom.actors.app.emptiness.narrowing import Asker, Explained, Filter
from greenroom.actors.core.replies.empty_reasons import EmptyBecause, no_match
from greenroom.actors.schemas.keyvalue import ListMemory
from greenroom.actors.sessions.handlers.find_sessions import FindSessions
from greenroom.actors.sessions.requests.requests import (
    GetMessages,
    SearchBySender,
    SearchByTimerange,
    SearchContext,
)
from greenroom.actors.sessions.storage.directory import ListSessions

_MESSAGES: Final = "messages"
_MOST: Final = 1_000
"""Messages that are looked at."""
_USUAL_THRESHOLD: Final = next(
    field.default for field in msgspec.structs.fields(SearchContext) if field.name == "fuzzy_threshold"
)


async def _of_messages(asker: Asker, request: Any, _: Any) -> EmptyBecause | None:
    """Return why none of a session's messages is answered, where it has none or a parameter says which."""
    found = await asker.ask(GetMessages(session_id=request.session_id, limit=_MOST))
    if found.lacks_reason:
        return asker.because("nothing_stored", what=_MESSAGES)
    if isinstance(request, GetMessages) and request.since_id is not None:
        return asker.because("nothing_new", what=_MESSAGES)
    said: dict[str, object] = {}
    if isinstance(request, SearchBySender):
        said = {"sender": request.sender}
    elif isinstance(request, SearchByTimerange):
        said = {"start_time": request.start_time, "end_time": request.end_time}
    senders = {message.sender for message in found.messages}
    return no_match(asker.principal.scopes, _MESSAGES, said, lambda _: senders) if said else None


async def _nothing_relevant(asker: Asker, _request: Any, _reply: Any) -> EmptyBecause:
    return asker.because("nothing_relevant", what=_MESSAGES)


EXPLAINED: Final[Mapping[type[Any], Explained]] = {
    ListSessions: Explained(
        "sessions",
        {
            "status": Filter(),
            "project_id": Filter(lambda found: (each.project_id for each in found.sessions)),
        },
    ),
    FindSessions: Explained(
        "sessions",
        {
            "status": Filter(),
            "project_id": Filter(lambda found: (each.session.project_id for each in found.sessions)),
            "agent": Filter(lambda found: (each.session.created_by for each in found.sessions)),
            "tool": Filter(),
            "text": Filter(),
        },
    ),
    GetMessages: Explained(_MESSAGES, {"visibility_filter": Filter(widest="all")}, first=_of_messages),
    SearchBySender: Explained(_MESSAGES, first=_of_messages),
    SearchByTimerange: Explained(_MESSAGES, first=_of_messages),
    SearchContext: Explained(
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
    ListMemory: Explained(
        "keys of your own",
        {
            "session_id": Filter(lambda found: (each.session_id for each in found.entries), widest="all"),
            "prefix": Filter(lambda found: (each.key for each in found.entries)),
        },
    ),
}
