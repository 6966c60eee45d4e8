"""An ingest run: walk, read, compare, parse, store; then remove documents of deleted files.

Each file is stored atomically, and digests show which versions a corpus has. So the process may die at any
moment: a new run resumes.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from math import inf
from typing import Final, NamedTuple, TypeVar

import msgspec
import trio

from greenroom.actors.content.documents import MASKING, digest_of, kind_of
from greenroom.actors.content.text.analyze import current_rules
from greenroom.actors.core.audit.actor import record_action
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.base.threads import get_or_make
from greenroom.actors.core.validation.parse import check_request
from greenroom.actors.knowledge.corpora.requests import corpus_requests, entity_requests
from greenroom.actors.knowledge.corpora.requests.catalogue import corpus_address
from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusRow
from greenroom.actors.knowledge.corpora.requests.ingestion import DocumentsIngested, ListFailed
from greenroom.actors.knowledge.corpora.storage.readers import get_reader, is_newer, mark_too_much
from greenroom.actors.knowledge.corpora.tools.corpus_admin import ensure_corpus, find_corpus
from greenroom.actors.knowledge.entities import select_libraries
from greenroom.actors.knowledge.ingest.batches import Batches, ParsedFile
from greenroom.actors.knowledge.ingest.files.exclusions import NO_TEXT
from greenroom.actors.knowledge.ingest.files.places import is_below
from greenroom.actors.knowledge.ingest.files.walk import Found, LeftOut, walk, walk_below
from greenroom.actors.knowledge.ingest.parsing.parser_process import Job
from greenroom.actors.knowledge.ingest.parsing.parsers import Parsers, open_parsers
from greenroom.actors.knowledge.ingest.run_state import MAX_FILES, IngestRun, ProgressReporter, Report
from greenroom.actors.knowledge.ingest.steps import (
    Known,
    arrange,
    count_files,
    find_below,
    find_outermost,
    find_outside,
    in_thread,
    iterate_in_thread,
    next_step,
    read_job,
)
from greenroom.runtime import GreenroomError, Message, Refusal, RuntimeClient

R = TypeVar("R")
Progress = Callable[[int, int], None]
"""Called with the number of processed files and the number of all files (0 if unknown)."""
Charge = Callable[[int, str], Awaitable[None]]
"""Charges bytes to an action before the bytes are stored."""

AT_ONCE: Final = 2
"""At most this many files are parsed at once."""
UNDER_WAY: Final = 6
"""At most this many files are parsed or wait for a place in a batch; so parsers do not wait for storing."""
_REST: Final = 1.0
"""The pause after a file was read again in the background, as a multiple of the time that it took."""
_renewals: trio.lowlevel.RunVar[trio.CapacityLimiter] = trio.lowlevel.RunVar("renewals")
_REMOVED_AT_ONCE: Final = 500
_SLACK_SECONDS: Final = 2.0
_COUNTING: Final = 8
"""Counting the files for progress may take at most 1/`_COUNTING` of the call's time."""
_SHARE: Final = 4
"""A file may take at most 1/`_SHARE` of the time left; slower files are retried at the end."""


class Text(NamedTuple):
    """A document that is sent as text; the ending of its path shows its kind."""

    path: str
    text: str


@asynccontextmanager
async def open_ingestion(
    runtime: RuntimeClient,
    principal: Principal,
    corpus: str,
    *,
    make: bool = True,
    root: str | None = None,
    closed: Sequence[str] = (),
    within: Sequence[str] = (),
    progress: Progress | None = None,
    charge: Charge | None = None,
) -> AsyncIterator[Ingestion]:
    """Open an ingestion into a corpus.

    Args:
        runtime: The runtime of the corpus.
        principal: The caller.
        corpus: The corpus's name.
        make: Whether to create a missing corpus.
        root: The folder of a workspace; paths are relative to it. `arrange` gives the order of files.
        closed: Folders that are never read.
        within: The allowed roots, see `walk`.
        progress: Receives the progress.
        charge: Charges the stored bytes.

    Raises:
        Refusal: The principal has no access to the corpus, it does not exist, or it has another folder.
    """
    named = check_request(corpus_requests.ListDocuments(corpus=corpus))
    if make:
        row = await ensure_corpus(runtime, principal, named.corpus, root)
    else:
        row = await find_corpus(runtime, principal, named.corpus)
    if row.root != root:
        raise auth_errors.invalid(
            "corpus", f"corpus: {row.full_name!r} has what is in {row.root}, and no more"
        )
    with runtime.apply_settings():
        languages = current_rules().languages
    async with open_parsers(languages=languages) as parsers:
        yield Ingestion(runtime, principal, row, parsers, frozenset(closed), within, progress, charge)


@asynccontextmanager
async def open_renewal(
    runtime: RuntimeClient,
    principal: Principal,
    corpus: str,
    *,
    root: str | None = None,
    closed: Sequence[str] = (),
) -> AsyncIterator[Ingestion]:
    """Open an ingestion that reads files again; this process has one at a time."""
    async with (
        get_or_make(_renewals, lambda: trio.CapacityLimiter(1)),
        open_ingestion(runtime, principal, corpus, make=False, root=root, closed=closed) as ingestion,
    ):
        yield ingestion


@dataclass
class Ingestion:
    """Ingests files and texts into one corpus; see `open_ingestion`.

    Attributes:
        parsers: The parser processes.
        outdated: Unchanged files of a workspace for which there is a better reader now; `renew` takes them.
    """

    _runtime: RuntimeClient
    _principal: Principal
    _row: CorpusRow
    parsers: Parsers
    _closed: Collection[str]
    _within: Sequence[str]
    _progress: Progress | None
    _charge: Charge | None
    outdated: set[str] = field(default_factory=set)
    _known: dict[str, Known] = field(default_factory=dict)
    _parsing: trio.Semaphore = field(default_factory=lambda: trio.Semaphore(AT_ONCE))

    def __post_init__(self) -> None:
        self._base = "" if self._row.root is None else f"{self._row.root}/"

    async def files(self, roots: Iterable[str]) -> DocumentsIngested:
        """Ingest changed files below the roots, and remove documents of deleted files.

        Raises:
            Refusal: The corpus is full or gone; files that were already stored stay.
            GreenroomError: For the same reasons as `RuntimeClient.ask`.
        """
        outermost = find_outermost(roots)
        await self.learn(outermost)
        total = 0
        found = self._walk(outermost)
        if self._base:
            files, total = await iterate_in_thread(partial(arrange, most=MAX_FILES), found)
            found = iter(files)
        elif self._progress is not None:
            now = trio.current_time()
            with trio.move_on_at(now + (_deadline() - now) / _COUNTING):
                total = await iterate_in_thread(count_files, self._walk(outermost))
        return await self._ingest(outermost, found, set(self._known), total=total)

    async def changes(self, roots: Sequence[str], paths: Iterable[str]) -> DocumentsIngested:
        """Ingest or remove the documents at some paths below known roots.

        `files` or `learn` must have run. It raises the same errors as `files`.
        """
        outermost = find_outermost(paths)
        gone = {path for path in outermost if path in self._known}
        if folders := set(outermost) - gone:
            gone |= await in_thread(find_below, self._known, folders)
        found = chain.from_iterable(
            walk(path, self._closed) if path == root else walk_below(root, path, self._closed)
            for path in outermost
            for root in roots
            if is_below(path, root)
        )
        return await self._ingest(roots, found, gone, changed=outermost)

    async def texts(self, texts: Sequence[Text], remove: Iterable[str] = ()) -> DocumentsIngested:
        """Ingest texts, and remove documents by path; raises the same errors as `files`."""
        gone = set(remove).difference(text.path for text in texts)
        run = IngestRun(Report(self._row.full_name), gone, _deadline())
        jobs: list[Job] = []
        for text in texts:
            data = text.text.encode(errors="replace")
            kind = kind_of(text.path, data)
            if kind is None:
                run.fail(text.path, NO_TEXT, stays=True)
            else:
                reader = get_reader(text.path, kind, is_source=False)
                jobs.append(Job(text.path, kind, 0, data, reader=reader))
        jobs.sort(key=self.parsers.failures.seconds)
        with self._audit(run), _in_time(run):
            for done, job in enumerate(jobs, start=1):
                if not await self._put(run, job, 1):
                    run.report.complete = False
                    break
                if self._progress is not None:
                    self._progress(done, len(jobs))
            if run.report.complete:
                await self._remove(run, run.gone)
                await self._declare_libraries(run)
        with _in_time(run, _SLACK_SECONDS / 4):
            await self._make_reporter(run).end()
        return run.report.reply()

    async def waits_for_vectors(self) -> bool:
        """Return whether some chunks still have no vectors; raises the same errors as `ask`."""
        return (await self.ask(corpus_requests.DescribeCorpus(row=self._row))).waiting_for_vectors > 0

    async def learn(self, roots: Sequence[str]) -> None:
        """Load digests of the documents below the roots, for `changes`; raises errors of `ask`."""
        self._known.clear()
        after: str | None = None
        while True:
            page = await self.ask(corpus_requests.ListDocuments(corpus=self._row.full_name, after=after))
            for each in page.documents:
                path = self._base + each.path
                if any(is_below(path, root) for root in roots):
                    self._known[path] = Known(each.digest, each.reader, each.masking)
            after = page.after
            if after is None:
                return

    def _walk(self, roots: Iterable[str]) -> Iterator[Found | LeftOut]:
        return chain.from_iterable(walk(root, self._closed, self._within) for root in roots)

    async def _ingest(
        self,
        roots: Sequence[str],
        found: Iterator[Found | LeftOut],
        gone: set[str],
        *,
        total: int = 0,
        changed: Sequence[str] | None = None,
    ) -> DocumentsIngested:
        """Ingest the found files below the roots, or only the ``changed`` paths there."""
        run = IngestRun(Report(self._row.full_name), gone, _deadline())
        notes = self._make_reporter(run)
        there: list[str] = []
        with self._audit(run), _in_time(run):
            await self._fill(run, notes, found, total, _SHARE)
            if run.report.complete and run.slow:
                slow = [Found(path) for path, _ in sorted(run.slow.items(), key=lambda each: each[1])]
                await self._fill(run, notes, iter(slow), total, 1)
            if self._base:
                self.outdated.update(run.outdated)
            else:
                await self._renew_outdated(run)
            if run.report.complete:
                lost = await self._find_lost(run, roots)
                gone = run.gone & self._known.keys()
                await self._remove(run, find_outside(gone, lost))
                await self._declare_libraries(run)
                there = find_outside(roots if changed is None else changed, lost)
        with _in_time(run, _SLACK_SECONDS / 4):
            await notes.end(there, was_all=run.report.complete and changed is None)
        return run.report.reply()

    async def _find_lost(self, run: IngestRun, roots: Sequence[str]) -> list[str]:
        """Return roots that were renamed or are not mounted now; their documents stay."""
        lost = [
            root for root in roots if root not in self._known and not await in_thread(os.path.exists, root)
        ]
        for root in lost:
            run.report.leave_out(root, "it is not there; what the corpus has of it stays")
        return lost

    def _make_reporter(self, run: IngestRun) -> ProgressReporter:
        return ProgressReporter(self.ask, self._row.full_name, self._base, run)

    @contextmanager
    def _audit(self, run: IngestRun) -> Iterator[None]:
        """Audit the changes, even of a cut run; skip workspaces, which change too often."""
        try:
            yield
        finally:
            if (details := run.report.changes) and not self._base:
                corpus = self._row.full_name
                record_action(
                    self._runtime, "ingest_documents", principal=self._principal, corpus=corpus, **details
                )

    async def _fill(
        self,
        run: IngestRun,
        notes: ProgressReporter,
        found: Iterator[Found | LeftOut],
        total: int,
        share: int,
    ) -> None:
        failures: list[Exception] = []
        batches = Batches()
        send, receive = trio.open_memory_channel[Job](0)

        async def attempt(work: Awaitable[None], scope: trio.CancelScope) -> None:
            try:
                await work
            except Exception as error:  # noqa: BLE001  (raised again when all tasks have ended)
                failures.append(error)
                scope.cancel()

        async with trio.open_nursery() as reporting:
            reporting.start_soon(notes.report_repeatedly, total)
            async with trio.open_nursery() as storing:
                async with trio.open_nursery() as nursery, send, receive:
                    storing.start_soon(attempt, self._store_all(run, batches), nursery.cancel_scope)
                    for _ in range(UNDER_WAY):
                        work = self._work(run, receive.clone(), share, batches)
                        nursery.start_soon(attempt, work, nursery.cancel_scope)
                    await self._send_changed(run, found, total, share, send)
                await batches.close()
            reporting.cancel_scope.cancel()
        if failures:
            raise failures[0]

    async def _send_changed(
        self,
        run: IngestRun,
        found: Iterator[Found | LeftOut],
        total: int,
        share: int,
        jobs: trio.MemorySendChannel[Job],
    ) -> None:
        is_last = False
        while not is_last:
            step = await in_thread(partial(next_step, found, self._known, is_source=bool(self._base)))
            run.add(step)
            if step.job is not None:
                seconds = self.parsers.failures.seconds(step.job)
                if seconds and share > 1:
                    run.postpone(step.job.path, seconds, is_last=False)
                else:
                    await jobs.send(step.job)
            if self._progress is not None:
                self._progress(run.looked_at, total)
            is_last = step.is_last or run.is_cut()

    async def _work(
        self, run: IngestRun, jobs: trio.MemoryReceiveChannel[Job], share: int, batches: Batches
    ) -> None:
        async with jobs:
            async for job in jobs:
                parsed = await self._parse(run, job, share)
                if isinstance(parsed, ParsedFile):
                    await batches.add(parsed)
                elif not parsed:
                    run.postpone(job.path, self.parsers.failures.seconds(job), is_last=share == 1)

    async def _store_all(self, run: IngestRun, batches: Batches) -> None:
        while batch := await batches.take():
            try:
                await self._store(run, batch)
            except GreenroomError:  # whatever one of them met, it is that one alone that meets it again
                if len(batch) == 1:
                    raise
                for each in batch:
                    await self._store(run, [each])

    async def renew(self, paths: Collection[str]) -> None:
        """Slowly read files again that have a better reader now, one after the other.

        It skips changed files of a workspace: the workspace's watcher ingests them. In a corpus of documents,
        it also reads files that failed before.
        """
        run = IngestRun(Report(self._row.full_name), set(), inf)
        for path in paths:
            began = trio.current_time()
            name = path.removeprefix(self._base)
            request = corpus_requests.ListDocuments(corpus=self._row.full_name, path=name)
            known = (await self.ask(request)).documents  # another process may have renewed it
            if known:
                self._known[path] = Known(known[0].digest, known[0].reader, known[0].masking)
            elif not await self._has_failed(name):
                continue
            await self._renew_file(run, path)
            await trio.sleep(_REST * (trio.current_time() - began))
        if not self._base:
            await self._declare_libraries(run)
            await self._make_reporter(run).end(list(paths))

    async def _has_failed(self, name: str) -> bool:
        failed = await self.ask(ListFailed(corpus=self._row.full_name))
        return not self._base and any(each.path == name for each in failed)

    async def _renew_outdated(self, run: IngestRun) -> None:
        for path in run.outdated:
            if trio.current_time() >= run.deadline:
                return
            await self._renew_file(run, path)

    async def _renew_file(self, run: IngestRun, path: str) -> None:
        job = await in_thread(partial(read_job, path, is_source=bool(self._base)))
        known = self._known.get(path)
        if isinstance(job, LeftOut) or job is None:
            return
        if known is None and not self._base:
            await self._put(run, job, 1)
        elif known is not None and known.digest == digest_of(job.data) and is_newer(job.reader, known.reader):
            await self._put(run, job, 1, renews=True)

    async def _put(self, run: IngestRun, job: Job, share: int, *, renews: bool = False) -> bool:
        """Parse and store one file, see `_parse`; return whether the time was enough."""
        parsed = await self._parse(run, job, share, renews=renews)
        if isinstance(parsed, ParsedFile):
            await self._store(run, [parsed])
        return bool(parsed)

    async def _parse(
        self, run: IngestRun, job: Job, share: int, *, renews: bool = False
    ) -> ParsedFile | bool:
        """Parse one file, or leave it out, so that its document is removed.

        The file may take 1/``share`` of the time left; if that is not enough, return False, and True if there
        is nothing to store. With ``renews``, only the reader is newer; if this reader reads less, the stored
        document stays.
        """
        parsed = None
        name = job.path.removeprefix(self._base)
        async with self._parsing:
            now = trio.current_time()
            with trio.move_on_at(now + (run.deadline - now) / share):
                parsed = await self.parsers.parse(msgspec.structs.replace(job, path=name))
        if parsed is None:
            return False
        reader = job.reader if parsed.facts is not None else mark_too_much(job.reader)
        if renews and (parsed.document is None or reader != job.reader):
            note = corpus_requests.NoteReader(
                corpus=self._row.full_name, path=name, digest=digest_of(job.data), reader=job.reader
            )
            await self.ask(note)
            return True
        if parsed.document is None:
            known = self._known.get(job.path)
            is_open = job.is_source and known is not None and known.masking < MASKING
            run.fail(job.path, parsed.failure, stays=parsed.stays and not is_open)
            return True
        # A hostile file may control its parser, so the document's path and kind come from the job. Paths
        # of a workspace are relative, so they must not be checked on this machine's disk.
        is_file = job.is_file and not self._base
        document = msgspec.structs.replace(parsed.document, path=name, is_file=is_file)
        if self._charge is not None:
            await self._charge(len(job.data), f"{document.path} {document.digest}")
        put = corpus_requests.PutDocument(
            corpus=self._row.full_name,
            document=document,
            prepared=parsed.prepared,
            facts=parsed.facts,
            origin=parsed.origin,
            reader=reader,
            only_same=renews,
        )
        return ParsedFile(job, put, parsed.failure, parsed.unread)

    async def _store(self, run: IngestRun, batch: Sequence[ParsedFile]) -> None:
        """Store files in one commit; a single one may be refused."""
        puts = [each.put for each in batch]
        if len(puts) == 1:
            try:
                answers = [await self.ask(puts[0])]
            except Refusal as refusal:
                if refusal.code != "VALIDATION_ERROR":
                    raise
                run.fail(batch[0].job.path, f"it is refused: {refusal.sentence}")
                return
        else:
            answers = await self.ask(corpus_requests.PutDocuments(corpus=self._row.full_name, puts=puts))
        for (job, put, failure, unread), stored in zip(batch, answers, strict=True):
            self._known[job.path] = Known(put.document.digest, put.reader, put.document.masking)
            run.failures.pop(job.path, None)
            run.report.count_stored(stored.state, stored.chunks, len(job.data))
            run.report.count_unread(job.path, unread)
            if failure:
                run.report.leave_out(job.path, f"{failure}, so it was read as text alone")

    async def _remove(self, run: IngestRun, paths: Iterable[str]) -> None:
        left = sorted(path.removeprefix(self._base) for path in paths)
        while left:
            some = left[:_REMOVED_AT_ONCE]
            answer = await self.ask(corpus_requests.RemoveDocuments(corpus=self._row.full_name, paths=some))
            run.report.count_removed(len(answer.removed))
            for path in answer.removed:
                self._known.pop(self._base + path, None)
            left = [*answer.left, *left[_REMOVED_AT_ONCE:]]

    async def _declare_libraries(self, run: IngestRun) -> None:
        """Declare the libraries of the corpus's manifests, if a manifest changed."""
        found = await self.ask(entity_requests.ReadManifests(corpus=self._row.full_name, only_changed=True))
        if not found.is_changed:
            return
        libraries, unreadable = await in_thread(select_libraries, found.manifests)
        request = entity_requests.DeclareEntities(
            corpus=self._row.full_name,
            libraries=libraries,
            manifests=found.state,
            are_all=not unreadable,  # a manifest that is being edited keeps its libraries
        )
        try:
            await self.ask(request)
        except Refusal as refusal:
            if refusal.code not in {"QUOTA_EXCEEDED", "VALIDATION_ERROR"}:
                raise
            run.report.leave_out(found.manifests[0].name, f"its libraries are refused: {refusal.sentence}")

    async def ask(self, message: Message[R]) -> R:
        """Send a message to the corpus; raises the same errors as `RuntimeClient.ask`."""
        return await self._runtime.ask(corpus_address(self._row), message, principal=self._principal)


def _deadline() -> float:
    return trio.current_effective_deadline() - _SLACK_SECONDS


@contextmanager
def _in_time(run: IngestRun, more: float = 0.0) -> Iterator[None]:
    """Cancel a run's work early enough for its reply."""
    with trio.CancelScope(deadline=run.deadline + _SLACK_SECONDS / 2 + more) as time:
        yield
    if time.cancelled_caught:
        run.report.complete = False
