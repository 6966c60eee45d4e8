"""What came of ingesting documents, and what a corpus is told of it meanwhile."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from greenroom.actors.core.replies.replies import Reply
from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusName
from greenroom.runtime import Message

MOST_FAILED = 100
"""Failed files that are kept of a corpus: the newest."""


class LeftOutFile(msgspec.Struct, frozen=True):
    """A file or a folder that was not read, and why."""

    path: str
    reason: str


class DocumentsIngested(Reply, frozen=True, kw_only=True):
    """Answers `IngestDocuments`: what the corpus has now that it had not, and what was left out."""

    corpus: str
    added: int
    changed: int
    unchanged: int
    removed: Annotated[int, Meta(description="whose files are gone")]
    chunks: Annotated[int, Meta(description="of what was added or changed")]
    bytes: int
    left_out: Annotated[dict[str, int], Meta(description="how many, by reason")]
    named: Annotated[list[LeftOutFile], Meta(description="those of them that matter, secrets first")]
    complete: Annotated[bool, Meta(description="false when time was up: the same call goes on")]


class FailedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that could not be taken in.

    Attributes:
        path: Where it is; in a workspace below its folder.
        reason: Why, beginning with "it".
        failed_at: Since when it fails for this reason.
        remedy: What to do about it.
    """

    path: str
    reason: str
    failed_at: datetime
    remedy: str


class NoteIngest(Message[None], frozen=True, kw_only=True):
    """Tell a corpus how far somebody is who puts files in, and which of them failed; not a tool.

    Attributes:
        run: Tells who does it from others; empty where nobody is to hear how far it is.
        looked_at: Files that were gone through so far.
        of: Files that there are; 0 where they were not counted.
        failed: The newest that failed in this run.
        below: Files and folders that were gone through to the end: of others in them it is not known any
            more that they failed. An empty text is a workspace's folder.
        is_over: Whether this is the end of it.
        was_all: Whether all that was to be gone through was, and not only what had changed.
    """

    corpus: CorpusName
    run: str = ""
    looked_at: int = 0
    of: int = 0
    failed: Annotated[list[LeftOutFile], Meta(max_length=MOST_FAILED)] = msgspec.field(default_factory=list)
    below: list[str] = msgspec.field(default_factory=list)
    is_over: bool = False
    was_all: bool = False


class ListFailed(Message[list[FailedFile]], frozen=True, kw_only=True):
    """List the files of a corpus that failed, the newest first; not a tool."""

    corpus: CorpusName


class Filling(msgspec.Struct, frozen=True, kw_only=True):
    """When a corpus was filled, and how far it is who fills it.

    Attributes:
        ingested_at: When files were last gone through to the end, whether or not any had changed.
        ingesting: How far it is who puts files in just now, such as ``3 of 10 files``.
    """

    ingested_at: datetime | None
    ingesting: str | None


class DescribeFilling(Message[Filling], frozen=True, kw_only=True):
    """Say when a corpus was filled, and how far it is who fills it; not a tool."""

    corpus: CorpusName
