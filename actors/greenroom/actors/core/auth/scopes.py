"""Scopes: the table of the scope that each tool and resource needs, and pure functions over it.

A scope is ``area:deed``, such as ``sessions:read``, or the word ``admin``. Whoever holds ``*`` may do
everything, ``memory:*`` everything with memories, ``*:read`` may read what agents work with: sessions,
memories, knowledge, code and how the server is. The audit log tells of everybody, so only ``audit:read``,
``audit:*`` and ``*`` open it.

What is not in the table needs ``admin``: what somebody forgets to list here stays closed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

EVERYTHING: Final = "*"
ADMIN: Final = "admin"
AUDIT: Final = "audit:read"
CODE: Final = "code:read"
SERVER: Final = "server:read"
KNOWLEDGE: Final = "knowledge:read"
SESSIONS: Final = "sessions:read"

SCOPES: Final = (
    "sessions:read",
    "sessions:write",
    "memory:read",
    "memory:write",
    "knowledge:read",
    "knowledge:write",
    CODE,
    SERVER,
    AUDIT,
    ADMIN,
)
"""Every scope that something needs, or will."""

_AREAS: Final = tuple(dict.fromkeys(scope.partition(":")[0] for scope in SCOPES if ":" in scope))
WILDCARDS: Final = (EVERYTHING, *(f"{area}:*" for area in _AREAS), "*:read", "*:write")

TOOLS: Final[Mapping[str, str]] = {
    "create_session": "sessions:write",
    "get_session": "sessions:read",
    "list_sessions": "sessions:read",
    "update_session": "sessions:write",
    "reopen_session": "sessions:write",
    "add_message": "sessions:write",
    "get_messages": "sessions:read",
    "search_context": "sessions:read",
    "search_by_sender": "sessions:read",
    "search_by_timerange": "sessions:read",
    "record_context": "sessions:write",
    "get_session_context": "sessions:read",
    "end_session": "sessions:write",
    "set_memory": "memory:write",
    "get_memory": "memory:read",
    "list_memory": "memory:read",
    "delete_memory": "memory:write",
    "store_memory": "memory:write",
    "retrieve_memory": "memory:read",
    "memory_search": "memory:read",
    "recall_context": "memory:read",
    "update_memory": "memory:write",
    "rate_memory": "memory:write",
    "forget_memory": "memory:write",
    "list_memories": "memory:read",
    "list_memory_versions": "memory:read",
    "memory_stats": "memory:read",
    "set_preferences": "memory:write",
    "import_memories": "memory:write",
    "export_memories": "memory:read",
    "semantic_search": "knowledge:read",
    "get_full_content": "knowledge:read",
    "list_corpora": "knowledge:read",
    "ingest_documents": "knowledge:write",
    "find_vendor_info": "knowledge:read",
    "find_entity": "knowledge:read",
    "suggest_entities": "knowledge:read",
    "define_entities": "knowledge:write",
    "search_code_semantic": CODE,
    "read_file": CODE,
    "symbol_search": CODE,
    "outline": CODE,
    "code_search": CODE,
    "dependency_search": CODE,
    "compress_text": SERVER,
    "get_stats": SERVER,
    "health_check": SERVER,
    "similar_files": CODE,
    "start_session": "sessions:write",
    "restore_session": "sessions:write",
    "migrate_session": "sessions:write",
    "export_session": "sessions:read",
    "record_workflow_step": "sessions:write",
    "get_workflow_patterns": "sessions:read",
    "suggest_next_action": "sessions:read",
    "workflow_checkpoint": "sessions:write",
    "get_audit_log": AUDIT,
    "create_api_key": ADMIN,
    "list_api_keys": ADMIN,
    "rotate_api_key": ADMIN,
    "revoke_api_key": ADMIN,
    "erase_user": ADMIN,
}
"""What each tool needs, by its name; an older name needs what its successor does."""

CONSOLE_REQUESTS: Final[Mapping[str, str]] = {
    "memory_map": "memory:read",
    "browse_memories": "memory:read",
    "browse_namespaces": "memory:read",
    "inspect_memory": "memory:read",
    "list_memory_pairs": "memory:read",
    "list_forgotten": "memory:read",
    "restore_memory": "memory:write",
    "merge_memories": "memory:write",
    "move_memory": "memory:write",
    "withdraw_rating": "memory:write",
    "settle_memory_pair": "memory:write",
    "browse_corpora": "knowledge:read",
    "list_documents": "knowledge:read",
    "list_entities": "knowledge:read",
    "list_workspaces": CODE,
    "list_workspace_files": CODE,
    "find_sessions": SESSIONS,
    "list_passports": SESSIONS,
    "read_transcript": SESSIONS,
    "list_told": "memory:read",
    "explain_search": "memory:read",
    "explain_documents": "knowledge:read",
    "explain_session_search": SESSIONS,
    "explain_code": CODE,
    "get_overview": SERVER,
    "list_people": ADMIN,
    "get_own_key": SERVER,
    "end_browser": ADMIN,
    "get_audit_state": AUDIT,
    "verify_audit": AUDIT,
    "export_audit_log": AUDIT,
}
"""What each request needs that only people's console asks, by its name."""

RESOURCES: Final[Mapping[str, str]] = {
    "session": "sessions:read",
    "memory": "memory:read",
    "export": "memory:read",
    "passport": "sessions:read",
    "preferences": "memory:read",
    "project": "knowledge:read",
    "corpus": "knowledge:read",
    "workspace": CODE,
    "savings": SERVER,
    "workflow": "sessions:read",
}
"""What reading a resource and subscribing to it need, by the kind of actor that has it."""

PROMPTS: Final[Mapping[str, str]] = {"code": CODE, "memory": "memory:read", "session": "sessions:read"}
"""What each kind of context needs that prompts are filled with; any of them opens the prompts."""

NEEDED: Final[Mapping[str, str]] = {
    **TOOLS,
    **CONSOLE_REQUESTS,
    **{f"resource {kind}": scope for kind, scope in RESOURCES.items()},
    **{f"prompts with {kind}": scope for kind, scope in PROMPTS.items()},
}
"""What everything needs that is checked."""


def needed_for_request(name: str) -> str:
    """Return the scope that a request needs, by the name of its tool or its path."""
    return TOOLS.get(name) or CONSOLE_REQUESTS.get(name, ADMIN)


def allows(scopes: Iterable[str], needed: str) -> bool:
    """Return whether a holder of ``scopes`` may do what needs ``needed``."""
    held = scopes if isinstance(scopes, frozenset) else frozenset(scopes)
    if EVERYTHING in held or needed in held:
        return True
    area, _, deed = needed.partition(":")
    return bool(deed) and (f"{area}:*" in held or (f"*:{deed}" in held and needed != AUDIT))


@lru_cache(maxsize=256)
def tools_of(scopes: frozenset[str]) -> frozenset[str]:
    """Return the names of the tools that a holder of ``scopes`` may call."""
    return frozenset(name for name, needed in TOOLS.items() if allows(scopes, needed))


@lru_cache(maxsize=256)
def resources_of(scopes: frozenset[str]) -> frozenset[str]:
    """Return the kinds of resources that a holder of ``scopes`` may read."""
    return frozenset(kind for kind, needed in RESOURCES.items() if allows(scopes, needed))


@lru_cache(maxsize=256)
def contexts_of(scopes: frozenset[str]) -> frozenset[str]:
    """Return the kinds of context that prompts are filled with for a holder of ``scopes``."""
    return frozenset(kind for kind, needed in PROMPTS.items() if allows(scopes, needed))


def unknown_scopes(scopes: Iterable[str]) -> list[str]:
    """Return those of ``scopes`` that do not exist."""
    return sorted(set(scopes).difference(SCOPES, WILDCARDS))
