"""What a server says of itself: its name, its capabilities, its instructions.

A client hears of what its scopes open and of nothing else, and its model of listed tools alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from importlib.metadata import version
from typing import Any

import msgspec

from greenroom.actors.core.auth.scopes import EVERYTHING, allows, contexts_of, resources_of, tools_of


class ServerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What ``initialize`` and ``server/discover`` answer.

    Attributes:
        name: The name for programs.
        title: The name for people; None when there is no other.
        version: The program's version.
        instructions: How a model should use the server, in sentences, each with the scopes that it is for.
        capabilities: What it can do, in the protocol's terms.
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
        """Return how the model of a holder of ``scopes`` should use the server; None to say nothing.

        A sentence that names an unlisted tool is left out: a model calls what it is listed.
        """
        told = [
            sentence
            for needed, sentence in self.instructions
            if all(allows(scopes, each) for each in needed)
            and not any(word in unlisted for word in re.findall(r"\w+", sentence))
        ]
        return " ".join(told) or None

    def capabilities_for(self, scopes: frozenset[str]) -> dict[str, Any]:
        """Return what the server can do for a holder of ``scopes``."""
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

    @property
    def prompts_change(self) -> bool:
        """Whether clients are told when the list of prompts changes."""
        return bool(self.capabilities.get("prompts", {}).get("listChanged"))

    def with_changing_prompts(self) -> ServerInfo:
        """Return the same of a server whose list of prompts changes."""
        capabilities = {**self.capabilities, "prompts": {"listChanged": True}}
        return msgspec.structs.replace(self, capabilities=capabilities)

    def described_to(self, scopes: frozenset[str], unlisted: Collection[str] = ()) -> dict[str, Any]:
        """Return both, as answers to ``initialize`` and ``server/discover`` hold them."""
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
"""The product itself. A test shows that the SDK's server says the same of the same handlers."""
