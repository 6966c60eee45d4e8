"""Scopes: the list, the scopes that resources and prompts need, and pure functions.

A scope is ``area:action``, such as ``sessions:read``, or the word ``admin``. ``*`` allows everything;
``memory:*`` allows everything with memories. ``*:read`` allows reading sessions, memories, knowledge, code
and the server's state. The audit log covers all users, so only ``audit:read``, ``audit:*`` and ``*`` open it.

An operation declares its scope (`operations`); an unknown operation needs ``admin``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from greenroom.actors.core.operations import all_operations

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
"""Every scope."""

_AREAS: Final = tuple(dict.fromkeys(scope.partition(":")[0] for scope in SCOPES if ":" in scope))
WILDCARDS: Final = (EVERYTHING, *(f"{area}:*" for area in _AREAS), "*:read", "*:write")

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
"""The scope for reading and subscribing to a resource, by the kind of its actor."""

PROMPTS: Final[Mapping[str, str]] = {"code": CODE, "memory": "memory:read", "session": "sessions:read"}
"""The scope for each kind of context in prompts; any of them opens the prompts."""


def needed_for_request(name: str) -> str:
    """Return the scope of an operation by its name; ``admin`` for an unknown name."""
    found = all_operations().get(name)
    return ADMIN if found is None else found.scope


def allows(scopes: Iterable[str], needed: str) -> bool:
    """Return whether ``scopes`` include ``needed``."""
    held = scopes if isinstance(scopes, frozenset) else frozenset(scopes)
    if EVERYTHING in held or needed in held:
        return True
    area, _, action = needed.partition(":")
    return bool(action) and (f"{area}:*" in held or (f"*:{action}" in held and needed != AUDIT))


@lru_cache(maxsize=256)
def tools_of(scopes: frozenset[str]) -> frozenset[str]:
    """Return the tools that ``scopes`` open; raise the same errors as `needed_for_request`."""
    return frozenset(
        each.name
        for each in all_operations().values()
        if each.tool is not None and allows(scopes, each.scope)
    )


@lru_cache(maxsize=256)
def resources_of(scopes: frozenset[str]) -> frozenset[str]:
    """Return the kinds of resources that ``scopes`` open."""
    return frozenset(kind for kind, needed in RESOURCES.items() if allows(scopes, needed))


@lru_cache(maxsize=256)
def contexts_of(scopes: frozenset[str]) -> frozenset[str]:
    """Return the kinds of context in prompts that ``scopes`` open."""
    return frozenset(kind for kind, needed in PROMPTS.items() if allows(scopes, needed))


def unknown_scopes(scopes: Iterable[str]) -> list[str]:
    """Return the scopes that do not exist."""
    return sorted(set(scopes).difference(SCOPES, WILDCARDS))
