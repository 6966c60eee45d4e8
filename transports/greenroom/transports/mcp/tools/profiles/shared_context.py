"""The profile for clients of the shared sessions of `shared-context-server`."""

import re
from datetime import datetime
from typing import Annotated, Any, Final

from msgspec import Meta

from greenroom.actors.app.resources.listed import ResourceItem
from greenroom.actors.core.auth.errors import invalid
from greenroom.actors.core.auth.policy import VisibilityFilter
from greenroom.actors.core.replies import replies
from greenroom.actors.core.resources import resources
from greenroom.actors.core.validation.types import CLOSED, MAX_LIFETIME
from greenroom.actors.memories.requests.keyvalue_requests import MemoryResource
from greenroom.actors.sessions.requests.session_views import SessionResource
from greenroom.transports.mcp.tools.profiles.profile import Made, OlderParameter, Told, ToolProfile
from greenroom.transports.mcp.tools.tool_errors import Failure

_IN_BOTH = (
    "create_session",
    "get_session",
    "add_message",
    "get_messages",
    "search_context",
    "search_by_sender",
    "search_by_timerange",
    "set_memory",
    "get_memory",
    "list_memory",
)
"""The tools that the original has as well."""


def _without_token(given: object) -> None:
    if given is not None:
        raise invalid(
            "auth_token",
            "auth_token: your identity comes from your connection (an API key or an access token, or your "
            "program's own name), never from an argument; leave it out, or send null",
        )


def _lifetime(given: int | str | None) -> int | None:
    """Return a lifetime that may be a text; None for 0, which means for ever."""
    if isinstance(given, str):
        if re.fullmatch("[0-9]{1,8}", given) is None or int(given) > MAX_LIFETIME:
            raise invalid(
                "expires_in",
                f"expires_in: it takes seconds from 0, for ever, to {MAX_LIFETIME:,}, and got {given[:40]!r}",
                limit=MAX_LIFETIME,
            )
        given = int(given)
    return given or None


_TOKEN = OlderParameter(
    "auth_token",
    Annotated[
        Any,  # `_without_token` also refuses other types, and never repeats the value
        Meta(
            description="null: who you are comes from how you are connected",
            extra_json_schema={"type": ["string", "null"]},
        ),
    ],
    _without_token,
)
_FILTER = OlderParameter(
    "visibility_filter", Annotated[VisibilityFilter | None, Meta(description="of what visibility")]
)
_SECONDS = Annotated[int, Meta(ge=0, le=MAX_LIFETIME, description="seconds; 0 or null = for ever")]
_EXPIRES_IN = OlderParameter("expires_in", _SECONDS | str | None, _lifetime)

_EXPIRES_AT = Made(
    float | None, lambda reply: None if reply.expires_at is None else reply.expires_at.timestamp()
)
"""Seconds since 1970; other times are texts in the original."""

_TIMESTAMP: Final = {"timestamp": Told(datetime, lambda moment: moment.at)}

SHARED_CONTEXT: Final = ToolProfile(
    tools=(
        "create_session",
        "get_session",
        "list_sessions",
        "add_message",
        "update_session",
        "get_messages",
        "search_context",
        "search_by_sender",
        "search_by_timerange",
        "set_memory",
        "get_memory",
        "list_memory",
        "delete_memory",
    ),
    parameters={
        **dict.fromkeys(_IN_BOTH, (_TOKEN,)),
        "get_messages": (_TOKEN, _FILTER),
        "set_memory": (_TOKEN, _EXPIRES_IN),
    },
    older={
        replies.Reply: _TIMESTAMP,
        Failure: _TIMESTAMP,
        ResourceItem: {
            "name": Made(
                str,
                lambda reply: f"Session: {reply.title}" if reply.uri.startswith("session:") else reply.title,
            )
        },
        SessionResource: _TIMESTAMP
        | {
            "name": Made(str, lambda reply: f"Session: {reply.session.purpose}"),
            "description": Made(
                str,
                lambda reply: (
                    f"Shared context session with {reply.statistics.message_count} visible messages"
                ),
            ),
        },
        MemoryResource: _TIMESTAMP
        | {
            "name": Made(str, lambda reply: f"Agent Memory: {reply.agent_id}"),
            "description": Made(
                str, lambda reply: f"Private memory store with {reply.statistics.total_entries} entries"
            ),
        },
        resources.ResourceInfo: {"requesting_agent": "reader"},
        replies.MessageView: {"id": "message_id"},
        replies.SessionView: {
            "id": "session_id",
            "is_active": Made(bool, lambda reply: reply.status not in CLOSED),
        },
        replies.SessionSummary: {"id": "session_id"},
        replies.SessionStatistics: {"visible_message_count": "message_count"},
        replies.SessionRead: {"message_count": Made(int, lambda reply: reply.statistics.message_count)},
        replies.MessagePage: {
            "total_count": "total",
            "has_more": Made(bool, lambda reply: reply.next_cursor is not None),
        },
        replies.SearchResults: {
            "search_time_ms": Told(float, lambda moment: round(moment.seconds * 1_000, 2)),
            "cache_hit": Made(bool, lambda _: False),
            "performance_note": Made(
                str,
                lambda reply: f"RapidFuzz enabled: {reply.scanned} messages scanned on prepared text",
            ),
        },
        replies.MemoryStored: {
            "session_scoped": Made(bool, lambda reply: reply.scope == "session"),
            "expires_at": _EXPIRES_AT,
        },
        replies.MemoryRead: {"expires_at": _EXPIRES_AT},
        replies.MemoryEntry: {"expires_at": _EXPIRES_AT},
    },
)
