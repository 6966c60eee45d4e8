"""The server's description: name, capabilities, instructions.

A client learns only about requests that its scopes open, and its model only about listed tools.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from importlib.metadata import version
from typing import Any

import msgspec

from greenroom.actors.core.auth.scopes import EVERYTHING, allows, contexts_of, resources_of, tools_of


class ServerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to ``initialize`` and ``server/discover``.

    Attributes:
        instructions: How a model should use the server: sentences, each with the scopes that it needs.
        capabilities: Its capabilities, in the protocol's terms.
    """

    name: str
    version: str
    capabilities: dict[str, Any]
    title: str | None = None
    instructions: tuple[tuple[tuple[str, ...], str], ...] = ()

    @property
    def implementation(self) -> dict[str, str]:
        """The protocol's ``Implementation``."""
        named = {"name": self.name, "title": self.title, "version": self.version}
        return {key: value for key, value in named.items() if value is not None}

    def instructions_for(self, scopes: frozenset[str], unlisted: Collection[str] = ()) -> str | None:
        """Return the instructions for a holder of ``scopes``; None if there are none.

        Sentences that name an unlisted tool are left out, because a model calls listed tools.
        """
        told = [
            sentence
            for needed, sentence in self.instructions
            if all(allows(scopes, each) for each in needed)
            and not any(word in unlisted for word in re.findall(r"\w+", sentence))
        ]
        return " ".join(told) or None

    def capabilities_for(self, scopes: frozenset[str]) -> dict[str, Any]:
        """Return the capabilities for a holder of ``scopes``."""
        closed: set[str] = set()
        if EVERYTHING not in scopes and not tools_of(scopes):
            closed |= {"tools"}
        if EVERYTHING not in scopes and not resources_of(scopes):
            closed |= {"resources"}
        if EVERYTHING not in scopes and not contexts_of(scopes):
            closed |= {"prompts"}
        if {"resources", "prompts"} <= closed:
            closed |= {"completions"}
        return {name: value for name, value in self.capabilities.items() if name not in closed}

    def with_changing_prompts(self) -> ServerInfo:
        """Return this description for a server with a changing list of prompts."""
        capabilities = {**self.capabilities, "prompts": {"listChanged": True}}
        return msgspec.structs.replace(self, capabilities=capabilities)

    def described_to(self, scopes: frozenset[str], unlisted: Collection[str] = ()) -> dict[str, Any]:
        """Return both, as the answers of ``initialize`` and ``server/discover`` have them."""
        instructions = self.instructions_for(scopes, unlisted)
        said = {} if instructions is None else {"instructions": instructions}
        return {"capabilities": self.capabilities_for(scopes), **said}


GREENROOM = ServerInfo(
    name="greenroom",
    title="Greenroom",
    version=version("greenroom"),
    instructions=(
        ((), "Shared sessions and memory for agents that work together."),
        (
            ("sessions:read", "sessions:write"),
            (
                "Begin your work with start_session: it offers the session of this project that another tool "
                "left; record_context notes what the next one should know."
            ),
        ),
        (
            ("sessions:read", "sessions:write"),
            "Create or list sessions, add messages to them, search what others wrote.",
        ),
        (("memory:read", "memory:write"), "Keep your own notes with set_memory and get_memory."),
        (
            ("memory:read",),
            "Before a task, recall_context tells what is known; memory_search finds in all that you may see.",
        ),
        (("memory:write",), "What is worth knowing later, store_memory remembers for your user."),
        (
            ("sessions:read", "memory:read"),
            "Sessions and your memory are resources, too: subscribe to hear of changes.",
        ),
    ),
    capabilities={
        "completions": {},
        "prompts": {"listChanged": False},
        "resources": {"listChanged": False, "subscribe": True},
        "tools": {"listChanged": False},
    },
)
"""The product itself. A test shows that the SDK's server describes the same handlers in the same way."""
