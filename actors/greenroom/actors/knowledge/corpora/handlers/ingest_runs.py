"""What a corpus knows of who fills it: which files failed, when all were gone through, how far that is.

How far a run is is kept in memory alone: who runs says it again and again, and one that is silent has ended.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from greenroom.actors.core.validation.times import SECOND, to_datetime
from greenroom.actors.corpus.remedies import remedy_of
from greenroom.actors.knowledge.corpora.requests.corpus_requests import MAX_PATH, is_text
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

SILENT_SECONDS: Final = 15
"""A run of which nothing was heard for so long has ended."""
_MOST_RUNS: Final = 16
"""Runs that are known at once."""
_MAX_REASON: Final = 500


class FailureRecord(msgspec.Struct, frozen=True, array_like=True):
    """A file that could not be taken in: where it is, why, and since when for this reason."""

    path: str
    reason: str
    at: int


class RunRecord(msgspec.Struct, frozen=True, array_like=True):
    """When files were last gone through to the end."""

    at: int


def note(repository: CorpusRepository, request: NoteIngest, context: Context) -> None:
    """Take note of how far a run is, and of the files that failed in it."""
    repository.check(context.principal, request.corpus)
    has_news = _note_failures(context, request)
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


def failed(repository: CorpusRepository, request: ListFailed, context: Context) -> list[FailedFile]:
    """Answer the files that failed, the newest first."""
    repository.check(context.principal, request.corpus)
    known = sorted(_failures(context).values(), key=lambda each: (-each.at, each.path))
    return [
        FailedFile(
            path=each.path,
            reason=each.reason,
            failed_at=to_datetime(each.at),
            remedy=remedy_of(each.reason),
        )
        for each in known
    ]


def forget(context: Context, path: str) -> None:
    """Forget that a file failed: it was taken in, or removed."""
    key = records.failure_key(path)
    if context.get(key, msgspec.Raw) is not None:
        context.delete(key)


def count_failed(context: Context) -> int:
    """Return how many files failed that are kept."""
    return sum(1 for _ in context.scan(msgspec.Raw, prefix=records.FAILURES))


def describe(repository: CorpusRepository, request: DescribeFilling, context: Context) -> Filling:
    """Answer when files were last gone through, and how far it is who puts some in."""
    repository.check(context.principal, request.corpus)
    last = context.get(records.LAST_RUN, RunRecord)
    runs = [each for each in repository.runs.values() if not _is_silent(each, context.now)]
    return Filling(
        ingested_at=None if last is None else to_datetime(last.at),
        ingesting=_ingesting(runs) if runs else None,
    )


def _ingesting(runs: Collection[Run]) -> str:
    """Return how far some runs are together; how many files there are is not known before all are counted."""
    looked_at = sum(each.looked_at for each in runs)
    if not all(each.of for each in runs):
        return f"{looked_at:,} files"
    return f"{looked_at:,} of {max(looked_at, sum(each.of for each in runs)):,} files"


def _is_silent(run: Run, now: int) -> bool:
    return now - run.at > SILENT_SECONDS * SECOND


def _note_failures(context: Context, request: NoteIngest) -> bool:
    """Stage the failures of a run, and that others are none any more; return whether anything changes."""
    fresh = {each.path: each.reason[:_MAX_REASON] for each in request.failed if _can_be_kept(each.path)}
    known = _failures(context)
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


def _failures(context: Context) -> Mapping[str, FailureRecord]:
    return {each.path: each for _, each in context.scan(FailureRecord, prefix=records.FAILURES)}


def _can_be_kept(path: str) -> bool:
    return is_text(path) and len(path) <= MAX_PATH


def _is_below(path: str, folders: Collection[str]) -> bool:
    """Return whether a path or a folder above it is among some, in time by its length alone."""
    if path in folders or "" in folders or "/" in folders:
        return True
    end = path.find("/", 1)
    while end > 0:
        if path[:end] in folders:
            return True
        end = path.find("/", end + 1)
    return False
