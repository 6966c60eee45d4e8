"""Replies of the tools. Field names are the wire's; times are aware and UTC.

Where ``max_tokens`` was given, ``left_out`` is how many of those within ``limit`` are not in the answer, and
``over_budget`` names those of them that are larger than it alone. The next page begins behind these.
"""

from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from greenroom.actors.core.auth.policy import Visibility, VisibilityFilter
from greenroom.actors.core.replies.empty_reasons import EmptyBecause
from greenroom.actors.core.replies.memory_types import AnImportSource
from greenroom.actors.core.replies.paging import OverBudget
from greenroom.actors.core.validation.types import BRIEF, UNLISTED, SessionStatus

OtherForms = Annotated[list[str], Meta(extra_json_schema=UNLISTED)]
Relevance = Literal["high", "medium", "low"]
Scope = Literal["session", "global"]


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What every success carries."""

    success: bool = True


class ListReply(Reply, frozen=True, kw_only=True):
    """What every search and listing carries.

    Attributes:
        lists: The members that hold what was found; the answer is empty where all of them are.
        empty_because: Why it is.
    """

    lists: ClassVar[tuple[str, ...]]

    empty_because: Annotated[EmptyBecause, Meta(extra_json_schema=UNLISTED)] | UnsetType = UNSET

    @property
    def lacks_reason(self) -> bool:
        """Whether it is empty, and does not say why."""
        for name in self.lists:  # each answer is asked, and `any` takes three times as long
            if getattr(self, name):
                return False
        return self.empty_because is UNSET


class PartialReply(ListReply, frozen=True, kw_only=True):
    """What an answer carries of which something may be missing.

    Attributes:
        partial: Present when something may be missing that another call finds.
        partial_reason: What, and why.
    """

    partial: bool | UnsetType = UNSET
    partial_reason: Annotated[str, Meta(extra_json_schema=UNLISTED)] | UnsetType = UNSET


TooLarge = Annotated[list[OverBudget], Meta(extra_json_schema=BRIEF)]


class MessageView(msgspec.Struct, frozen=True, kw_only=True):
    """A message as a reader that may see it gets it."""

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
    """Figures over what the reader may see."""

    message_count: int
    unique_agents: int
    last_activity: datetime


class SessionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A session in a listing; ``message_count`` and ``last_activity`` are over what the reader may see."""

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
    """A call of a tool, complete."""

    tool: str
    arguments: dict[str, Any]


Continued = Annotated[str | UnsetType, Meta(extra_json_schema=UNLISTED)]
"""The session that had ended and that another one continues; few do."""
UnlistedCall = Annotated[ToolCall | UnsetType, Meta(extra_json_schema=UNLISTED)]
"""A call that reads on, where there is one."""


class MessagePage(ListReply, frozen=True, kw_only=True):
    """Answers `GetMessages`; ``total`` counts every visible message that fits the filter and ``since_id``.

    Where nothing was said yet ``continues`` names the session that this one continues, and ``earlier`` is the
    call that reads it.
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

    ``partial``: it went by words alone, or some messages were not compared by what they mean, for the reason
    that is said; another time it finds more.
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
    """The two ends that were asked for, both included."""

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
        namespace: Where it lies, unless it is the agent's own. A content is a string as ``value`` then.
        also_in: Other namespaces in which the key was found on the way.
        imported: What the source of an import says of its author, where who imported it is the author.
        other_forms: Keys with memories of their own that differ from it in the form of Unicode alone.
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
    """An entry without its value, whose size is in bytes of JSON."""

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

    Where there was none, ``did_you_mean`` has keys of one's own that look like it.
    """

    key: str
    scope: Scope
    existed: bool
    did_you_mean: Annotated[list[str] | UnsetType, Meta(extra_json_schema=UNLISTED)] = UNSET
