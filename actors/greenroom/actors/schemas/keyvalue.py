"""Requests to an agent's key-value memory. A field is a tool's parameter: name, type, limit and default."""

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from greenroom.actors.core.replies import memory_types as kinds
from greenroom.actors.core.replies import replies
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.sessions.requests.requests import StatusOfSession
from greenroom.runtime import Address, Message


class SetMemory(Message[replies.MemoryStored], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Store a value under a key, globally or for one open session that the caller may see."""

    key: types.MemoryKey
    value: types.GivenJson
    session_id: types.BoundTo | None = None
    expires_in: types.Lifetime | None = None
    metadata: types.GivenObject = msgspec.field(default_factory=types.no_fields)
    overwrite: Annotated[bool, Meta(description="false: refuse if the key exists")] = True
    idempotency_key: types.IdempotencyKey | None = None

    def precheck(self) -> tuple[Address, Message[Any]] | None:
        """Ask the session first whether it is there for the caller, and open."""
        return None if self.session_id is None else (Address("session", self.session_id), StatusOfSession())


class GetMemory(Message[replies.MemoryRead], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Read a value, or an older version of it: the agent's own, else the user's, else the one there is."""

    key: types.MemoryKey | None = None
    memory_id: kinds.MemoryId | None = None
    session_id: types.BoundTo | None = None
    namespace: kinds.Namespace | None = None
    version: types.OldVersion | None = None


class ListMemory(Message[replies.MemoryList], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """List entries without their values, newest update first."""

    session_id: types.MemoryScope | None = None
    prefix: types.Prefix | None = None
    limit: types.Limit200 = 50
    cursor: types.Cursor | None = None
    max_tokens: types.Budget | None = None


class DeleteMemory(Message[replies.MemoryDeleted], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Delete an entry with all its versions; by an id also one of another namespace."""

    newer: ClassVar[tuple[str, ...]] = ("memory_id",)

    key: types.MemoryKey | None = None
    memory_id: kinds.MemoryId | None = None
    session_id: types.BoundTo | None = None
    idempotency_key: types.IdempotencyKey | None = None


class SweepMemory(Message[None], frozen=True, kw_only=True):
    """The memory's own timer: remove from disk what has expired or was deleted."""


class WriteUses(Message[None], frozen=True, kw_only=True):
    """The memory's own timer: write down how often memories were used."""


class SummarizeRoot(Message[None], frozen=True, kw_only=True):
    """A search's word to a memory of an older program: say in short what there is."""


class UpgradeMemory(Message[None], frozen=True, kw_only=True):
    """The memory's word to itself: index what an older program stored."""
