"""The profile for clients of the shared sessions of several agents."""

from typing import Final

from greenroom.actors.schemas import replies
from greenroom.transports.mcp.profiles.profile import Made, ToolProfile

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
    older={
        replies.MessageView: {"id": "message_id"},
        replies.SessionView: {"id": "session_id"},
        replies.SessionSummary: {"id": "session_id"},
        replies.SessionStatistics: {"visible_message_count": "message_count"},
        replies.SessionRead: {"message_count": Made(int, lambda said: said.statistics.message_count)},
        replies.SearchResults: {
            "performance_note": Made(
                str,
                lambda said: f"RapidFuzz enabled: {said.scanned} messages scanned on prepared text",
            )
        },
        replies.MemoryStored: {"session_scoped": Made(bool, lambda said: said.scope == "session")},
    },
)
