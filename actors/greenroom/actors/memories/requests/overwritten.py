"""The request for a user's memories that others have changed; not a tool."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from greenroom.actors.memories.requests.replies import MemoryView
from greenroom.runtime import Message


class OverwrittenMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory whose newest version another user wrote.

    Attributes:
        own: The last version by the memory's owner.
        version: The number of the newest version.
        by: Who wrote that: the user, or the agent without a user; empty if unknown.
    """

    own: MemoryView
    version: int
    at: datetime
    by: str


class ListOverwritten(Message[list[OverwrittenMemory]], frozen=True, kw_only=True):
    """List the caller's memories of a root that others have changed, latest change first.

    Attributes:
        tags: The owner's version has one of these.
    """

    tags: list[str]
    limit: Annotated[int, Meta(ge=1, le=100)]
