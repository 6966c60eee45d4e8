"""The profile for clients of the memory layer that travels between tools."""

from typing import Final

from greenroom.transports.mcp.profiles.memory_search import FOUND_BOTH_FORMS
from greenroom.transports.mcp.profiles.profile import ToolProfile

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

UNIVERSAL_MEMORY: Final = ToolProfile(
    tools=(
        *_PAGED_MEMORIES,
        *_TRAVELLING,
        "reopen_session",
        *(f"omn_{name}" for name in _PAGED_MEMORIES),
        "omn_create_session",
        *(f"omn_{name}" for name in _TRAVELLING),
    ),
    older=FOUND_BOTH_FORMS,
)
