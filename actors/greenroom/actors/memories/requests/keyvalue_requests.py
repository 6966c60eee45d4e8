"""Requests to an agent's key-value memory; a field is a tool's parameter."""

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from greenroom.actors.core.operations import ToolText, operation
from greenroom.actors.core.replies import memory_types as kinds
from greenroom.actors.core.replies import replies
from greenroom.actors.core.resources.resources import Resource
from greenroom.actors.core.resources.resources import ResourceInfo as ResourceInfo
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.core.validation.types import StatusOfSession
from greenroom.runtime import Address, Message


@operation(
    "set_memory",
    scope="memory:write",
    route="agent",
    tool=ToolText(
        title="Set memory",
        description="Keep a JSON value under a key for yourself alone, everywhere or in one "
        "session, for good or for expires_in seconds.",
        overwrites=True,
    ),
)
class SetMemory(Message[replies.MemoryStored], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Store a value under a key, globally or for one open, visible session."""

    key: types.MemoryKey
    value: types.GivenJson
    session_id: types.BoundTo | None = None
    expires_in: types.Lifetime | None = None
    metadata: types.GivenObject = msgspec.field(default_factory=types.no_fields)
    overwrite: Annotated[bool, Meta(description="false: refuse if the key exists")] = True
    idempotency_key: types.IdempotencyKey | None = None

    def precheck(self) -> tuple[Address, Message[Any]] | None:
        """Query the session first: it must be open and visible to the caller."""
        return None if self.session_id is None else (Address("session", self.session_id), StatusOfSession())


@operation(
    "get_memory",
    scope="memory:read",
    route="agent",
    by_memory_id=True,
    tool=ToolText(
        title="Get memory",
        description="Open one remembered item by its key: read or fetch exactly what is stored "
        "under it, the whole text or value with its tags, your own first, then your "
        "user's, then a project's. If you don't know its key: memory_search.",
        weight=1,
    ),
)
class GetMemory(Message[replies.MemoryRead], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Read a value or an older version, of the agent, else the user, else anyone."""

    only_reads: ClassVar[bool] = True

    key: types.MemoryKey | None = None
    memory_id: kinds.MemoryId | None = None
    session_id: types.BoundTo | None = None
    namespace: kinds.Namespace | None = None
    version: types.OldVersion | None = None


@operation(
    "list_memory",
    scope="memory:read",
    route="agent",
    tool=ToolText(
        title="List memory",
        description="List the keys that you remembered, without values, newest change first.",
        weight=4,
    ),
)
class ListMemory(Message[replies.MemoryList], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """List entries without their values, newest update first."""

    only_reads: ClassVar[bool] = True

    session_id: types.MemoryScope | None = None
    prefix: types.Prefix | None = None
    limit: types.Limit200 = 50
    cursor: types.Cursor | None = None
    max_tokens: types.Budget | None = None


@operation(
    "delete_memory",
    scope="memory:write",
    route="agent",
    by_memory_id=True,
    tool=ToolText(
        title="Delete memory",
        description="Forget a key for good; answers whether it existed.",
        overwrites=True,
        repeatable=True,
    ),
)
class DeleteMemory(Message[replies.MemoryDeleted], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Delete an entry with all its versions; by an id also one of another namespace."""

    newer: ClassVar[tuple[str, ...]] = ("memory_id",)

    key: types.MemoryKey | None = None
    memory_id: kinds.MemoryId | None = None
    session_id: types.BoundTo | None = None
    idempotency_key: types.IdempotencyKey | None = None


class SweepMemory(Message[None], frozen=True, kw_only=True):
    """The memory's own timer: remove expired and deleted records from the disk."""


class WriteUses(Message[None], frozen=True, kw_only=True):
    """The memory's own timer: write the waiting uses."""


class UpgradeMemory(Message[None], frozen=True, kw_only=True):
    """Index memories of an older program; the memory sends it to itself."""


class MemoryItem(replies.MemoryEntry, frozen=True, kw_only=True):
    """An entry with its value; `GetMemory` returns a value larger than 1 MB."""

    value: msgspec.Raw | UnsetType = UNSET
    metadata: msgspec.Raw


class MemoryByScope(msgspec.Struct, frozen=True, kw_only=True, rename={"global_": "global"}):
    """Entries by their keys, newest update first: global ones, and those of each session."""

    global_: dict[str, MemoryItem]
    sessions: dict[str, dict[str, MemoryItem]]


class MemoryCounts(msgspec.Struct, frozen=True, kw_only=True, rename={"global_": "global"}):
    """The number of entries by scope, including those on other pages."""

    global_: int
    sessions: dict[str, int]
    total: int


class MemoryFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The number of global keys, of sessions with keys, and of all entries."""

    global_keys: int
    session_scopes: int
    total_entries: int


class MemoryResource(Resource, frozen=True, kw_only=True):
    """A page of an agent's memory: its newest entries by scope.

    ``cursor`` leads to older entries: as ``?cursor=`` after the URI, or in `ListMemory` of all scopes.
    """

    agent_id: str
    memory: MemoryByScope
    counts: MemoryCounts
    statistics: MemoryFigures
    has_more: bool
    cursor: str | None
    resource_info: ResourceInfo
