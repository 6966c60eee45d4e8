"""Results and progress of ingesting documents."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from greenroom.actors.core.replies.replies import Reply
from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusName
from greenroom.runtime import Message

MOST_FAILED = 100
"""At most this many failed files are stored for a corpus: the newest ones."""


class LeftOutFile(msgspec.Struct, frozen=True):
    """A file or a folder that was not read, and why."""

    path: str
    reason: str


class DocumentsIngested(Reply, frozen=True, kw_only=True):
    """Reply to `IngestDocuments`: changes of the corpus, and files left out."""

    corpus: str
    added: int
    changed: int
    unchanged: int
    removed: Annotated[int, Meta(description="files that are gone")]
    chunks: Annotated[int, Meta(description="of what was added or changed")]
    bytes: int
    left_out: Annotated[dict[str, int], Meta(description="how many, by reason")]
    named: Annotated[list[LeftOutFile], Meta(description="those of them that matter, secrets first")]
    complete: Annotated[bool, Meta(description="false when time was up: the same call goes on")]


class FailedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that could not be ingested; the reason begins with "it"."""

    path: str
    reason: str
    failed_at: datetime
    remedy: str


class NoteIngest(Message[None], frozen=True, kw_only=True):
    """Report the progress of an ingest run, and its failed files; not a tool.

    Attributes:
        run: Id of the run; empty if its progress must not be kept.
        of: The number of all files; 0 if they were not counted.
        below: Completely processed files and folders: older failures in them are dropped. An empty text
            means a workspace's folder.
        was_all: Whether the run was complete and read more than changes.
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
    """List the failed files of a corpus, newest failures first; not a tool."""

    corpus: CorpusName


class Filling(msgspec.Struct, frozen=True, kw_only=True):
    """Last complete run of a corpus, and progress of current runs."""

    ingested_at: datetime | None
    ingesting: str | None


class DescribeFilling(Message[Filling], frozen=True, kw_only=True):
    """Return the last complete run of a corpus and current progress; not a tool."""

    corpus: CorpusName
