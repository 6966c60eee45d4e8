"""Reading one resource: the request, and what the two kinds of resources hold."""

from datetime import datetime

import msgspec

from greenroom.actors.schemas import replies
from greenroom.runtime import Message


class ResourceInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a resource says of itself.

    Attributes:
        uri: Its URI.
        reader: The agent that it was put together for; another one may see more or less.
        last_updated: When it changed last, as far as the reader may see; None when it holds nothing.
        supports_subscriptions: Whether changes of it can be subscribed to.
    """

    uri: str
    reader: str
    last_updated: datetime | None
    supports_subscriptions: bool = True


class SessionResource(msgspec.Struct, frozen=True, kw_only=True):
    """A session with the newest messages that the reader may see, oldest of them first.

    ``cursor`` leads `GetMessages` further back.
    """

    session: replies.SessionView
    messages: list[replies.MessageView]
    statistics: replies.SessionStatistics
    has_more: bool
    cursor: str | None
    resource_info: ResourceInfo


class MemoryByScope(msgspec.Struct, frozen=True, kw_only=True, rename={"global_": "global"}):
    """Entries without their values, newest update first: global ones, and those of each session."""

    global_: list[replies.MemoryEntry]
    sessions: dict[str, list[replies.MemoryEntry]]


class MemoryCounts(msgspec.Struct, frozen=True, kw_only=True, rename={"global_": "global"}):
    """How many entries there are, also those that the resource has no room for."""

    global_: int
    sessions: dict[str, int]
    total: int


class MemoryResource(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's memory: its newest entries by scope.

    ``cursor`` leads `ListMemory` of all scopes further back.
    """

    agent_id: str
    memory: MemoryByScope
    counts: MemoryCounts
    has_more: bool
    cursor: str | None
    resource_info: ResourceInfo


class ExportResource(msgspec.Struct, frozen=True, kw_only=True):
    """An export of memories: its text, which is of another type than other resources."""

    uri: str
    mime_type: str
    text: str


class ReadResource(Message[SessionResource | MemoryResource | ExportResource], frozen=True, kw_only=True):
    """Read a session, one's own memory, or an export by its URI."""

    uri: str
