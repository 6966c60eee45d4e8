"""Searching code by patterns of its syntax: what is asked, and what is answered."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from greenroom.actors.core.replies.replies import PartialReply
from greenroom.actors.schemas.code import CodeFreshness, LinesOfText

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
    """A place that a pattern means.

    Attributes:
        file_path: Below the workspace's folder.
        lines: Its first and its last line.
        name: The name that was found, or what a query captured it as, where ``symbol`` does not end with it.
        symbol: The symbol that it is or is in, as far as it is known.
        text: How it reads: a signature, an import, a line.
    """

    file_path: str
    lines: list[int]
    name: str | UnsetType = UNSET
    symbol: str | UnsetType = UNSET
    text: str


class CodeMatched(PartialReply, frozen=True, kw_only=True):
    """Answers `CodeSearch`, by file and line.

    Attributes:
        kinds: Of a name alone, the kinds of symbols that were looked for: all that there are.
        files_searched: How many files were looked at.
        unread: How many could not be looked through: gone, or too much for the time that one has.
        in_text: Where nothing matches, lines of files that were not read by their syntax and have the name.
        workspace: The folder that was searched.
    """

    lists: ClassVar[tuple[str, ...]] = ("matches",)

    matches: list[CodeMatch]
    kinds: list[str] | UnsetType = UNSET
    files_searched: int
    unread: int
    in_text: LinesOfText | UnsetType = UNSET
    workspace: str
    freshness: CodeFreshness
