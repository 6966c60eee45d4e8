"""What code depends on, what depends on it, and what is like it: what is asked, and what is answered."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from greenroom.actors.core.replies.replies import PartialReply
from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusName
from greenroom.actors.schemas.code import CodeFilters, CodeFreshness, LinesOfText
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
    """What the target needs, or what needs it.

    Attributes:
        file_path: Below the workspace's folder.
        symbol: The symbol's path; absent for a file as a whole.
        line: Where the symbol is defined.
        depth: Over how many steps.
        via: What is before it on a shortest way; absent where that is the target.
    """

    file_path: str
    symbol: str | UnsetType = UNSET
    line: int | UnsetType = UNSET
    depth: int
    via: str | UnsetType = UNSET


class Dependencies(msgspec.Struct, frozen=True, kw_only=True):
    """What a target needs and what needs it; members as in `DependenciesFound`."""

    target_is: Literal["file", "symbol", "unknown"]
    means: list[str]
    dependencies: list[Dependency] | UnsetType
    dependents: list[Dependency] | UnsetType
    outside: list[str] | UnsetType
    cycles: list[list[str]]
    is_cut: bool


class DependenciesFound(PartialReply, frozen=True, kw_only=True):
    """Answers `DependencySearch`, the nearest first.

    Attributes:
        target_is: ``unknown``: no file and no symbol of that name is indexed.
        means: What was looked at: the file, or each definition as ``file:symbol``.
        dependencies: What it needs; absent where that was not asked, or is not known.
        dependents: What needs it, which a change may break; absent where that was not asked.
        outside: What the file imports that is not in the workspace.
        cycles: Ways on which it needs itself.
        are: ``imports``, of files; ``textual``: by the names that symbols use, in their own file, else in one
            that this imports, else wherever it is defined.
        is_cut: Whether there is more, beyond the depth, the limit, or what was looked at.
        in_text: Where nothing is known that needs it, lines that have its name.
        workspace: The folder that was searched.
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
    """A file that is like another.

    Attributes:
        file_path: Below the workspace's folder.
        relevance_score: How like it is, 0 to 1.
        signals: What is alike, each from 0 to 1: ``terms`` that tell most of the file, words of the ``name``,
            ``imports``; and ``linked``, whether one imports the other.
        shared: Telling words that both have.
        last_modified: When the file was changed, as it was indexed.
    """

    file_path: str
    relevance_score: float
    signals: dict[str, float]
    shared: list[str]
    last_modified: datetime


class SimilarFound(PartialReply, frozen=True, kw_only=True):
    """Answers `SimilarFiles`, the likest first.

    Attributes:
        path: The file that the others are like, below the workspace's folder.
        workspace: The folder that was searched.
    """

    lists: ClassVar[tuple[str, ...]] = ("results",)

    path: str
    results: list[SimilarFile]
    workspace: str
    freshness: CodeFreshness


class Similar(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is like another by its terms and its name; members as in `SimilarFile`.

    Attributes:
        recency: How late it was changed: 1 for now, half of it for a month ago.
    """

    path: str
    signals: dict[str, float]
    shared: list[str]
    modified_at: datetime
    recency: float


class FoundSimilar(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `FindSimilar`, the likest first."""

    files: list[Similar]


class FindSimilar(Message[FoundSimilar | None], frozen=True, kw_only=True):
    """Find files that are like one by terms and names, None where that is not indexed; not a tool.

    Attributes:
        path: The file, below the workspace's folder.
        folder: The folder to look in, likewise; empty for all.
        filters: Which files are looked at.
        limit: How many are answered.
    """

    corpus: CorpusName
    path: str
    folder: str = ""
    filters: CodeFilters = CodeFilters()
    limit: int = 10
