"""What came of ingesting: how many documents, and what was left out and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from greenroom.actors.knowledge.corpora.requests.ingestion import DocumentsIngested, LeftOutFile
from greenroom.actors.knowledge.ingest.files.exclusions import SECRET, UNREAD_PART

MAX_NAMED: Final = 100
"""Files that are left out and named, besides secrets; the rest is counted."""
MAX_SECRETS: Final = 1_000


class Report:
    """Counts what happens.

    Attributes:
        complete: Whether all was looked at.
    """

    def __init__(self, corpus: str) -> None:
        self.complete = True
        self._corpus = corpus
        self._states: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._named: list[LeftOutFile] = []
        self._secrets: list[LeftOutFile] = []
        self._chunks = self._bytes = 0

    def stored(self, state: str, chunks: int, size: int) -> None:
        """Count a document that is in the corpus now."""
        self._states[state] += 1
        if state != "unchanged":
            self._chunks += chunks
            self._bytes += size

    def unchanged(self, count: int) -> None:
        """Count documents that are as they were."""
        self._states["unchanged"] += count

    def removed(self, count: int) -> None:
        """Count documents whose files are gone."""
        self._states["removed"] += count

    def left_out(self, path: str, reason: str, *, told: bool = True) -> None:
        """Count a file or a folder that is left out; it is named where somebody might miss it."""
        self._reasons[reason] += 1
        if reason == SECRET and len(self._secrets) < MAX_SECRETS:
            self._secrets.append(LeftOutFile(path, reason))
        elif told and reason != SECRET and len(self._named) < MAX_NAMED:
            self._named.append(LeftOutFile(path, reason))

    def unread(self, path: str, parts: Sequence[str]) -> None:
        """Count parts of a document that are not read, while the others are."""
        for part in parts:
            self.left_out(f"{path}, part {part}", UNREAD_PART)

    @property
    def changes(self) -> dict[str, Any]:
        """How many documents were put in or removed; nothing where nothing was."""
        changes = {name: self._states[name] for name in ("added", "changed", "removed")}
        return {**changes, "bytes": self._bytes} if any(changes.values()) else {}

    def reply(self) -> DocumentsIngested:
        """Return all of it."""
        return DocumentsIngested(
            corpus=self._corpus,
            added=self._states["added"],
            changed=self._states["changed"],
            unchanged=self._states["unchanged"],
            removed=self._states["removed"],
            chunks=self._chunks,
            bytes=self._bytes,
            left_out=dict(self._reasons),
            named=[*self._secrets, *self._named],
            complete=self.complete,
        )
