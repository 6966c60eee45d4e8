"""What code depends on, and what depends on it: what is asked, and what is answered."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from greenroom.actors.schemas.code import CodeFreshness
from greenroom.actors.schemas.replies import Reply

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


class DependenciesFound(Reply, frozen=True, kw_only=True):
    """Answers `DependencySearch`, the nearest first.

    Attributes:
        target_is: ``unknown``: no file and no symbol of that name is indexed.
        means: What was looked at: the file, or each definition as ``file:symbol``.
        dependencies: What it needs; absent where that was not asked.
        dependents: What needs it, which a change may break; absent where that was not asked.
        outside: What the file imports that is not in the workspace.
        cycles: Ways on which it needs itself.
        are: ``imports``, of files; ``textual``: by the names that symbols use, in their own file, else in one
            that this imports, else wherever it is defined.
        is_cut: Whether there is more, beyond the depth, the limit, or what was looked at.
        workspace: The folder that was searched.
    """

    target_is: Literal["file", "symbol", "unknown"]
    means: list[str]
    dependencies: list[Dependency] | UnsetType = UNSET
    dependents: list[Dependency] | UnsetType = UNSET
    outside: list[str] | UnsetType = UNSET
    cycles: list[list[str]]
    are: Literal["imports", "textual"]
    is_cut: bool
    workspace: str
    freshness: CodeFreshness
