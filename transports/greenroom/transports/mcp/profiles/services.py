"""The profile for clients of the session and memory services."""

from typing import Final

from greenroom.transports.mcp.profiles.profile import ToolProfile

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
    )
)
