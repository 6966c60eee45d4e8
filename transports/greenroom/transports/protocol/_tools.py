"""The tools: a name, words for the model that chooses among them, and the request each becomes.

Parameters, limits and replies are declared once, on the request structs of
`greenroom.actors`; schemas are generated from them. The words here are paid for by every
model that lists the tools, so they say when to take which tool and nothing twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from greenroom.actors import REQUESTS, is_write, parse_request
from greenroom.transports.protocol._schema import input_schema, output_schema, reply_type


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """One tool of the listing.

    Attributes:
        name: The wire name.
        title: The name for people.
        description: When a model should take this tool, and what it gets.
        overwrites: It may replace or remove what was there.
        repeatable: A second call with the same arguments changes nothing more.
        weight: How large its answer may be, in megabytes or so; 0 for one that is small anyway.
        by_sdk: It talks to the client while it runs, so the SDK's server carries it out.
    """

    name: str
    title: str
    description: str
    overwrites: bool = False
    repeatable: bool = False
    weight: int = 0
    by_sdk: bool = False

    @property
    def request(self) -> type[Any]:
        """The struct whose fields are the tool's parameters."""
        return REQUESTS[self.name]

    def parse(self, arguments: bytes) -> Any:
        """Return the request in a call's arguments.

        Raises:
            Refusal: the arguments do not fit; it names the field, the limit and the value's size.
        """
        return parse_request(self.request, arguments)

    def listing(self) -> dict[str, Any]:
        """Return the tool's entry of ``tools/list``."""
        reads = not is_write(self.request)
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": input_schema(self.request),
            "outputSchema": output_schema(reply_type(self.request)),
            "annotations": {
                "readOnlyHint": reads,
                "destructiveHint": self.overwrites,
                "idempotentHint": reads or self.repeatable,
                "openWorldHint": False,
            },
        }


_ALL = (
    Tool(
        name="create_session",
        title="Create session",
        description="Open a shared session that other agents can join. Take this when new joint work begins; "
        "use list_sessions first if it may already exist.",
    ),
    Tool(
        name="get_session",
        title="Get session",
        description="Look at one session: purpose, status, metadata, statistics and its newest messages. "
        "The quickest way to catch up.",
        weight=4,
    ),
    Tool(
        name="list_sessions",
        title="List sessions",
        description="Find sessions when you have no session_id, latest activity first; "
        "by status or project if you like.",
        weight=4,
    ),
    Tool(
        name="update_session",
        title="Update session",
        description="Change a session's status, metadata or state, for example to pause or terminate it. "
        "To say something in it, use add_message.",
        overwrites=True,
        repeatable=True,
        weight=4,
    ),
    Tool(
        name="add_message",
        title="Add message",
        description="Write a message into a session, to the other agents or (private) to yourself.",
    ),
    Tool(
        name="get_messages",
        title="Get messages",
        description="Read a session's messages in order, oldest first, page by page; "
        "with since_id only what is new. To find something, use search_context.",
        weight=4,
    ),
    Tool(
        name="search_context",
        title="Search session",
        description="Find messages in a session by what they say; tolerates typos and other word forms, "
        "best match first. By default the last 24 hours: recent_hours null searches everything.",
        weight=4,
    ),
    Tool(
        name="search_by_sender",
        title="Search by sender",
        description="Read what one agent wrote in a session, newest first.",
        weight=4,
    ),
    Tool(
        name="search_by_timerange",
        title="Search by time",
        description="Read what was written in a session between two times, oldest first.",
        weight=4,
    ),
    Tool(
        name="set_memory",
        title="Set memory",
        description="Remember a JSON value under a key, for yourself alone: everywhere, "
        "or in one session with session_id; for good, or for expires_in seconds. "
        "Other agents never see it; to tell them, use add_message.",
        overwrites=True,
    ),
    Tool(
        name="get_memory",
        title="Get memory",
        description="Recall a value that you remembered with set_memory, by key and the same session_id. "
        "Not sure of the key: list_memory.",
        weight=1,
    ),
    Tool(
        name="list_memory",
        title="List memory",
        description="List the keys that you remembered, without values, newest change first.",
        weight=4,
    ),
    Tool(
        name="delete_memory",
        title="Delete memory",
        description="Forget a key for good; answers whether it existed.",
        overwrites=True,
        repeatable=True,
    ),
)

TOOLS: Mapping[str, Tool] = {tool.name: tool for tool in _ALL}
"""Every tool by name, in the order of the listing."""
