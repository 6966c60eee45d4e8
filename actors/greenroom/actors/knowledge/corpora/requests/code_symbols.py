"""Requests and replies about symbols of code: search, outlines, patterns of syntax."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from greenroom.actors.content.syntax.origins import Origin
from greenroom.actors.content.syntax.source import Kind
from greenroom.actors.core.validation.types import UNLISTED
from greenroom.actors.knowledge.corpora.requests.code_requests import CodeFreshness, CodeReply
from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusName
from greenroom.runtime import Message

SymbolName = Annotated[
    str,
    Meta(min_length=1, max_length=200, description="a name, or Class.method; * is anything"),
]
SymbolKind = Annotated[Kind, Meta(description="only of this kind")]
UseRole = Literal["call", "inherits", "type", "import", "other"]
SymbolLimit = Annotated[int, Meta(ge=1, le=200, description="how many of each")]


class SymbolFound(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A definition of a symbol.

    Attributes:
        symbol: The symbol's name after the names of its scope.
        lines: The symbol's first line, including the comment above it, and its last line.
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
        scope: ``exact``: by scopes and imports, it means one of the definitions; ``textual``: by its name.
        means: The definitions that it means, as ``file:symbol``, if several definitions were found.
    """

    file_path: str
    line: int
    role: UseRole
    within: str = ""
    scope: Literal["exact", "textual"]
    means: list[str] | UnsetType = UNSET


class LineOfText(msgspec.Struct, frozen=True, kw_only=True):
    """A line with a name, in a file without known symbols."""

    file_path: str
    line: int
    text: str


LinesOfText = Annotated[list[LineOfText], Meta(extra_json_schema=UNLISTED)]


class SymbolsFound(CodeReply, frozen=True, kw_only=True):
    """Reply to `SymbolSearch`.

    Attributes:
        matched: ``fuzzy``: nothing has this name, so similar names were searched.
        names: The similar names, best first; absent if the name itself was found.
        total_references: How many uses there are; if ``is_cut``, by their names alone.
        is_cut: Whether there are more files than were searched.
        in_text: If there is no definition: lines of files without symbols that have the name.
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
    """Reply to `ReadSymbols`; ``digest`` is the digest of the file's indexed bytes."""

    digest: str
    symbols: list[SymbolFound]
    reader: str = ""


class ReadSymbols(Message[SymbolsRead | None], frozen=True, kw_only=True):
    """Read the symbols of a file; None if it is not indexed; not a tool."""

    corpus: CorpusName
    path: str


OutlinePath = Annotated[
    str, Meta(max_length=4_096, description="file or folder, below the workspace's or from / on")
]
OutlineTokens = Annotated[int, Meta(ge=100, le=10_000, description="how long it may be, in tokens")]


class FactsOfFile(msgspec.Struct, frozen=True, array_like=True):
    """The packed syntax facts of a file; its origin, if certain files were wanted."""

    path: str
    packed: bytes
    origin: Origin | None = None


class FactsRead(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `ReadFacts`; ``following`` is the number of the next document if room ran out."""

    files: list[FactsOfFile]
    following: int | None


class ReadFacts(Message[FactsRead], frozen=True, kw_only=True):
    """Read the syntax facts of some files; not a tool.

    Attributes:
        start: Number of the first document to read.
        holding: Read only files that have this text, such as a name, in their facts.
    """

    corpus: CorpusName
    path: str = ""
    start: int = 0
    holding: str = ""
    paths: list[str] = msgspec.field(default_factory=list)


class NamedFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `FindNamed`.

    Attributes:
        files: Facts of the files with the first definitions, and of files with uses.
        using: The files with uses, in the order in which they are shown; empty if ``is_whole``.
        is_whole: Whether these are all files that have the names.
        definitions: How many definitions there are.
        references: How many uses there are, by name alone.
    """

    files: list[FactsOfFile]
    using: list[str]
    is_whole: bool
    definitions: int
    references: int


class FindNamed(Message[NamedFiles | None], frozen=True, kw_only=True):
    """Find the files that define and use names without wildcards; not a tool.

    While names are still being read, the reply is None: ask again.
    """

    corpus: CorpusName
    names: list[str]
    kind: Kind | None = None
    limit: int = 20


class OutlineMade(CodeReply, frozen=True, kw_only=True):
    """Reply to `Outline`.

    Attributes:
        outline: A line for each symbol with its lines and signature, below its file's line.
        is_cut: Whether there are more files than were searched.
    """

    lists: ClassVar[tuple[str, ...]] = ("outline",)

    path: Annotated[str, Meta(extra_json_schema=UNLISTED)] | UnsetType = UNSET
    outline: str
    shown: int
    left_out: int
    is_cut: bool
    workspace: str
    freshness: CodeFreshness


PatternText = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=2_000,
        description="NAME (any symbol), function NAME, class NAME, calls NAME, imports NAME, inherits NAME, "
        "string TEXT (* is anything), regex RE2, or a tree-sitter query",
    ),
]
FileTypes = Annotated[
    list[Annotated[str, Meta(min_length=1, max_length=32)]],
    Meta(max_length=20, description="endings such as py"),
]
MatchLimit = Annotated[int, Meta(ge=1, le=500, description="how many matches")]


class CodeMatch(msgspec.Struct, frozen=True, kw_only=True):
    """A place that matches a pattern.

    ``name`` is the found name or a query's capture; absent if ``symbol`` ends with it.
    """

    file_path: str
    lines: list[int]
    name: str | UnsetType = UNSET
    symbol: str | UnsetType = UNSET
    text: str


class CodeMatched(CodeReply, frozen=True, kw_only=True):
    """Reply to `CodeSearch`, by file and line.

    Attributes:
        kinds: For a bare name: the kinds of symbols that were searched, which are all kinds.
        unread: The number of files that could not be searched: they are gone, or took too long.
        in_text: If nothing matches: lines of unparsed files that have the name.
    """

    lists: ClassVar[tuple[str, ...]] = ("matches",)

    matches: list[CodeMatch]
    kinds: list[str] | UnsetType = UNSET
    files_searched: int
    unread: int
    in_text: LinesOfText | UnsetType = UNSET
    workspace: str
    freshness: CodeFreshness
