"""Which tools a local user is shown, by default and at most."""

from __future__ import annotations

from greenroom.actors import REQUESTS
from greenroom.actors.app.requests import TOOL_SCOPES
from greenroom.actors.core.auth import scopes

CORE = [
    "start_session", "record_context", "end_session", "list_sessions", "get_session", "add_message",
    "get_messages", "search_context", "store_memory", "get_memory", "memory_search", "recall_context",
    "update_memory", "forget_memory", "list_memories",
]  # fmt: skip
"""What is listed unless somebody chose something else."""

LISTED = {name for name in REQUESTS if TOOL_SCOPES[name] not in {scopes.ADMIN, scopes.AUDIT}}
"""The tools of administration are listed to those alone who hold their scopes by name."""
