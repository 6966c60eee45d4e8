"""Requests and replies of code search and of reading files."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from greenroom.actors.core.replies.grades import Grade
from greenroom.actors.core.replies.memory_types import Fraction
from greenroom.actors.core.replies.replies import PartialReply, Reply
from greenroom.actors.core.replies.results_explained import NamedResult
from greenroom.actors.core.validation.types import NUMBER, UNLISTED
from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusName, QueryText
from greenroom.runtime import Message

FilePath = Annotated[str, Meta(min_length=1, max_length=4_096)]
Folder = Annotated[
    str, Meta(max_length=4_096, description="folder to look in, below the workspace's or from / on")
]
FilesWanted = Annotated[int, Meta(ge=1, le=50, description="how many files")]
EXCERPT_BYTES = 180
"""Maximum JSON bytes of a result's excerpt, so that ten results cost less than 1,000 tokens."""
LONG_EXCERPT_BYTES = 800
"""Maximum JSON bytes of an excerpt that people read, or that goes into a prompt."""
MinRelevance = Annotated[
    Fraction | Grade,
    Meta(extra_json_schema=NUMBER, description="least relevance_score, or grade"),
]
MinScore = Annotated[Fraction | Grade, Meta(extra_json_schema=NUMBER, description="least score, or grade")]
LeastAlike = Annotated[Fraction, Meta(description="least relevance_score, 0-1")]
_SUFFIX = Annotated[str, Meta(min_length=1, max_length=32)]
_GLOB = Annotated[str, Meta(min_length=1, max_length=200)]


class CodeFilters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which files to search, and how much a recent change counts."""

    file_types: Annotated[list[_SUFFIX], Meta(max_length=20, description="endings such as py")] = (
        msgspec.field(default_factory=list)
    )
    exclude_paths: Annotated[list[_GLOB], Meta(max_length=20, description="folders, or patterns with *")] = (
        msgspec.field(default_factory=list)
    )
    recency_weight: Annotated[Fraction, Meta(description="how much a late change counts, 0-1")] = 0.0


class CodeFreshness(msgspec.Struct, frozen=True, kw_only=True):
    """Progress and freshness of a workspace's index.

    Attributes:
        of: The number of files to index; null while they are not counted.
        state: ``indexing``; ``watching``: the index matches the files; ``unwatched``, ``off``: not watched.
        as_of: When the index last matched the files, null for never; absent while the files are watched.
    """

    indexed: int
    of: int | None
    state: Literal["indexing", "watching", "unwatched", "off"]
    as_of: datetime | UnsetType | None = UNSET
    left_out_as_secret: Annotated[int, Meta(extra_json_schema=UNLISTED)] | UnsetType = UNSET


class CodeFile(msgspec.Struct, frozen=True, kw_only=True):
    """A found file, with its best passage.

    Attributes:
        relevance_score: A measured probability: of the files with 0.3, three in ten were right.
        score: How well the file matches, 0-1: of 100 right files with half of the query's words, 95 score
            more than 0.7. ``recency_weight`` changes the score, and thus the order.
        excerpt: Lines of the passage that match best, without blank lines and indentation.
    """

    file_path: str
    relevance_score: float
    score: float
    grade: Grade
    line_range: list[int]
    excerpt: str
    last_modified: datetime


NOT_TO_BE_WRITTEN = "in the masked lines a mark stands for a secret: never write the file back from this"


class CodeReply(PartialReply, frozen=True, kw_only=True):
    """Base of replies with lines of code; they list the lines with masked secrets."""

    masked: Annotated[list[str], Meta(extra_json_schema=UNLISTED)] | UnsetType = UNSET
    note: Annotated[str, Meta(extra_json_schema=UNLISTED)] | UnsetType = UNSET


class CodeFound(CodeReply, frozen=True, kw_only=True):
    """Reply to `SearchCodeSemantic`, best first.

    Attributes:
        total_found: How many files match the query and reach the least score.
        unknown: Words of the query that no file has, and that resemble no word of a file.
        cache_hit: Whether the caller sent the same request just before.
    """

    lists: ClassVar[tuple[str, ...]] = ("results",)

    results: list[CodeFile]
    total_found: int
    workspace: str
    freshness: CodeFreshness
    unknown: list[str] | UnsetType = UNSET
    cache_hit: bool
    search_time_ms: float


ALines = Annotated[
    str,
    Meta(
        pattern="^[1-9][0-9]{0,8}(-([1-9][0-9]{0,8})?)?(?!\\n)$",
        description="such as 10-40, or 10- to the end",
        extra={"takes": "a line or lines such as 10-40 or 10-"},
    ),
]
Around = Annotated[int, Meta(ge=0, le=500, description="also so many lines before and after")]
FilePaths = Annotated[list[FilePath], Meta(max_length=20, description="several, instead of path")]


class FileRead(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a workspace, a part of it, or why it was not read.

    Attributes:
        text: The text of the lines; absent if it is unchanged or was not read.
        outline: The indexed symbols with their lines, instead of the text.
        unchanged: Present if this session has already read exactly these lines, and they are the same.
        masked: Lines in which a mark replaces a secret.
        note: How to read the rest, and a warning not to write masked text back.
    """

    path: str
    text: str | UnsetType = UNSET
    outline: str | UnsetType = UNSET
    lines: list[int] | UnsetType = UNSET
    total_lines: int | UnsetType = UNSET
    bytes: int | UnsetType = UNSET
    digest: str | UnsetType = UNSET
    last_modified: datetime | UnsetType = UNSET
    unchanged: bool | UnsetType = UNSET
    masked: Annotated[list[int], Meta(extra_json_schema=UNLISTED)] | UnsetType = UNSET
    note: str | UnsetType = UNSET
    error: str | UnsetType = UNSET


class FilesRead(Reply, frozen=True, kw_only=True):
    """Reply to `ReadFile`, in the order of the request."""

    files: list[FileRead]


class FindCode(Message["FoundCode"], frozen=True, kw_only=True):
    """Find the best files of a workspace. Not a tool: `SearchCodeSemantic` sends it.

    ``about`` is the path of a file to explain as well; empty for none. ``attributes`` are the lines of
    `.gitattributes` about generated and vendored files.
    """

    corpus: CorpusName
    query: QueryText
    folder: str = ""
    filters: CodeFilters = CodeFilters()
    limit: int = 10
    min_relevance: float = 0.0
    min_score: float = 0.0
    about: str = ""
    excerpt_bytes: int = EXCERPT_BYTES
    attributes: tuple[str, ...] = ()


class FoundCode(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `FindCode`; members as in `CodeFound`.

    Attributes:
        parts: The contribution of each signal to each result's strength.
        about: The file to explain; None if the request names none, or if the file is not indexed.
    """

    results: list[CodeFile]
    total: int
    unknown: list[str]
    cache_hit: bool
    parts: list[dict[str, float]] = []
    corrected: dict[str, list[str]] = {}
    about: tuple[CodeFile, NamedResult] | None = None
    partial: str = ""
