"""Workspaces: folders of code of which a corpus is the index. Messages between who keeps one and its corpus.

One process at a time *keeps* a workspace: it puts in what changes in the folder. It says so again and again;
when it has not for a while, another one may.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusName
from greenroom.runtime import Message

Kept = Literal["indexing", "watching", "unwatched"]
"""How a workspace is kept: its files are gone through; changes are taken in as they come; neither."""


class WorkspaceState(msgspec.Struct, frozen=True, kw_only=True):
    """How far the index of a workspace is.

    Attributes:
        state: How it is kept.
        indexed: Files that are in the index.
        of: Files that are to be, as far as that is known.
        as_of: When the index was as the folder is, the last time that this was known; now, if it is watched.
        left_out: How many files were left out, by reason.
        unread: How many files were not read by their syntax, by `corpus.readers.unread_by`.
        is_asker: Whether who asks keeps it.
    """

    state: Kept
    indexed: int
    of: int | None
    as_of: datetime | None
    left_out: dict[str, int]
    unread: dict[str, int] = {}
    is_asker: bool = False


class KeepWorkspace(Message[WorkspaceState], frozen=True, kw_only=True):
    """Keep a workspace for a while from now on, if nobody else does; said again to go on, and to end.

    Attributes:
        keeper: Tells who asks from others.
        state: What is done; ``unwatched``: nothing any more.
        of: Files that there are, if they were counted.
        is_partial: Whether there are more of them than are taken in.
        left_out: Those that were left out, by reason, if they were gone through.
    """

    corpus: CorpusName
    keeper: str
    state: Kept
    of: int | None = None
    is_partial: bool = False
    left_out: dict[str, int] | None = None


class FindKeeper(Message[str], frozen=True, kw_only=True):
    """Say who keeps a workspace, as it told itself from others; empty for nobody."""

    corpus: CorpusName


class DropKeeper(Message[None], frozen=True, kw_only=True):
    """Let another process keep a workspace: this one was found to have died.

    Attributes:
        keeper: As `FindKeeper` said.
    """

    corpus: CorpusName
    keeper: str


class DescribeWorkspace(Message[WorkspaceState], frozen=True, kw_only=True):
    """Say how far the index of a workspace is."""

    corpus: CorpusName
