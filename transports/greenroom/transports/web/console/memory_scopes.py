"""The scopes of memories in words."""

from __future__ import annotations

from greenroom.actors.core.auth.namespaces import AGENT, PROJECT


def readers_of(scope: str, namespace: str, user: str | None) -> str:
    """Return who sees a memory, for a visitor who owns it.

    Args:
        scope: The memory's scope.
        namespace: Its namespace; empty for the visitor's own.
        user: The visitor's user.
    """
    if scope == "public":
        return "everybody"
    if scope == "shared":
        where = "its project" if namespace.startswith(PROJECT) else "its owner's projects"
        return f"all members of {where}"
    if user is None or namespace.startswith(AGENT):
        return "its agent alone"
    return "you and all agents that work for you"
