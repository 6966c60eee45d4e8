"""Requests about workspaces: corpora that index a folder of code.

One process at a time holds the indexing *lease* of a workspace: it indexes changes in the folder. It renews
the lease regularly; when a lease has ended, another process may acquire it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusName
from greenroom.runtime import Message

Kept = Literal["indexing", "watching", "unwatched"]
"""``indexing`` reads all files, ``watching`` indexes changes as they come, ``unwatched`` does neither."""


class WorkspaceState(msgspec.Struct, frozen=True, kw_only=True):
    """State and progress of a workspace's index.

    Attributes:
        of: The number of files to index, if it is known.
        as_of: When the index last matched the folder; now, if it is watched.
        unread: The numbers of files that are not parsed, by `storage.readers.unread_by`.
        is_asker: Whether the sender holds the lease.
        version: Another text after each change of the indexed files.
    """

    state: Kept
    indexed: int
    of: int | None
    as_of: datetime | None
    left_out: dict[str, int]
    unread: dict[str, int] = {}
    is_asker: bool = False
    version: str = ""


class KeepWorkspace(Message[WorkspaceState], frozen=True, kw_only=True):
    """Acquire, renew or release the indexing lease of a workspace.

    The state ``unwatched`` releases it. Numbers of files are given once all files were read.
    """

    corpus: CorpusName
    keeper: str
    state: Kept
    of: int | None = None
    is_partial: bool = False
    left_out: dict[str, int] | None = None


class FindKeeper(Message[str], frozen=True, kw_only=True):
    """Return the id of a workspace's lease holder; empty if the lease is free."""

    corpus: CorpusName


class DropKeeper(Message[None], frozen=True, kw_only=True):
    """Release the lease of a process that was found to have died."""

    corpus: CorpusName
    keeper: str


class DescribeWorkspace(Message[WorkspaceState], frozen=True, kw_only=True):
    """Return the state and progress of a workspace's index."""

    corpus: CorpusName
