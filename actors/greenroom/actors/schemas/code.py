"""Searching code and reading it: what is asked, and what is answered."""

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
"""Of JSON for what a result shows, so that ten results cost less than 1,000 tokens."""
LONG_EXCERPT_BYTES = 800
"""The same where it is read by people, or is put into a prompt."""
MinRelevance = Annotated[
    Fraction | Grade,
    Meta(extra_json_schema=NUMBER, description="least relevance_score, or grade"),
]
MinScore = Annotated[Fraction | Grade, Meta(extra_json_schema=NUMBER, description="least score, or grade")]
LeastAlike = Annotated[Fraction, Meta(description="least relevance_score, 0-1")]
_SUFFIX = Annotated[str, Meta(min_length=1, max_length=32)]
_GLOB = Annotated[str, Meta(min_length=1, max_length=200)]


class CodeFilters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which files are looked at.

    Attributes:
        file_types: Endings such as ``py``; all unless given.
        exclude_paths: Folders or patterns such as ``tests`` or ``*_pb2.py``.
        recency_weight: How much it counts that a file was changed lately, 0 to 1.
    """

    file_types: Annotated[list[_SUFFIX], Meta(max_length=20, description="endings such as py")] = (
        msgspec.field(default_factory=list)
    )
    exclude_paths: Annotated[list[_GLOB], Meta(max_length=20, description="folders, or patterns with *")] = (
        msgspec.field(default_factory=list)
    )
    recency_weight: Annotated[Fraction, Meta(description="how much a late change counts, 0-1")] = 0.0


class CodeFreshness(msgspec.Struct, frozen=True, kw_only=True):
    """How far a workspace's index is.

    Attributes:
        indexed: Files that are in it.
        of: Files that are to be; null while they are not counted.
        state: ``indexing``; ``watching``: it is as the files are; ``unwatched``, ``off``: nobody looks.
        as_of: When it was as the files are, where nobody looks; null for never.
    """

    indexed: int
    of: int | None
    state: Literal["indexing", "watching", "unwatched", "off"]
    as_of: datetime | UnsetType | None = UNSET


class CodeFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was found, with its best passage.

    Attributes:
        file_path: Below the workspace's folder.
        relevance_score: Measured: of files with 0.3 three in ten were right.
        score: How well it matches, 0-1: 95 of 100 right ones that have half of the query's words have more
            than 0.7. It goes by ``recency_weight``, too, and so does the order.
        grade: By its ``relevance_score``.
        line_range: The passage's first and last line.
        excerpt: What of the passage has most of the query, some lines without blank ones and indentation.
        last_modified: When the file was changed, as it was indexed, to the second.
    """

    file_path: str
    relevance_score: float
    score: float
    grade: Grade
    line_range: list[int]
    excerpt: str
    last_modified: datetime


class CodeFound(PartialReply, frozen=True, kw_only=True):
    """Answers `SearchCodeSemantic`, best first.

    Attributes:
        workspace: The folder that was searched.
        total_found: How many files have something of the query, and the least that was asked for.
        unknown: Words that no file has, and that nothing is like.
        cache_hit: Whether you asked the same just before.
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
    """A file of a workspace, or a part of it; of several that were asked for also one that is not read.

    Attributes:
        path: Below the workspace's folder.
        text: What the lines say; absent where it is unchanged or not read.
        outline: Its symbols instead, as they were indexed, with their lines.
        lines: The first and the last line.
        total_lines: How many it has.
        unchanged: Present where you have read just this here, and it is still so.
        note: How to go on, where that is not all of it.
        error: Why it is not read.
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
    note: str | UnsetType = UNSET
    error: str | UnsetType = UNSET


class FilesRead(Reply, frozen=True, kw_only=True):
    """Answers `ReadFile`, in the order in which they were asked for."""

    files: list[FileRead]


class FindCode(Message["FoundCode"], frozen=True, kw_only=True):
    """Find the best files of a workspace. Not a tool: `SearchCodeSemantic` asks it.

    Attributes:
        query: What is looked for.
        folder: The folder to look in, below the workspace's; empty for that itself.
        filters: Which files are looked at.
        limit: How many are answered.
        min_relevance: The least measured relevance that they have.
        min_score: Their least score.
        about: The path of a file to tell of, too; empty for none.
        excerpt_bytes: How much each result shows at most, as JSON.
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


class FoundCode(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `FindCode`; members as in `CodeFound`.

    Attributes:
        parts: What each signal added to the strength of each result, or took from it.
        corrected: What was looked for instead of words that no file has.
        about: The file that was asked about; None where none was, or it is not in the index.
        partial: What was not looked through.
    """

    results: list[CodeFile]
    total: int
    unknown: list[str]
    cache_hit: bool
    parts: list[dict[str, float]] = []
    corrected: dict[str, list[str]] = {}
    about: tuple[CodeFile, NamedResult] | None = None
    partial: str = ""


# -- symbols -----------------------------------------------------------------------------------------

SymbolName = Annotated[
    str,
    Meta(min_length=1, max_length=200, description="a name, or Class.method; * is anything"),
]
SymbolKind = Annotated[
    Literal[
        "function",
        "method",
        "class",
        "struct",
        "interface",
        "trait",
        "enum",
        "type",
        "constant",
        "variable",
        "module",
        "macro",
    ],
    Meta(description="only of this kind"),
]
UseRole = Literal["call", "inherits", "type", "import", "other"]
SymbolLimit = Annotated[int, Meta(ge=1, le=200, description="how many of each")]


class SymbolFound(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A definition of a symbol.

    Attributes:
        symbol: Its name after those of its scope.
        lines: Where it begins, with what is said above it, and its last line.
        signature: How it begins, in one line.
        summary: The first sentence of what describes it.
    """

    symbol: str
    kind: str
    file_path: str
    lines: list[int]
    signature: str
    summary: str = ""


class SymbolUsed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A place where a name is used.

    Attributes:
        role: What for: a call, a type, to inherit, an import, or something else.
        within: The symbol that uses it; none at the top of the file.
        scope: ``exact``: by scopes and imports it means one of the definitions; ``textual``: it has the name.
        means: Which definitions these are, as ``file:symbol``, where there are several.
    """

    file_path: str
    line: int
    role: UseRole
    within: str = ""
    scope: Literal["exact", "textual"]
    means: list[str] | UnsetType = UNSET


class LineOfText(msgspec.Struct, frozen=True, kw_only=True):
    """A line that has a name, in a file of which the symbols are not known."""

    file_path: str
    line: int
    text: str


LinesOfText = Annotated[list[LineOfText], Meta(extra_json_schema=UNLISTED)]


class SymbolsFound(PartialReply, frozen=True, kw_only=True):
    """Answers `SearchSymbols`.

    Attributes:
        matched: ``fuzzy``: nothing has this name, and names that are like it were looked for.
        names: These, the likeliest first; absent where what was asked was found as it is.
        definitions: Where symbols of this name are defined, outer ones first.
        references: Where the name is used, exact ones first.
        is_cut: Whether there are more files than were looked at.
        in_text: Where nothing is defined so, lines of these files that have the name.
        workspace: The folder that was searched.
    """

    lists: ClassVar[tuple[str, ...]] = ("definitions", "references")

    matched: Literal["name", "fuzzy"]
    names: list[str] | UnsetType = UNSET
    definitions: list[SymbolFound]
    references: list[SymbolUsed]
    total_definitions: int
    total_references: int
    is_cut: bool
    in_text: LinesOfText | UnsetType = UNSET
    workspace: str
    freshness: CodeFreshness


class SymbolsRead(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `ReadSymbols`.

    Attributes:
        digest: Of the file's bytes, as they were indexed.
        symbols: In the order in which they begin.
        reader: What read it, see `corpus.readers`.
    """

    digest: str
    symbols: list[SymbolFound]
    reader: str = ""


class ReadSymbols(Message[SymbolsRead | None], frozen=True, kw_only=True):
    """Read the symbols of a file, None where it is not indexed; not a tool."""

    corpus: CorpusName
    path: str


# -- outlines ----------------------------------------------------------------------------------------

OutlinePath = Annotated[
    str, Meta(max_length=4_096, description="file or folder, below the workspace's or from / on")
]
OutlineTokens = Annotated[int, Meta(ge=100, le=10_000, description="how long it may be, in tokens")]


class FactsOfFile(msgspec.Struct, frozen=True, array_like=True):
    """What the syntax of a file says, packed."""

    path: str
    packed: bytes


class FactsRead(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `ReadFacts`; ``following``: the number of the first document that there was no room for."""

    files: list[FactsOfFile]
    following: int | None


class ReadFacts(Message[FactsRead], frozen=True, kw_only=True):
    """Read what the syntax of some files says; not a tool.

    Attributes:
        path: A file, or a folder whose files are meant; empty for all.
        start: From which document on.
        holding: Only files whose facts have this text, such as a name.
        paths: Files, instead of a path.
    """

    corpus: CorpusName
    path: str = ""
    start: int = 0
    holding: str = ""
    paths: list[str] = msgspec.field(default_factory=list)


class OutlineMade(PartialReply, frozen=True, kw_only=True):
    """Answers `Outline`.

    Attributes:
        path: The file, where it is one, below the workspace's folder.
        outline: A line for each symbol, with its lines and how it begins, below the line of its file.
        shown: How many symbols these are.
        left_out: How many there was no room for.
        is_cut: Whether there are more files than were looked at.
    """

    lists: ClassVar[tuple[str, ...]] = ("outline",)

    path: Annotated[str, Meta(extra_json_schema=UNLISTED)] | UnsetType = UNSET
    outline: str
    shown: int
    left_out: int
    is_cut: bool
    workspace: str
    freshness: CodeFreshness
