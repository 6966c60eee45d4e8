"""Requests and replies of dependency search and of similar files."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from greenroom.actors.core.replies.replies import PartialReply
from greenroom.actors.knowledge.corpora.requests.code_requests import CodeFilters, CodeFreshness, CodeReply
from greenroom.actors.knowledge.corpora.requests.code_symbols import LinesOfText
from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusName
from greenroom.runtime import Message

Target = Annotated[
    str,
    Meta(min_length=1, max_length=4_096, description="a file below the workspace's folder, or a symbol"),
]
Direction = Annotated[
    Literal["both", "dependencies", "dependents"],
    Meta(description="what it needs, what needs it"),
]
Depth = Annotated[int, Meta(ge=1, le=20, description="over how many steps")]
DependencyLimit = Annotated[int, Meta(ge=1, le=500, description="how many each way")]


class Dependency(msgspec.Struct, frozen=True, kw_only=True):
    """A file or symbol that the target needs, or that needs the target.

    Attributes:
        symbol: The symbol's path; absent for a file as a whole.
        depth: Number of steps from the target.
        via: The step before this one on a shortest path; absent if that step is the target.
    """

    file_path: str
    symbol: str | UnsetType = UNSET
    line: int | UnsetType = UNSET
    depth: int
    via: str | UnsetType = UNSET


class Dependencies(msgspec.Struct, frozen=True, kw_only=True):
    """Dependencies and dependents of a target; members as in `DependenciesFound`."""

    target_is: Literal["file", "symbol", "unknown"]
    means: list[str]
    dependencies: list[Dependency] | UnsetType
    dependents: list[Dependency] | UnsetType
    outside: list[str] | UnsetType
    cycles: list[list[str]]
    is_cut: bool


class DependenciesFound(CodeReply, frozen=True, kw_only=True):
    """Reply to `DependencySearch`, the nearest first.

    Attributes:
        target_is: ``unknown``: no file and no symbol of that name is indexed.
        means: The target: the file, or each definition as ``file:symbol``.
        dependents: Files or symbols that need the target: a change may break them; absent if not requested.
        are: ``imports``: imports of files; ``textual``: names that symbols use. A name is looked for in the
            symbol's file, else in a file that this file imports, else wherever it is defined.
        is_cut: Whether there is more, beyond the depth, the limit, or the files searched.
        in_text: If no dependent is known: lines that have the target's name.
    """

    lists: ClassVar[tuple[str, ...]] = ("dependencies", "dependents")

    target_is: Literal["file", "symbol", "unknown"]
    means: list[str]
    dependencies: list[Dependency] | UnsetType = UNSET
    dependents: list[Dependency] | UnsetType = UNSET
    outside: list[str] | UnsetType = UNSET
    cycles: list[list[str]]
    are: Literal["imports", "textual"]
    is_cut: bool
    in_text: LinesOfText | UnsetType = UNSET
    workspace: str
    freshness: CodeFreshness


class SimilarFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file similar to another.

    Attributes:
        signals: Similarities, each 0 to 1: characteristic ``terms``, words of the ``name``, ``imports``;
            and ``linked``, whether one imports the other.
        shared: Characteristic words that both files have.
    """

    file_path: str
    relevance_score: float
    signals: dict[str, float]
    shared: list[str]
    last_modified: datetime


class SimilarFound(PartialReply, frozen=True, kw_only=True):
    """Reply to `SimilarFiles`, the most similar first."""

    lists: ClassVar[tuple[str, ...]] = ("results",)

    path: str
    results: list[SimilarFile]
    workspace: str
    freshness: CodeFreshness


class Similar(msgspec.Struct, frozen=True, kw_only=True):
    """A file similar to another by terms and name; members as in `SimilarFile`.

    ``recency`` is 1 for a change just now, and 0.5 for a change a month ago.
    """

    path: str
    signals: dict[str, float]
    shared: list[str]
    modified_at: datetime
    recency: float


class FoundSimilar(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `FindSimilar`, the most similar first."""

    files: list[Similar]


class FindSimilar(Message[FoundSimilar | None], frozen=True, kw_only=True):
    """Find files similar to an indexed file by terms and name; not a tool."""

    corpus: CorpusName
    path: str
    folder: str = ""
    filters: CodeFilters = CodeFilters()
    limit: int = 10
