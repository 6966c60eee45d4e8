"""The report of an ingestion: numbers of documents, and files left out with the reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from greenroom.actors.knowledge.corpora.requests.ingestion import DocumentsIngested, LeftOutFile
from greenroom.actors.knowledge.ingest.files.exclusions import SECRET, UNREAD_PART

MAX_NAMED: Final = 100
"""Files left out that are named, besides secrets; more are only counted."""
MAX_SECRETS: Final = 10_000
"""Secrets that are named; with more of them a workspace recounts all after each change."""


class Report:
    """Counts the results of an ingestion.

    Attributes:
        complete: Whether all files were processed.
    """

    def __init__(self, corpus: str) -> None:
        self.complete = True
        self._corpus = corpus
        self._states: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._named: list[LeftOutFile] = []
        self._secrets: list[LeftOutFile] = []
        self._chunks = self._bytes = 0

    def count_stored(self, state: str, chunks: int, size: int) -> None:
        """Count a document that was put in."""
        self._states[state] += 1
        if state != "unchanged":
            self._chunks += chunks
            self._bytes += size

    def count_unchanged(self, count: int) -> None:
        """Count unchanged documents."""
        self._states["unchanged"] += count

    def count_removed(self, count: int) -> None:
        """Count documents of files that are gone."""
        self._states["removed"] += count

    def leave_out(self, path: str, reason: str, *, is_listed: bool = True) -> None:
        """Count a file or folder left out, and list it if `is_listed`."""
        self._reasons[reason] += 1
        if reason == SECRET and len(self._secrets) < MAX_SECRETS:
            self._secrets.append(LeftOutFile(path, reason))
        elif is_listed and reason != SECRET and len(self._named) < MAX_NAMED:
            self._named.append(LeftOutFile(path, reason))

    def count_unread(self, path: str, parts: Sequence[str]) -> None:
        """Count parts of a document that were not read."""
        for part in parts:
            self.leave_out(f"{path}, part {part}", UNREAD_PART)

    @property
    def changes(self) -> dict[str, Any]:
        """How many documents were put in or removed; empty for none."""
        changes = {name: self._states[name] for name in ("added", "changed", "removed")}
        return {**changes, "bytes": self._bytes} if any(changes.values()) else {}

    def reply(self) -> DocumentsIngested:
        """Return the reply with all counts."""
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
