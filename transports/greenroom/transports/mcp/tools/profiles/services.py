"""The profile for clients of the session and memory services."""

from typing import Any, Final

import msgspec
from msgspec import UNSET

from greenroom.actors.core.replies import replies
from greenroom.actors.memories.recall.replies import MemoryHit
from greenroom.actors.memories.requests.replies import MemoryView, VersionView
from greenroom.transports.mcp.tools.profiles.profile import Made, ToolProfile


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
