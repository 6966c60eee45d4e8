"""What a server says of itself when a client comes: its name, what it can do, how to use it."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import msgspec


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """What ``initialize`` and ``server/discover`` answer.

    Attributes:
        name: The name for programs.
        title: The name for people; None when there is no other.
        version: The program's version.
        instructions: How a model should use the server; None to say nothing.
        capabilities: What it can do, in the protocol's terms.
    """

    name: str
    version: str
    capabilities: dict[str, Any]
    title: str | None = None
    instructions: str | None = None

    @property
    def implementation(self) -> dict[str, str]:
        """The protocol's ``Implementation``."""
        named = {"name": self.name, "title": self.title, "version": self.version}
        return {key: value for key, value in named.items() if value is not None}


GREENROOM = Profile(
    name="greenroom",
    title="Greenroom",
    version=version("greenroom"),
    instructions=(
        "Shared sessions and memory for agents that work together. "
        "Begin your work with start_session: it offers the session of this project that another tool left; "
        "record_context notes what the next one should know. "
        "Create or list sessions, add messages to them, search what others wrote; "
        "keep your own notes with set_memory and get_memory. "
        "Before a task, recall_context tells what is known; store_memory remembers for your user, "
        "and memory_search finds in all that you may see. "
        "Sessions and your memory are resources, too: subscribe to hear of changes."
    ),
    capabilities={
        "completions": {},
        "resources": {"listChanged": False, "subscribe": True},
        "tools": {"listChanged": False},
    },
)
"""The product itself. A test shows that the SDK's server says the same of the same handlers."""
