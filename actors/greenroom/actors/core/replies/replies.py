"""Replies of the tools. Fields are named as on the wire; times are aware UTC.

With ``max_tokens``, ``left_out`` counts the items within ``limit`` that are not in the reply, and
``over_budget`` names the items that alone exceed the budget. The next page begins after these.
"""

from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from greenroom.actors.core.auth.policy import Visibility, VisibilityFilter
from greenroom.actors.core.replies.damage import Damaged
from greenroom.actors.core.replies.empty_reasons import EmptyBecause
from greenroom.actors.core.replies.memory_types import AnImportSource
from greenroom.actors.core.replies.paging import OverBudget
from greenroom.actors.core.validation.types import BRIEF, UNLISTED, SessionStatus

OtherForms = Annotated[list[str], Meta(extra_json_schema=UNLISTED)]
Relevance = Literal["high", "medium", "low"]
Scope = Literal["session", "global"]


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The base of every successful reply.

    Attributes:
        damaged: Entries that are missing because they are damaged on disk; unset if there are none.
    """

    success: bool = True
    damaged: Annotated[Damaged, Meta(extra_json_schema=UNLISTED)] | UnsetType = UNSET


class ListReply(Reply, frozen=True, kw_only=True):
    """The base of the replies of searches and listings.

    Attributes:
        lists: The members with the results; the reply is empty if all these members are empty.
        empty_because: The reason for an empty reply.
    """

    lists: ClassVar[tuple[str, ...]]

    empty_because: Annotated[EmptyBecause, Meta(extra_json_schema=UNLISTED)] | UnsetType = UNSET

    @property
    def lacks_reason(self) -> bool:
        """Whether the reply is empty and gives no reason."""
        for name in self.lists:  # runs for every reply, and `any` takes three times as long
            if getattr(self, name):
                return False
        return self.empty_because is UNSET


class PartialReply(ListReply, frozen=True, kw_only=True):
    """The base of replies that may be incomplete: another call may find more."""

    partial: bool | UnsetType = UNSET
    partial_reason: Annotated[str, Meta(extra_json_schema=UNLISTED)] | UnsetType = UNSET


TooLarge = Annotated[list[OverBudget], Meta(extra_json_schema=BRIEF)]


class MessageView(msgspec.Struct, frozen=True, kw_only=True):
    """A message as its readers get it."""

    message_id: int
    sender: str
    content: str
    timestamp: datetime
    visibility: Visibility
    message_type: str
    metadata: msgspec.Raw
    parent_message_id: int | None


class SessionView(msgspec.Struct, frozen=True, kw_only=True):
    """A session with its metadata and state."""

    session_id: str
    purpose: str
    status: SessionStatus
    created_at: datetime
    created_by: str
    updated_at: datetime
    terminated_at: datetime | None
    app_name: str | None
    user_id: str | None
    project_id: str | None
    metadata: msgspec.Raw
    state: msgspec.Raw


class SessionStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of the visible messages."""

    message_count: int
    unique_agents: int
    last_activity: datetime


class SessionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A session in a listing, with the count and the last activity of visible messages."""

    session_id: str
    purpose: str
    status: SessionStatus
    created_at: datetime
    created_by: str
    app_name: str | None
    user_id: str | None
    project_id: str | None
    message_count: int
    last_activity: datetime


class SessionCreated(Reply, frozen=True, kw_only=True):
    """Answers `CreateSession`."""

    session_id: str
    created_at: datetime
    created_by: str


class SessionRead(Reply, frozen=True, kw_only=True):
    """Answers `GetSession` with the newest messages, oldest of them first.

    ``cursor`` leads `GetMessages` further back.
    """

    session: SessionView
    messages: list[MessageView]
    statistics: SessionStatistics
    has_more: bool
    cursor: str | None


class SessionList(ListReply, frozen=True, kw_only=True):
    """Answers `ListSessions`, newest activity first."""

    lists: ClassVar[tuple[str, ...]] = ("sessions",)

    sessions: list[SessionSummary]
    count: int
    next_cursor: str | None
    left_out: int | UnsetType = UNSET
    over_budget: TooLarge | UnsetType = UNSET


class SessionUpdated(Reply, frozen=True, kw_only=True):
    """Answers `UpdateSession`."""

    session: SessionView


class MessageAdded(Reply, frozen=True, kw_only=True):
    """Answers `AddMessage`."""

    message_id: int
    timestamp: datetime


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """A complete call of a tool."""

    tool: str
    arguments: dict[str, Any]


Continued = Annotated[str | UnsetType, Meta(extra_json_schema=UNLISTED)]
"""The ended session that a session continues; few sessions continue one."""
UnlistedCall = Annotated[ToolCall | UnsetType, Meta(extra_json_schema=UNLISTED)]
"""The call that continues reading, if there is one."""


class MessagePage(ListReply, frozen=True, kw_only=True):
    """Answers `GetMessages`; ``total`` counts the visible messages after filters.

    In a session without messages, ``continues`` names the session that it continues, and ``earlier`` is the
    call that reads that one.
    """

    lists: ClassVar[tuple[str, ...]] = ("messages",)

    messages: list[MessageView]
    count: int
    total: int
    next_cursor: str | None
    left_out: int | UnsetType = UNSET
    over_budget: TooLarge | UnsetType = UNSET
    continues: Continued = UNSET
    earlier: UnlistedCall = UNSET


class SearchHit(msgspec.Struct, frozen=True, kw_only=True):
    """One match; the offsets count characters within ``match_preview``."""

    message: MessageView
    score: float
    match_preview: str
    match_start: int
    match_end: int
    relevance: Relevance


class SearchResults(PartialReply, frozen=True, kw_only=True):
    """Answers `SearchContext`; ``truncated``: visible messages or matches were left out.

    ``partial``: the search used words only, or some messages were not compared by meaning; a later search may
    find more.
    """

    lists: ClassVar[tuple[str, ...]] = ("results",)

    results: list[SearchHit]
    query: str
    threshold: float
    search_scope: VisibilityFilter
    message_count: int
    scanned: int
    truncated: bool
    left_out: int | UnsetType = UNSET
    over_budget: TooLarge | UnsetType = UNSET


class SenderMessages(ListReply, frozen=True, kw_only=True):
    """Answers `SearchBySender`; ``truncated`` says that there are more."""

    lists: ClassVar[tuple[str, ...]] = ("messages",)

    messages: list[MessageView]
    sender: str
    count: int
    truncated: bool
    left_out: int | UnsetType = UNSET
    over_budget: TooLarge | UnsetType = UNSET


class TimeRange(msgspec.Struct, frozen=True, kw_only=True):
    """The requested span; both ends are included."""

    start: datetime
    end: datetime


class TimeRangeMessages(ListReply, frozen=True, kw_only=True):
    """Answers `SearchByTimerange`; ``truncated`` says that there are more."""

    lists: ClassVar[tuple[str, ...]] = ("messages",)

    messages: list[MessageView]
    timerange: TimeRange
    count: int
    truncated: bool
    left_out: int | UnsetType = UNSET
    over_budget: TooLarge | UnsetType = UNSET


class MemoryStored(Reply, frozen=True, kw_only=True):
    """Answers `SetMemory`."""

    key: str
    scope: Scope
    expires_at: datetime | None
    stored_at: datetime
    version: int


class MemoryRead(Reply, frozen=True, kw_only=True):
    """Answers `GetMemory`; for an older version ``updated_at`` is when that version was stored.

    Attributes:
        namespace: Its namespace, unless it is the agent's own; then ``value`` is the content, a string.
        also_in: Other namespaces in which the key was found.
        imported: The author that an import claims; the importer is the author.
        other_forms: Keys of other memories that differ only in the form of Unicode.
    """

    key: str
    value: msgspec.Raw
    metadata: msgspec.Raw
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None
    scope: Scope
    version: int
    namespace: str | UnsetType = UNSET
    also_in: list[str] | UnsetType = UNSET
    imported: AnImportSource | UnsetType = UNSET
    other_forms: OtherForms | UnsetType = UNSET


class MemoryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry without its value; the value's size is in bytes of JSON."""

    key: str
    scope: Scope
    session_id: str | None
    version: int
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None
    value_size: int


class MemoryList(ListReply, frozen=True, kw_only=True):
    """Answers `ListMemory`, newest update first."""

    lists: ClassVar[tuple[str, ...]] = ("entries",)

    entries: list[MemoryEntry]
    count: int
    scope_filter: str
    next_cursor: str | None
    left_out: int | UnsetType = UNSET
    over_budget: TooLarge | UnsetType = UNSET


class MemoryDeleted(Reply, frozen=True, kw_only=True):
    """Answers `DeleteMemory`; ``existed`` says whether there was a live entry.

    If not, ``did_you_mean`` has similar keys of the caller.
    """

    key: str
    scope: Scope
    existed: bool
    did_you_mean: Annotated[list[str] | UnsetType, Meta(extra_json_schema=UNLISTED)] = UNSET
