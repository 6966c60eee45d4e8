"""Sentences of answers that name tools, worded for the client that gets them."""

from __future__ import annotations

from collections.abc import Collection

from greenroom.actors.core.auth.scopes import TOOLS, allows
from greenroom.transports.base.tool_names import tools_in, with_tools
from greenroom.transports.mcp.tools.offered_tools import ToolOffer
from greenroom.transports.mcp.tools.tool_profiles import PROFILES
from greenroom.transports.mcp.tools.tools import visible_tools


def open_to(sentence: str, scopes: frozenset[str]) -> str:
    """Return a sentence without the tools that a holder of ``scopes`` may not call."""
    return with_tools(sentence, lambda name: name if allows(scopes, TOOLS[name]) else None)


def worded_for(sentence: str, offer: ToolOffer, scopes: frozenset[str]) -> str:
    """Return the same, which says of tools that the client is not listed how it gets at them."""
    if not tools_in(sentence):
        return sentence
    told = open_to(sentence, scopes)
    listed = frozenset(visible_tools(offer.listed, offer.tools, scopes))
    missing = list(dict.fromkeys(name for name in tools_in(told) if name not in listed))
    return f"{told} ({_how_to_call(missing)})" if missing else told


def _how_to_call(names: list[str]) -> str:
    are, them = ("is", "it") if len(names) == 1 else ("are", "them")
    told = f"{' and '.join(names)} {are} not listed here: call {them} by name"
    profile = _listing(names)
    return told if profile is None else f"{told}, or connect with the tool profile {profile}"


def _listing(names: Collection[str]) -> str | None:
    """Return the narrowest profile that lists some tools; None for those that only a scope lists."""
    fitting = [
        (len(profile.tools), name)
        for name, profile in PROFILES.items()
        if profile.tools is not None and set(names) <= set(profile.tools)
    ]
    return min(fitting)[1] if fitting else "all" if all(TOOLS[name] != "admin" for name in names) else None
