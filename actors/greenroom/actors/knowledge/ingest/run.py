"""The run of an ingestion: walk, read, compare, parse, put; then remove what is gone.

Each file is put whole or not at all, and what a corpus has is told by digests. So who runs this may die at
any moment: begun again it goes on.
"""

from __future__ import annotations

import os
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from itertools import chain
from math import inf
from typing import Final, NamedTuple, TypeVar

import msgspec
import trio

from greenroom.actors.content.text.analyze import current_rules
from greenroom.actors.core.audit.actor import tell
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.validation.parse import check_request
from greenroom.actors.corpus.managing import found_corpus, made_corpus
from greenroom.actors.documents import digest_of, kind_of
from greenroom.actors.entities import libraries_in
from greenroom.actors.ingest.order import arranged
from greenroom.actors.ingest.parser_process import Job
from greenroom.actors.ingest.parsers import Parsers, open_parsers
from greenroom.actors.ingest.steps import (
    Known,
    below,
    in_thread,
    next_step,
    outermost_of,
    outside_of,
    read_job,
)
from greenroom.actors.knowledge.corpora.requests import corpus_requests as schemas
from greenroom.actors.knowledge.corpora.requests import entity_requests as entities
from greenroom.actors.knowledge.corpora.requests.catalogue import corpus_address
from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusRow
from greenroom.actors.knowledge.corpora.requests.ingestion import DocumentsIngested, ListFailed
from greenroom.actors.knowledge.corpora.storage.readers import is_newer, reader_of, too_much_for
from greenroom.actors.knowledge.ingest.files.exclusions import NO_TEXT
from greenroom.actors.knowledge.ingest.files.places import is_below
from greenroom.actors.knowledge.ingest.files.walk import Found, LeftOut, walk, walk_below
from greenroom.actors.knowledge.ingest.progress import Notes
from greenroom.actors.knowledge.ingest.report import Report
from greenroom.actors.knowledge.ingest.run_state import MAX_FILES, IngestRun
from greenroom.runtime import Message, Refusal, RuntimeClient

R = TypeVar("R")
Progress = Callable[[int, int], None]
"""Called with how many files are done, and how many there are; 0 as long as that is not known."""
Charge = Callable[[int, str], Awaitable[None]]
"""Charges bytes for a deed, before they are stored."""

AT_ONCE: Final = 2
"""Files that are parsed at once."""
UNDER_WAY: Final = 6
"""Files that are parsed or wait until they are stored: what parses waits neither for that nor for a merge."""
_REST: Final = 1.0
"""Files that nobody waits for are read again with pauses, each so many times as long as the file took."""
_renewals: trio.lowlevel.RunVar[trio.CapacityLimiter] = trio.lowlevel.RunVar("renewals")
_REMOVED_AT_ONCE: Final = 500
_SLACK_SECONDS: Final = 2.0
_SHARE: Final = 4
"""A file has so much of the time that is left, as a part of it, before others are taken first."""


class Text(NamedTuple):
    """A document that comes as a text; the ending of its path tells its kind."""

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
    progress: Progress | None = None,
    charge: Charge | None = None,
) -> AsyncIterator[Ingestion]:
    """Begin to fill a corpus.

    Args:
        runtime: Where it is.
        principal: Who fills it.
        corpus: Its name.
        make: Whether it is made if there is none.
        root: Of a workspace its folder. The files in it are known by their paths below it, and come in the
            order of `arranged`.
        closed: Folders that nobody reads.
        progress: Hears how far it is.
        charge: Charges what is stored.

    Raises:
        Refusal: the principal may not have it, there is none, or it is that of another folder.
    """
    named = check_request(schemas.ListDocuments(corpus=corpus))
    if make:
        row = await made_corpus(runtime, principal, named.corpus, root)
    else:
        row = await found_corpus(runtime, principal, named.corpus)
    if row.root != root:
        raise auth_errors.invalid(
            "corpus", f"corpus: {row.full_name!r} has what is in {row.root}, and no more"
        )
    with runtime.apply_settings():
        languages = current_rules().languages
    async with open_parsers(languages=languages) as parsers:
        yield Ingestion(runtime, principal, row, parsers, closed, progress, charge)


@asynccontextmanager
async def open_renewal(
    runtime: RuntimeClient,
    principal: Principal,
    corpus: str,
    *,
    root: str | None = None,
    closed: Sequence[str] = (),
) -> AsyncIterator[Ingestion]:
    """Begin to read files of a corpus again; waits until no other one of this process does.

    Raises:
        Refusal: as `open_ingestion`.
    """
    try:
        limiter = _renewals.get()
    except LookupError:
        limiter = trio.CapacityLimiter(1)
        _renewals.set(limiter)
    async with (
        limiter,
        open_ingestion(runtime, principal, corpus, make=False, root=root, closed=closed) as ingestion,
    ):
        yield ingestion


class Ingestion:
    """Fills one corpus; made by `open_ingestion`.

    Attributes:
        parsers: What parses files.
        outdated: Files of a workspace that did not change and are read better now; `renew` does that.
    """

    def __init__(
        self,
        runtime: RuntimeClient,
        principal: Principal,
        row: CorpusRow,
        parsers: Parsers,
        closed: Sequence[str],
        progress: Progress | None,
        charge: Charge | None,
    ) -> None:
        self._runtime = runtime
        self._principal = principal
        self._row = row
        self._base = "" if row.root is None else f"{row.root}/"
        self.parsers = parsers
        self._closed = frozenset(closed)
        self._progress = progress
        self._charge = charge
        self._known: dict[str, Known] = {}
        self.outdated: set[str] = set()
        self._parsing = trio.Semaphore(AT_ONCE)

    async def files(self, roots: Iterable[str]) -> DocumentsIngested:
        """Put in what changed below some files and folders, and remove what is gone there.

        Args:
            roots: As `checked_place` returns them.

        Raises:
            Refusal: the corpus takes no more, or is gone; what was put is there.
            GreenroomError: as `RuntimeClient.ask`.
        """
        outermost = outermost_of(roots)
        await self.learn(outermost)
        total = 0
        found: Iterator[Found | LeftOut] = chain.from_iterable(walk(root, self._closed) for root in outermost)
        if self._base:
            files, total = await in_thread(arranged, found, MAX_FILES)
            found = iter(files)
        elif self._progress is not None:
            total = await in_thread(self._count, outermost)
        return await self._ingested(outermost, found, set(self._known), total=total)

    async def changes(self, roots: Sequence[str], paths: Iterable[str]) -> DocumentsIngested:
        """Put in or remove what is at some paths below the roots of an earlier run; raises as `files`."""
        outermost = outermost_of(paths)
        gone = {path for path in outermost if path in self._known}
        if folders := set(outermost) - gone:
            gone |= await in_thread(below, self._known, folders)
        found = chain.from_iterable(
            walk(path, self._closed) if path == root else walk_below(root, path, self._closed)
            for path in outermost
            for root in roots
            if is_below(path, root)
        )
        return await self._ingested(roots, found, gone, changed=outermost)

    async def texts(self, texts: Sequence[Text], remove: Iterable[str] = ()) -> DocumentsIngested:
        """Put in documents that came as texts, and remove some by their paths; raises as `files`."""
        gone = set(remove).difference(text.path for text in texts)
        run = IngestRun(Report(self._row.full_name), gone, _deadline())
        jobs: list[Job] = []
        for text in texts:
            data = text.text.encode(errors="replace")
            kind = kind_of(text.path, data)
            if kind is None:
                run.failed(text.path, NO_TEXT, stays=True)
            else:
                reader = reader_of(text.path, kind, is_source=False)
                jobs.append(Job(text.path, kind, 0, data, reader=reader))
        jobs.sort(key=self.parsers.setbacks.seconds)
        with self._recorded(run):
            for done, job in enumerate(jobs, start=1):
                if not await self._put(run, job, 1):
                    run.report.complete = False
                    break
                if self._progress is not None:
                    self._progress(done, len(jobs))
            if run.report.complete:
                await self._remove(run, run.gone)
                await self._declare_libraries(run)
        await self._notes(run).end()
        return run.report.reply()

    async def waits_for_vectors(self) -> bool:
        """Return whether some of the corpus is found by its words alone as yet; raises as `ask`."""
        return (await self.ask(schemas.DescribeCorpus(row=self._row))).waiting_for_vectors > 0

    async def learn(self, roots: Sequence[str]) -> None:
        """Learn what the corpus has below the roots, before `changes` are put in; raises as `ask`."""
        self._known.clear()
        after: str | None = None
        while True:
            page = await self.ask(schemas.ListDocuments(corpus=self._row.full_name, after=after))
            for each in page.documents:
                path = self._base + each.path
                if any(is_below(path, root) for root in roots):
                    self._known[path] = Known(each.digest, each.reader)
            after = page.after
            if after is None:
                return

    def _count(self, roots: Sequence[str]) -> int:
        found = chain.from_iterable(walk(root, self._closed) for root in roots)
        return sum(isinstance(each, Found) for each in found)

    async def _ingested(
        self,
        roots: Sequence[str],
        found: Iterator[Found | LeftOut],
        gone: set[str],
        *,
        total: int = 0,
        changed: Sequence[str] | None = None,
    ) -> DocumentsIngested:
        """Put in what was found below the roots, or of that only what changed there."""
        run = IngestRun(Report(self._row.full_name), gone, _deadline())
        notes = self._notes(run)
        with self._recorded(run):
            await self._filled(run, notes, found, total, _SHARE)
            if run.report.complete and run.slow:
                slow = [Found(path) for path, _ in sorted(run.slow.items(), key=lambda each: each[1])]
                await self._filled(run, notes, iter(slow), total, 1)
            if self._base:
                self.outdated.update(run.outdated)
            else:
                await self._renewed_at_once(run)
            there: list[str] = []
            if run.report.complete:
                lost = await self._lost(run, roots)
                gone = run.gone & self._known.keys()
                await self._remove(run, outside_of(gone, lost))
                await self._declare_libraries(run)
                there = outside_of(roots if changed is None else changed, lost)
        await notes.end(there, was_all=run.report.complete and changed is None)
        return run.report.reply()

    async def _lost(self, run: IngestRun, roots: Sequence[str]) -> list[str]:
        """Return the roots that were renamed, or are not mounted now: what the corpus has of them stays."""
        lost = [
            root for root in roots if root not in self._known and not await in_thread(os.path.exists, root)
        ]
        for root in lost:
            run.report.left_out(root, "it is not there; what the corpus has of it stays")
        return lost

    def _notes(self, run: IngestRun) -> Notes:
        return Notes(self.ask, self._row.full_name, self._base, run)

    @contextmanager
    def _recorded(self, run: IngestRun) -> Iterator[None]:
        """Record what was changed, also when it ends before its time; a workspace changes with each word."""
        try:
            yield
        finally:
            if (details := run.report.changes) and not self._base:
                corpus = self._row.full_name
                tell(self._runtime, "ingest_documents", principal=self._principal, corpus=corpus, **details)

    async def _filled(
        self, run: IngestRun, notes: Notes, found: Iterator[Found | LeftOut], total: int, share: int
    ) -> None:
        """Put in whatever is found, or all but what takes more than its share of the time that is left."""
        failures: list[Exception] = []
        send, receive = trio.open_memory_channel[Job](0)

        async def work(jobs: trio.MemoryReceiveChannel[Job], scope: trio.CancelScope) -> None:
            try:
                await self._work(run, jobs, share)
            except Exception as error:  # noqa: BLE001  (whatever it is, it is raised when all have ended)
                failures.append(error)
                scope.cancel()

        async with trio.open_nursery() as telling:
            telling.start_soon(notes.keep_telling, total)
            async with trio.open_nursery() as nursery, send, receive:
                for _ in range(UNDER_WAY):
                    nursery.start_soon(work, receive.clone(), nursery.cancel_scope)
                await self._looked_through(run, found, total, share, send)
            telling.cancel_scope.cancel()
        if failures:
            raise failures[0]

    async def _looked_through(
        self,
        run: IngestRun,
        found: Iterator[Found | LeftOut],
        total: int,
        share: int,
        jobs: trio.MemorySendChannel[Job],
    ) -> None:
        """Have those files parsed that changed."""
        is_last = False
        while not is_last:
            step = await in_thread(partial(next_step, found, self._known, is_source=bool(self._base)))
            run.take(step)
            if step.job is not None:
                seconds = self.parsers.setbacks.seconds(step.job)
                if seconds and share > 1:
                    run.cut(step.job.path, seconds, is_last=False)
                else:
                    await jobs.send(step.job)
            if self._progress is not None:
                self._progress(run.looked_at, total)
            is_last = step.is_last or run.is_cut()

    async def _work(self, run: IngestRun, jobs: trio.MemoryReceiveChannel[Job], share: int) -> None:
        """Put in files that changed, each in its share of the time that is left."""
        async with jobs:
            async for job in jobs:
                if not await self._put(run, job, share):
                    run.cut(job.path, self.parsers.setbacks.seconds(job), is_last=share == 1)

    async def renew(self, paths: Collection[str]) -> None:
        """Read files again that are read better now, slowly, one after the other: nobody waits for it.

        Of a workspace what changed meanwhile is left to whoever takes in changes; of documents those are
        read, too, that could not be before.
        """
        run = IngestRun(Report(self._row.full_name), set(), inf)
        for path in paths:
            began = trio.current_time()
            name = path.removeprefix(self._base)
            request = schemas.ListDocuments(corpus=self._row.full_name, path=name)
            known = (await self.ask(request)).documents  # another process may have done it meanwhile
            if known:
                self._known[path] = Known(known[0].digest, known[0].reader)
            elif not await self._has_failed(name):
                continue
            await self._renewed(run, path)
            await trio.sleep(_REST * (trio.current_time() - began))
        if not self._base:
            await self._declare_libraries(run)
            await self._notes(run).end(list(paths))

    async def _has_failed(self, name: str) -> bool:
        failed = await self.ask(ListFailed(corpus=self._row.full_name))
        return not self._base and any(each.path == name for each in failed)

    async def _renewed_at_once(self, run: IngestRun) -> None:
        """Read files again as part of a run, as many as there is time for."""
        for path in run.outdated:
            if trio.current_time() >= run.deadline:
                return
            await self._renewed(run, path)

    async def _renewed(self, run: IngestRun, path: str) -> None:
        job = await in_thread(partial(read_job, path, is_source=bool(self._base)))
        known = self._known.get(path)
        if isinstance(job, LeftOut) or job is None:
            return
        if known is None and not self._base:
            await self._put(run, job, 1)
        elif known is not None and known.digest == digest_of(job.data) and is_newer(job.reader, known.reader):
            await self._put(run, job, 1, renews=True)

    async def _put(self, run: IngestRun, job: Job, share: int, *, renews: bool = False) -> bool:
        """Parse one file and put it in; what cannot be read is left out, and gone if it was there.

        Args:
            run: The run.
            job: The file.
            share: The part of the time that is left which it has.
            renews: Whether the corpus has this file, which a newer reader reads: what there is stays if that
                finds less.

        Returns:
            Whether it was parsed in its share of the time that is left.
        """
        parsed = None
        name = job.path.removeprefix(self._base)
        async with self._parsing:
            now = trio.current_time()
            with trio.move_on_at(now + (run.deadline - now) / share):
                parsed = await self.parsers.parse(msgspec.structs.replace(job, path=name))
        if parsed is None:
            return False
        reader = job.reader if parsed.facts is not None else too_much_for(job.reader)
        if renews and (parsed.document is None or reader != job.reader):
            note = schemas.NoteReader(
                corpus=self._row.full_name, path=name, digest=digest_of(job.data), reader=job.reader
            )
            await self.ask(note)
            return True
        if parsed.document is None:
            run.failed(job.path, parsed.failure, stays=parsed.stays)
            return True
        # Of what a parser says, which may have been taken over by a file, neither is believed. In a workspace
        # the path is none of the machine's, so nobody may look there whether the file has changed.
        is_file = job.is_file and not self._base
        document = msgspec.structs.replace(parsed.document, path=name, is_file=is_file)
        if self._charge is not None:
            await self._charge(len(job.data), f"{document.path} {document.digest}")
        try:
            put = schemas.PutDocument(
                corpus=self._row.full_name,
                document=document,
                prepared=parsed.prepared,
                facts=parsed.facts,
                reader=reader,
                only_same=renews,
            )
            stored = await self.ask(put)
        except Refusal as refusal:
            if refusal.code != "VALIDATION_ERROR":
                raise
            run.failed(job.path, f"it is refused: {refusal.sentence}")
            return True
        self._known[job.path] = Known(document.digest, reader)
        run.failures.pop(job.path, None)
        run.report.stored(stored.state, stored.chunks, len(job.data))
        run.report.unread(job.path, parsed.unread)
        return True

    async def _remove(self, run: IngestRun, paths: Iterable[str]) -> None:
        """Remove documents, so many at once as there is room for."""
        left = sorted(path.removeprefix(self._base) for path in paths)
        while left:
            some = left[:_REMOVED_AT_ONCE]
            answer = await self.ask(schemas.RemoveDocuments(corpus=self._row.full_name, paths=some))
            run.report.removed(len(answer.removed))
            for path in answer.removed:
                self._known.pop(self._base + path, None)
            left = [*answer.left, *left[_REMOVED_AT_ONCE:]]

    async def _declare_libraries(self, run: IngestRun) -> None:
        """Declare the libraries that manifests in the corpus name, if one of these is not as it was."""
        found = await self.ask(entities.ReadManifests(corpus=self._row.full_name, only_changed=True))
        if not found.is_changed:
            return
        libraries, unreadable = await trio.to_thread.run_sync(libraries_in, found.manifests)
        request = entities.DeclareEntities(
            corpus=self._row.full_name,
            libraries=libraries,
            manifests=found.state,
            are_all=not unreadable,  # as one that is being edited
        )
        try:
            await self.ask(request)
        except Refusal as refusal:
            if refusal.code not in {"QUOTA_EXCEEDED", "VALIDATION_ERROR"}:
                raise
            run.report.left_out(found.manifests[0].name, f"its libraries are refused: {refusal.sentence}")

    async def ask(self, message: Message[R]) -> R:
        """Ask the corpus; raises as `RuntimeClient.ask`."""
        return await self._runtime.ask(corpus_address(self._row), message, principal=self._principal)


def _deadline() -> float:
    """Return when a run ends, so that its answer comes in time."""
    return trio.current_effective_deadline() - _SLACK_SECONDS
