"""Tool profiles: listed tools, the reading of calls, and older names in answers.

`PROFILES` is complete. A profile narrows only the listing: every tool can be called by name. With several
profiles, the tools of each are listed in turn, and answers have the older names of all of them. Where two
profiles differ, the first one decides. An answer to a call by an older name has the names of that name's
system as well, under every profile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from greenroom.actors import REQUESTS
from greenroom.actors.core.replies import replies
from greenroom.actors.knowledge.corpora.requests.corpus_requests import ChunkContent, ChunkFound, ChunksFound
from greenroom.actors.knowledge.corpora.requests.entity_requests import EntityView
from greenroom.actors.memories.recall.replies import MemoryHit
from greenroom.actors.memories.requests.replies import MemoryView, VersionView
from greenroom.transports.mcp.tools.profiles.memories import CODE, MEMORY_SEARCH, UNIVERSAL_MEMORY
from greenroom.transports.mcp.tools.profiles.profile import Made, OlderName, ToolProfile, tools_of_area
from greenroom.transports.mcp.tools.profiles.shared_context import SHARED_CONTEXT


def _metadata(memory: MemoryView | MemoryHit) -> msgspec.Raw:
    return msgspec.Raw(b"{}") if memory.metadata is UNSET else memory.metadata


_DELETED: Final = Made(bool, lambda memory: memory.deleted_at is not None)
_METADATA: Final = Made(dict[str, Any], _metadata)

SERVICES: Final = ToolProfile(
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
    ),
    older={
        replies.SessionView: {"id": "session_id", "last_update_time": "updated_at"},
        replies.SessionSummary: {"id": "session_id", "last_update_time": "last_activity"},
        MemoryView: {"is_deleted": _DELETED, "metadata": _METADATA},
        MemoryHit: {"is_deleted": Made(bool, lambda _: False), "metadata": _METADATA},
        VersionView: {"is_deleted": _DELETED},
    },
)

_OF_ENTITIES: Final = {
    "entity_id": Made(str | None, lambda passage: passage.entity_id),
    "entity_type": Made(str | None, lambda passage: passage.entity_type),
}
"""The members that a passage has under its system's profile, even without known entities."""


def _names_in_full(hit: ChunkFound) -> list[str] | UnsetType:
    return UNSET if hit.chunk_text is UNSET else hit.vendor_names


def _description_in_full(entity: EntityView) -> str | UnsetType:
    return UNSET if entity.created_at is UNSET else entity.description


def _chunks_in_full(entity: EntityView) -> list[int] | UnsetType:
    return UNSET if entity.created_at is UNSET else entity.source_chunks


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
    "knowledge": ToolProfile(
        tools=tools_of_area("knowledge"),
        older={
            ChunksFound: {
                "result_ids": Made(list[int], lambda said: [each.chunk_id for each in said.results])
            },
            ChunkFound: _OF_ENTITIES | {"vendor_names": Made(list[str] | UnsetType, _names_in_full)},
            ChunkContent: _OF_ENTITIES | {"vendor_names": Made(list[str], lambda read: read.vendor_names)},
            EntityView: {
                "description": Made(str | UnsetType, _description_in_full),
                "source_chunks": Made(list[int] | UnsetType, _chunks_in_full),
            },
        },
    ),
    "code": ToolProfile(tools=CODE),
    "shared-context": SHARED_CONTEXT,
    "services": SERVICES,
    "memory-search": MEMORY_SEARCH,
    "universal-memory": UNIVERSAL_MEMORY,
}
"""Every profile by its name."""

SYSTEMS: Final[Mapping[str, str]] = {
    name: profile for profile in PROFILES for name in PROFILES[profile].tools or () if name not in REQUESTS
}
"""The profile of the original system, by older tool name."""

DEFAULT: Final = ("core",)
"""The profiles if neither the connection, nor its key, nor the settings name any."""


def older_names(profiles: Iterable[str]) -> dict[type[msgspec.Struct], dict[str, OlderName]]:
    """Return the older names in answers under several profiles."""
    merged: dict[type[msgspec.Struct], dict[str, OlderName]] = {}
    for place, name in enumerate(profiles):
        for struct, names in PROFILES[name].older.items():
            for old, today in names.items():
                if place == 0 or old not in struct.__struct_fields__:
                    merged.setdefault(struct, {}).setdefault(old, today)
    return merged
