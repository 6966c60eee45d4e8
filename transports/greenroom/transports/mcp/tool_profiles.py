"""Tool profiles: which tools a client is listed, what their calls mean, and which older names answers have.

`PROFILES` is the whole truth. A profile narrows no more than the listing: every tool can be called by its
name whatever is listed. With several, their tools are listed one profile after the other and the older names
of all of them are in the answers; where two differ in what a name means, the first named decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from greenroom.actors.recall import replies as found
from greenroom.actors.schemas import replies


class Made(msgspec.Struct, frozen=True):
    """A member of an answer that no member of today's has the value of.

    Attributes:
        kind: Its type.
        make: Makes it of today's answer.
    """

    kind: Any
    make: Callable[[Any], Any]


OlderNames = Mapping[type[msgspec.Struct], Mapping[str, str | Made]]
"""By the type of an answer or of a part of one: its older names, each with today's or what makes it."""


class ToolProfile(msgspec.Struct, frozen=True, kw_only=True):
    """What one profile declares.

    Attributes:
        tools: The tools that are listed, in order; None for every tool of today.
        defaults: What a call is given besides, by tool, where all its arguments are such as the tool's older
            form takes.
        older: The older names in answers. One that today's answer has as well means something else here.
    """

    tools: tuple[str, ...] | None
    defaults: Mapping[str, Mapping[str, Any]] = {}
    older: OlderNames = {}


_PAGED_MEMORIES = (
    "store_memory",
    "retrieve_memory",
    "update_memory",
    "forget_memory",
    "list_memories",
    "export_memories",
    "import_memories",
    "memory_stats",
)
_TRAVELLING = (
    "start_session",
    "restore_session",
    "get_session_context",
    "migrate_session",
    "export_session",
    "end_session",
)

PROFILES: Final[Mapping[str, ToolProfile]] = {
    "core": ToolProfile(
        tools=(
            "start_session",
            "record_context",
            "end_session",
            "list_sessions",
            "get_session",
            "add_message",
            "get_messages",
            "search_context",
            "store_memory",
            "get_memory",
            "memory_search",
            "recall_context",
            "update_memory",
            "forget_memory",
            "list_memories",
        )
    ),
    "all": ToolProfile(tools=None),
    "shared-context": ToolProfile(
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
    ),
    "services": ToolProfile(
        tools=(
            "create_session",
            "get_session",
            "update_session",
            "add_message",
            "get_messages",
            "store_memory",
            "retrieve_memory",
            "update_memory",
            "forget_memory",
            "list_memory_versions",
            "list_memories",
        )
    ),
    "memory-search": ToolProfile(
        tools=(
            "memory_search",
            "retrieve_memory",
            "recall_memory",
            "recall_by_timeframe",
            "retrieve_with_quality_boost",
            "exact_match_retrieve",
            "debug_retrieve",
            "store_memory",
        ),
        defaults={"retrieve_memory": {"n_results": 5}},
        older={
            found.MemoryHit: {"id": "memory_id"},
            found.MemoriesFound: {"total": Made(int, lambda said: len(said.memories))},
        },
    ),
    "universal-memory": ToolProfile(
        tools=(
            *_PAGED_MEMORIES,
            *_TRAVELLING,
            "reopen_session",
            *(f"omn_{name}" for name in _PAGED_MEMORIES),
            "omn_create_session",
            *(f"omn_{name}" for name in _TRAVELLING),
        ),
        older={
            found.MemoryHit: {"relevance_score": "score"},
            found.MemoriesFound: {"total_found": "total"},
        },
    ),
}
"""Every profile by its name."""

DEFAULT: Final = ("core",)
"""What holds where neither a connection nor its key nor the server's settings say anything."""


def older_names(profiles: Iterable[str]) -> dict[type[msgspec.Struct], dict[str, str | Made]]:
    """Return the older names in the answers under several profiles."""
    merged: dict[type[msgspec.Struct], dict[str, str | Made]] = {}
    for place, name in enumerate(profiles):
        for struct, names in PROFILES[name].older.items():
            for old, today in names.items():
                if place == 0 or old not in struct.__struct_fields__:
                    merged.setdefault(struct, {}).setdefault(old, today)
    return merged
