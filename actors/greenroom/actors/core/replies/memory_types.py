"""Parameter types of requests about memories and searches, with their limits."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from greenroom.actors.core.replies.grades import Grade
from greenroom.actors.core.validation.types import NUMBER, UNLISTED, GivenObject, Name, Prefix

MemoryKind = Literal["semantic", "episodic", "procedural"]
Scope = Literal["private", "shared", "public"]
SearchMode = Literal["semantic", "exact", "hybrid"]
TagMatch = Literal["any", "all"]

AKind = Annotated[MemoryKind, Meta(description="fact, event or how-to")]
AScope = Annotated[Scope, Meta(description="who may see it")]
AMode = Annotated[SearchMode, Meta(description="meaning, exact words, or also quality")]
ATagMatch = Annotated[TagMatch, Meta(description="any or all of tags")]
"""These types as parameters, with descriptions."""

MAX_TAG = 200
MAX_POSITION = (1 << 53) - 1
MAX_CONTENT_BYTES = 1_048_576
MAX_IMPORTED_BYTES = 16 * 1_048_576
"""The most bytes of UTF-8 of an imported content or value; a tool accepts 1 MB."""
DEFAULT_IMPORTANCE = 0.5

_SEGMENT = "[A-Za-z0-9_.@+~-]{1,100}"
_TAKES_NAMESPACE = (
    "2 to 8 segments joined by a colon, each 1 to 100 characters of A-Z, a-z, 0-9, _ . @ + ~ -, "
    "such as user:alice or project:atlas:decisions"
)
Namespace = Annotated[
    str,
    Meta(
        pattern=f"^{_SEGMENT}(:{_SEGMENT}){{1,7}}(?!\\n)$",
        description="such as project:x; default yours",
        extra={"takes": _TAKES_NAMESPACE},
    ),
]
"""The namespace of a memory. One actor has all namespaces with the same two first segments."""

NamespacePrefix = Annotated[
    str,
    Meta(
        pattern=f"^{_SEGMENT}(:{_SEGMENT}){{1,7}}(?!\\n)$",
        description="all below it; default yours",
        extra={"takes": _TAKES_NAMESPACE},
    ),
]
Below = Annotated[
    str,
    Meta(
        pattern=f"^{_SEGMENT}(:{_SEGMENT}){{0,7}}(?!\\n)$",
        description="all below it; default all you may see",
        extra={"takes": "1 to 8 segments joined by a colon, such as project, user:alice or project:atlas:ui"},
    ),
]
"""Leading segments of namespaces, for searches over several owners: ``project`` means all projects."""
MemoryContent = Annotated[str, Meta(min_length=1, max_length=MAX_CONTENT_BYTES, description="text to keep")]
MemoryId = Annotated[
    str,
    Meta(
        pattern="^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}(?!\\n)$",
        description="from an answer",
        extra={"takes": "a memory_id as answers have it"},
    ),
]
Tag = Annotated[str, Meta(min_length=1, max_length=MAX_TAG)]
Tags = Annotated[list[Tag], Meta(max_length=10_000, description="labels")]
Author = Annotated[Name, Meta(description="the agent who wrote it")]


class ImportSource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The author that an import claims for a memory, for readers only."""

    created_by: Author


AnImportSource = Annotated[ImportSource, Meta(extra_json_schema=UNLISTED)]


def import_source(created_by: str | None) -> ImportSource | UnsetType:
    """Return the author claim of an import; unset if there is no other author."""
    return UNSET if created_by is None else ImportSource(created_by=created_by)


def changer(author: str | None, updated_by: str | None) -> str | UnsetType:
    """Return the author of the newest version; unset if it is the first author."""
    return UNSET if updated_by is None or updated_by == author else updated_by


def author_text(
    author: str | None, imported: ImportSource | UnsetType, changed_by: str | UnsetType = UNSET
) -> str:
    """Return an author for people, with the claim of an import and the last editor."""
    text = author or ""
    if not isinstance(imported, UnsetType):
        text = f"imported by {author}, says {imported.created_by}"
    return text if isinstance(changed_by, UnsetType) else f"{text}, changed by {changed_by}".lstrip(", ")


def by_author(
    author: str | None, imported: ImportSource | UnsetType, changed_by: str | UnsetType = UNSET
) -> str:
    """Return an author as the end of a phrase; empty if there is no author."""
    text = author_text(author, imported, changed_by)
    if isinstance(imported, UnsetType):
        return f" by {text}" if text else ""
    return f", {text}"


ConversationId = Annotated[str, Meta(min_length=1, max_length=255, description="the one it belongs to")]
Position = Annotated[int, Meta(ge=0, le=MAX_POSITION, description="place in that conversation")]
Fraction = Annotated[float, Meta(ge=0, le=1)]
Importance = Annotated[Fraction, Meta(description="0-1")]
Rating = Annotated[float, Meta(ge=-1, le=1, description="-1 misleading, 1 helpful")]
ExpectedVersion = Annotated[int, Meta(ge=0, description="refuse unless newest; 0 = none")]
MaxTokens = Annotated[int, Meta(ge=1, description="tokens at most")]
MaxAgeDays = Annotated[float, Meta(gt=0)]
Unreviewed = Annotated[bool, Meta(description="no one has looked at it")]
Note = Annotated[str, Meta(max_length=2_000, description="why")]
TaskId = Name
KeyPrefix = Prefix
SearchWords = Annotated[str, Meta(min_length=1, max_length=10_000, description="what you want to know")]

MAX_DIMENSIONS = 16_384
"""Four times the dimensions of large models; not more, because all vectors of a root are in memory."""
Embedding = Annotated[
    list[float],
    Meta(max_length=MAX_DIMENSIONS, description="for query, a vector"),
]
EmbeddingSpace = Annotated[str, Meta(min_length=1, max_length=1_000, description="of that vector")]

MAX_CHANGES = 1_000
"""The most changes of memories in one commit; this limits how long other writes wait for the commit."""
_MAX_SECONDS = 100 * 366 * 86_400
ExpiresIn = Annotated[float, Meta(gt=0, le=_MAX_SECONDS, description="seconds")]
Expiry = Annotated[str, Meta(description="date or time")]
Confirm = Annotated[bool, Meta(description="forget several; else they are only listed")]
Purge = Annotated[
    bool,
    Meta(description="for good, history too; by key, also what was forgotten before"),
]
StoreMetadata = Annotated[GivenObject, Meta(description="any more of yours, or that as JSON text")]
"""A JSON object: members in `KNOWN` have the meaning of arguments; others are stored unchanged."""
KNOWN = ("tags", "importance", "expiry", "scope")


OwnBelow = Annotated[Below, Meta(description="all below it; default your user's")]
After = Annotated[
    str, Meta(min_length=1, max_length=40, description="date or time, included; UTC unless timezone")
]
Before = Annotated[str, Meta(min_length=1, max_length=40, description="the same, not included")]
TimeWords = Annotated[
    str, Meta(min_length=1, max_length=200, description="such as yesterday or in March 2026")
]
Zone = Annotated[
    str, Meta(min_length=1, max_length=64, description="of all times named here, such as Europe/Berlin")
]
Boost = Annotated[float, Meta(ge=0, le=1, description="part of quality in the score; hybrid: 0.3")]
Least = Fraction | Grade
LeastRelevance = Annotated[
    Least | None,
    Meta(extra_json_schema=NUMBER, description="least relevance, or grade; default: all or none"),
]
LeastScore = Annotated[Least | None, Meta(extra_json_schema=NUMBER, description="least score, or grade")]
Budget = Annotated[int, Meta(ge=1, le=1_000_000, description="tokens at most")]
Task = Annotated[str, Meta(min_length=1, max_length=10_000, description="what you are about to do")]


class TimeSpan(msgspec.Struct, frozen=True):
    """A span of time that a query names in words, in microseconds since 1970.

    Attributes:
        after: Its start; None: unbounded.
        before: Its end, not included; None: unbounded.
        fading: The distance from the span at which relevance has mostly faded, in microseconds.
    """

    after: int | None
    before: int | None
    fading: int
