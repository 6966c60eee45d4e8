"""What came of ingesting documents."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from greenroom.actors.schemas.replies import Reply


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
