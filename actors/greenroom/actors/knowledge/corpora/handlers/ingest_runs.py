"""Ingest runs of a corpus: failed files, the last complete run, and progress.

Progress is kept only in memory: a run reports it again and again, and a silent run counts as ended.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec

from greenroom.actors.content.documents.document_types import MAX_PATH
from greenroom.actors.core.validation.times import SECOND, to_datetime
from greenroom.actors.knowledge.corpora.requests.corpus_requests import is_text
from greenroom.actors.knowledge.corpora.requests.ingestion import (
    MOST_FAILED,
    DescribeFilling,
    FailedFile,
    Filling,
    ListFailed,
    NoteIngest,
)
from greenroom.actors.knowledge.corpora.storage import records
from greenroom.actors.knowledge.corpora.storage.repository import CorpusRepository, Run
from greenroom.runtime import Context

_ERROR_HINTS: Final[Sequence[tuple[str, str]]] = (
    (
        "reading PDF files takes",
        "install it where files are read; the file is then taken in by itself, or by ingesting it again",
    ),
    ("its pages may be pictures", "have a program for recognising text write a PDF that has text"),
    ("it has no text", "nothing, if there is none to be found in it"),
    ("it is encrypted", "save it without a password"),
    ("it is no text", "bring along its text: archives are not opened, pictures and programs are not read"),
    ("bytes and the limit is", "cut it into several"),
    ("when it is unpacked", "cut it into several"),
    ("entries", "name the folders in it that have documents"),
    ("folders deep", "name a folder further down as well"),
    ("its name cannot be shown", "rename it: its name has control characters, or is too long"),
    ("Permission denied", "let the user of `greenroom ingest`, or of the server, read it"),
    ("memory", "take it in again where more memory is free; else cut it into several"),
    ("it took longer", "cut it into several, or save it in a simpler format"),
    ("it could not be read in", "`greenroom ingest` has no such limit; else cut it into several"),
    ("it ended the process", "save it anew, or in another format: it makes its reader fail"),
    ("it is nested too deeply", "save it in a simpler format"),
    ("it cannot be read as PDF", "open it and save it anew: it may be damaged"),
    ("it is no Word document", "open it and save it anew: it may be damaged, or something else by this name"),
    ("it is no notebook", "open it and save it anew: it may be damaged, or something else by this name"),
    ("it is refused", "change what the reason names, and take it in again"),
    ("it cannot be read", "look whether the disk is sound and the file is whole; take it in again"),
)
"""Parts of reasons (more specific parts first), and a hint for each part."""
_OTHER_HINT: Final = "change what the reason names, and take it in again"


def error_hint(reason: str) -> str:
    """Return the hint for a file that failed for a reason."""
    return next((remedy for part, remedy in _ERROR_HINTS if part in reason), _OTHER_HINT)


SILENT_SECONDS: Final = 15
"""A run that has reported nothing for this long counts as ended."""
_MOST_RUNS: Final = 16
"""At most this many runs are kept at once."""
_MAX_REASON: Final = 500


class FailureRecord(msgspec.Struct, frozen=True, array_like=True):
    """A failed file: its path, the reason, and when this reason first occurred."""

    path: str
    reason: str
    at: int


class RunRecord(msgspec.Struct, frozen=True, array_like=True):
    """The time at which a run last completed."""

    at: int


def record(repository: CorpusRepository, request: NoteIngest, context: Context) -> None:
    """Store the progress of a run, and the files that failed in it."""
    repository.check(context.principal, request.corpus)
    has_news = _put_failures(context, request)
    if request.was_all:
        context.put(records.LAST_RUN, RunRecord(context.now))
        has_news = True
    if request.run:
        runs = {run: each for run, each in repository.runs.items() if not _is_silent(each, context.now)}
        runs.pop(request.run, None)
        if not request.is_over:
            runs[request.run] = Run(request.looked_at, request.of, context.now)
        has_news |= runs != repository.runs
        repository.runs = dict(list(runs.items())[-_MOST_RUNS:])
    if has_news:
        repository.publish(context)


def list_failed(repository: CorpusRepository, request: ListFailed, context: Context) -> list[FailedFile]:
    """Return the files that failed, newest failures first."""
    repository.check(context.principal, request.corpus)
    known = sorted(_load_failures(context).values(), key=lambda each: (-each.at, each.path))
    return [
        FailedFile(
            path=each.path,
            reason=each.reason,
            failed_at=to_datetime(each.at),
            remedy=error_hint(each.reason),
        )
        for each in known
    ]


def delete_failure(context: Context, path: str) -> None:
    """Delete the failure record of a file that was ingested or removed."""
    key = records.failure_key(path)
    if context.get(key, msgspec.Raw) is not None:
        context.delete(key)


def count_failed(context: Context) -> int:
    """Return the number of stored failures."""
    return sum(1 for _ in context.scan(msgspec.Raw, prefix=records.FAILURES))


def describe(repository: CorpusRepository, request: DescribeFilling, context: Context) -> Filling:
    """Return the time at which a run last completed, and the progress of current runs."""
    repository.check(context.principal, request.corpus)
    last = context.get(records.LAST_RUN, RunRecord)
    runs = [each for each in repository.runs.values() if not _is_silent(each, context.now)]
    return Filling(
        ingested_at=None if last is None else to_datetime(last.at),
        ingesting=_render_progress(runs) if runs else None,
    )


def _render_progress(runs: Collection[Run]) -> str:
    """Render the progress of all runs; the total is unknown until each has counted."""
    looked_at = sum(each.looked_at for each in runs)
    if not all(each.of for each in runs):
        return f"{looked_at:,} files"
    return f"{looked_at:,} of {max(looked_at, sum(each.of for each in runs)):,} files"


def _is_silent(run: Run, now: int) -> bool:
    return now - run.at > SILENT_SECONDS * SECOND


def _put_failures(context: Context, request: NoteIngest) -> bool:
    """Stage new failures and delete failures that are over; return whether anything changed."""
    fresh = {
        each.path: each.reason[:_MAX_REASON]
        for each in request.failed
        if is_text(each.path) and len(each.path) <= MAX_PATH
    }
    known = _load_failures(context)
    below = frozenset(request.below)
    wanted = {path: record for path, record in known.items() if path in fresh or not _is_below(path, below)}
    for path, reason in fresh.items():
        if path not in wanted or wanted[path].reason != reason:
            wanted[path] = FailureRecord(path, reason, context.now)
    newest = dict(sorted(wanted.items(), key=lambda each: each[1].at)[-MOST_FAILED:])
    for path in known.keys() - newest.keys():
        context.delete(records.failure_key(path))
    for path, record in newest.items():
        if record != known.get(path):
            context.put(records.failure_key(path), record)
    return newest != known


def _load_failures(context: Context) -> Mapping[str, FailureRecord]:
    return {each.path: each for _, each in context.scan(FailureRecord, prefix=records.FAILURES)}


def _is_below(path: str, folders: Collection[str]) -> bool:
    """Return whether a path is in a folder; the path's length determines the time."""
    if path in folders or "" in folders or "/" in folders:
        return True
    end = path.find("/", 1)
    while end > 0:
        if path[:end] in folders:
            return True
        end = path.find("/", end + 1)
    return False
