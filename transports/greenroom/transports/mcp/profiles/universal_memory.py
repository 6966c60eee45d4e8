"""The profile for clients of the memory layer that travels between tools."""

from typing import Annotated, Final

from msgspec import Meta

from greenroom.actors.schemas.types import UNLISTED
from greenroom.transports.mcp.profiles.memory_search import FOUND_BOTH_FORMS
from greenroom.transports.mcp.profiles.profile import OlderParameter, ToolProfile

_PAGED_MEMORIES = (
    "store_memory",
    "retrieve_memory",
    "update_memory",
    "forget_memory",
    "list_memories",
    "export_memories",
    "import_memories",
    "memory_stats",
    "set_preferences",
)
_TRAVELLING = (
    "start_session",
    "restore_session",
    "get_session_context",
    "migrate_session",
    "export_session",
    "end_session",
)
_UTILITY = ("compress_text", "get_stats", "health_check")
CODE: Final = (
    "search_code_semantic",
    "symbol_search",
    "outline",
    "dependency_search",
    "similar_files",
    "code_search",
    "read_file",
)
"""The tools for code, which have a profile of their own, too."""
_WORKFLOW = ("record_workflow_step", "get_workflow_patterns", "suggest_next_action", "workflow_checkpoint")
_PREFERENCES = OlderParameter(
    "by_preferences", Annotated[bool | None, Meta(extra_json_schema=UNLISTED)], lambda _: True
)

UNIVERSAL_MEMORY: Final = ToolProfile(
    tools=(
        *_PAGED_MEMORIES,
        *_TRAVELLING,
        "reopen_session",
        *CODE,
        *_WORKFLOW,
        *_UTILITY,
        *(f"omn_{name}" for name in _PAGED_MEMORIES),
        "omn_create_session",
        *(f"omn_{name}" for name in _TRAVELLING),
        *("omn_semantic_search", "omn1_read"),
        *(f"omn_{name}" for name in (*CODE, *_WORKFLOW, *_UTILITY)),
    ),
    defaults={"omn_retrieve_memory": {"by_preferences": True}},
    parameters={"retrieve_memory": (_PREFERENCES,)},
    older=FOUND_BOTH_FORMS,
)
