"""Index workspaces in the background: on first use, and again after each change.

If several processes share a folder, one holds the indexing lease; the others wait until the lease ends.
Searches use the current index and report its progress. The first search waits for the index for a while.
"""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from math import inf
from typing import TYPE_CHECKING, Final

import psutil  # type: ignore[import-untyped]  # has no types
import trio

from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.knowledge.corpora.handlers.lease import RENEW_SECONDS
from greenroom.actors.knowledge.corpora.requests.catalogue import corpus_address
from greenroom.actors.knowledge.corpora.requests.code_symbols import FindNamed
from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusRow
from greenroom.actors.knowledge.corpora.requests.ingestion import DocumentsIngested
from greenroom.actors.knowledge.corpora.requests.workspace import (
    DropKeeper,
    FindKeeper,
    KeepWorkspace,
    Kept,
    WorkspaceState,
)
from greenroom.actors.knowledge.ingest.files.exclusions import SECRET
from greenroom.runtime import GreenroomError, Refusal, RuntimeClient

if TYPE_CHECKING:
    from greenroom.actors.knowledge.ingest.files.watch import Changes
    from greenroom.actors.knowledge.ingest.run import Ingestion

logger = logging.getLogger(__name__)

QUIET_SECONDS: Final = 60.0
"""After this many seconds without a change, the parser processes end."""
UNWATCHED_SECONDS: Final = 120.0
"""If the system does not report changes, all files are checked at this interval."""
RETRY_SECONDS: Final = 30.0
MOST: Final = 100
"""Maximum number of workspaces of one process."""
SLOW_SECONDS: Final = 0.2
"""A change that takes longer than this is reported as being indexed, also to other processes."""
MANY: Final = 1_000
"""If more paths than this change at once, as when a branch is checked out, all files are checked."""
_GOODBYE_SECONDS: Final = 1.0


@asynccontextmanager
async def open_workspaces(runtime: RuntimeClient) -> AsyncIterator[Workspaces]:
    """Index workspaces while the context is open."""
    async with trio.open_nursery() as nursery:
        yield Workspaces(runtime, nursery)
        nursery.cancel_scope.cancel()


class Workspaces:
    """The workspaces for which this process holds, or waits for, the lease; see `open_workspaces`."""

    def __init__(self, runtime: RuntimeClient, nursery: trio.Nursery) -> None:
        self._runtime = runtime
        self._nursery = nursery
        self._indexers: dict[str, Indexer] = {}

    def need(self, principal: Principal, row: CorpusRow, closed: Sequence[str]) -> Indexer | None:
        """Return a workspace's indexer, and start it if needed; None if there are too many."""
        indexer = self._indexers.get(row.key)
        if indexer is None and len(self._indexers) < MOST:
            indexer = self._indexers[row.key] = Indexer(self._runtime, principal, row, closed)
            self._nursery.start_soon(self._run, indexer)
        return indexer

    def start_soon(self, task: Callable[[], Awaitable[None]]) -> None:
        """Start a task that ends with the workspaces."""
        self._nursery.start_soon(task)

    async def _run(self, indexer: Indexer) -> None:
        try:
            with self._runtime.apply_settings():
                await indexer.run()
        except Exception:
            logger.exception("the workspace %s is not indexed any more", indexer.root)
        finally:
            del self._indexers[indexer.key]
            indexer.settled.set()


class Indexer:
    """Indexes one workspace while this process holds its lease; else waits for the lease.

    Attributes:
        patience: The time on trio's clock until which searches wait for the index; the first search sets it.
        settled: Set once the index matches the folder, another process indexes the folder, or indexing fails.
    """

    def __init__(
        self, runtime: RuntimeClient, principal: Principal, row: CorpusRow, closed: Sequence[str]
    ) -> None:
        assert row.root is not None, "what is kept is a workspace"
        self.root = row.root
        self.key = row.key
        self.settled = trio.Event()
        self.patience = inf
        self._runtime = runtime
        self._principal = principal
        self._row = row
        self._closed = closed
        self._token = ""
        self._state: Kept = "indexing"
        self._of: int | None = None
        self._is_partial = False
        self._left_out: dict[str, int] | None = None
        self._secrets: set[str] = set()
        self._news = trio.Event()
        self._changes: Changes | None = None
        self._waiting = 0
        self.holds_lease = False
        self._outdated: set[str] = set()
        self._has_outdated = trio.Event()

    @property
    def is_behind(self) -> bool:
        """Whether this process knows of changes that are not indexed yet."""
        return self._waiting > 0 or (self._changes is not None and self._changes.is_pending)

    async def run(self) -> None:
        """Index the workspace until the folder or its corpus is gone."""
        # Both modules are slow to import, and only this function needs them.
        for module in ("run", "files.watch"):
            await trio.to_thread.run_sync(import_module, f"greenroom.actors.knowledge.ingest.{module}")
        self._token = await trio.to_thread.run_sync(new_holder)
        try:
            while await self._is_there() and await self._try_indexing():
                pass
        finally:
            with suppress(GreenroomError), trio.move_on_after(_GOODBYE_SECONDS, shield=True):
                await self._update_lease("unwatched")

    async def _try_indexing(self) -> bool:
        """Index while this process has the lease, or else wait; return whether to continue."""
        goes_on = True
        try:
            if (await self._update_lease("indexing")).is_asker:
                self.holds_lease = True
                await self._hold()
            elif not await release_if_dead(self._runtime, self._principal, self._row):
                self.settled.set()
                await trio.sleep(RENEW_SECONDS)
        except* Refusal as refused:
            logger.info("the workspace %s is not indexed: %s", self.root, refused.exceptions[0])
            goes_on = False
        except* GreenroomError as failed:
            logger.warning("the workspace %s is indexed later: %s", self.root, failed.exceptions[0])
            self.settled.set()
            with suppress(GreenroomError):
                await self._update_lease("unwatched")
            await trio.sleep(RETRY_SECONDS)
        finally:
            self.holds_lease = False
        return goes_on

    async def _hold(self) -> None:
        """Index and watch while the lease lasts; without watches, index once and wait."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._renew_lease, nursery.cancel_scope)
            nursery.start_soon(self._renew_outdated)
            nursery.start_soon(self._read_names)
            await self._watch()
            nursery.cancel_scope.cancel()
        if self._state == "unwatched":
            await trio.sleep(UNWATCHED_SECONDS)

    async def _renew_lease(self, scope: trio.CancelScope) -> None:
        """Renew the lease until it is lost or the folder is gone."""
        while await self._is_there():
            with trio.move_on_after(RENEW_SECONDS):
                await self._news.wait()
            self._news = trio.Event()
            if not (await self._update_lease(self._state)).is_asker:
                break
        scope.cancel()

    async def _is_there(self) -> bool:
        return await trio.to_thread.run_sync(os.path.isdir, self.root, abandon_on_cancel=True)

    async def _watch(self) -> None:
        """Index all files, then each change; without notifications of changes, index once."""
        from greenroom.actors.knowledge.ingest.files.watch import NotWatchedError, watch  # noqa: PLC0415  already imported

        failed: ExceptionGroup[NotWatchedError] | None = None
        try:
            async with watch([self.root], self._closed) as changes:
                self._changes = changes
                await self._follow(changes)
        except* NotWatchedError as errors:
            failed = errors
        finally:
            self._changes, self._waiting = None, 0
        if failed is not None:
            logger.warning("%s", failed.exceptions[0])
            self._waiting = 1  # so that the workspace is not reported as watched
            await self._index_changes(frozenset(), None)
            await self._read_outdated()
            await self._update_lease("unwatched")
            self._waiting = 0

    async def _follow(self, changes: Changes) -> None:
        send, receive = trio.open_memory_channel[frozenset[str]](0)

        async def tell() -> None:
            while True:
                paths = await changes.next()
                self._waiting += 1
                await send.send(paths)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(tell)
            paths = frozenset[str]()
            self._waiting += 1
            while await self._is_there():
                await self._index_changes(paths, receive)
                paths = await receive.receive()
            nursery.cancel_scope.cancel()

    async def _index_changes(
        self, paths: frozenset[str], more: trio.MemoryReceiveChannel[frozenset[str]] | None
    ) -> None:
        """Index changed paths (an empty set means all), and the changes that follow soon."""
        from greenroom.actors.knowledge.ingest.run import open_ingestion  # noqa: PLC0415  already imported

        async with open_ingestion(
            self._runtime,
            self._principal,
            self._row.full_name,
            root=self.root,
            closed=self._closed,
            progress=self._set_total,
        ) as ingestion:
            if self._are_few(paths):
                await ingestion.learn([self.root])
            while True:
                if self._are_few(paths):
                    await self._index_paths(ingestion, paths)
                else:
                    await self._index_all(ingestion)
                if more is None:
                    return
                self._waiting -= 1
                with trio.move_on_after(QUIET_SECONDS) as waiting:
                    paths = await more.receive()
                if waiting.cancelled_caught:
                    return

    def _are_few(self, paths: frozenset[str]) -> bool:
        """Return whether to check only these paths; all secrets must be known by name."""
        from greenroom.actors.knowledge.ingest.run_state import MAX_SECRETS  # noqa: PLC0415  already imported

        return 0 < len(paths) <= MANY and (self._left_out or {}).get(SECRET, 0) <= MAX_SECRETS

    async def _index_paths(self, ingestion: Ingestion, paths: frozenset[str]) -> None:
        """Index some paths; if this takes noticeably long, report it."""
        async with trio.open_nursery() as nursery:

            async def say() -> None:
                await trio.sleep(SLOW_SECONDS)
                await self._update_lease("indexing")

            nursery.start_soon(say)
            done = await ingestion.changes([self.root], paths)
            nursery.cancel_scope.cancel()
        if self._count_secrets(done, paths) or self._state != "watching":
            await self._update_lease("watching")

    def _count_secrets(self, done: DocumentsIngested, changed: frozenset[str]) -> bool:
        from greenroom.actors.knowledge.ingest.steps import find_below  # noqa: PLC0415  already imported

        gone = find_below(self._secrets, changed) | self._secrets & changed
        there = (self._secrets - gone) | _list_secrets(done)
        more, self._secrets = len(there) - len(self._secrets), there
        left_out = self._left_out or {}
        self._left_out = {**left_out, SECRET: left_out.get(SECRET, 0) + more}
        return more != 0

    async def _index_all(self, ingestion: Ingestion) -> None:
        await self._update_lease("indexing")
        done = await ingestion.files([self.root])
        self._left_out, self._is_partial = done.left_out, not done.complete
        self._secrets = _list_secrets(done)
        await self._update_lease("watching")
        self.settled.set()
        self._outdated |= ingestion.outdated
        self._has_outdated.set()

    async def _read_names(self) -> None:
        """Read the names of a settled workspace, before a search waits for that."""
        await self.settled.wait()
        request = FindNamed(corpus=self._row.full_name, names=[])
        with suppress(GreenroomError):
            while (
                await self._runtime.ask(corpus_address(self._row), request, principal=self._principal) is None
            ):
                pass

    async def _renew_outdated(self) -> None:
        while True:
            await self._has_outdated.wait()
            self._has_outdated = trio.Event()
            await self._read_outdated()

    async def _read_outdated(self) -> None:
        """Read outdated files again, for one workspace at a time."""
        from greenroom.actors.knowledge.ingest.run import open_renewal  # noqa: PLC0415  already imported

        while self._outdated:
            async with open_renewal(
                self._runtime, self._principal, self._row.full_name, root=self.root, closed=self._closed
            ) as ingestion:
                paths, self._outdated = self._outdated, set()
                await ingestion.renew(paths)

    def _set_total(self, _done: int, total: int) -> None:
        if total and self._of != total:
            self._of = total
            self._news.set()

    async def _update_lease(self, state: Kept) -> WorkspaceState:
        self._state = state
        request = KeepWorkspace(
            corpus=self._row.full_name,
            keeper=self._token,
            state=state,
            of=self._of,
            is_partial=self._is_partial,
            left_out=self._left_out,
        )
        return await self._runtime.ask(corpus_address(self._row), request, principal=self._principal)


def _list_secrets(done: DocumentsIngested) -> set[str]:
    return {each.path for each in done.named if each.reason == SECRET}


async def release_if_dead(runtime: RuntimeClient, principal: Principal, row: CorpusRow) -> bool:
    """Return whether a workspace's lease is free; release the lease of a dead process."""
    address, corpus = corpus_address(row), row.full_name
    holder = await runtime.ask(address, FindKeeper(corpus=corpus), principal=principal)
    if not holder:
        return True
    if not await read_in_thread(has_died, holder):
        return False
    await runtime.ask(address, DropKeeper(corpus=corpus, keeper=holder), principal=principal)
    return True


_SLACK_SECONDS: Final = 2.0
"""Tolerance for the start time of a process, because the system clock may be set."""


def new_holder() -> str:
    """Return a new, unique id for a lease holder in this process."""
    began = psutil.Process().create_time()
    return f"{secrets.token_hex(8)} {os.getpid()} {began:.2f} {_namespace()}"


def has_died(mark: str) -> bool:
    """Return whether a holder's process is surely gone; False for a process in another container."""
    _, _, process = mark.partition(" ")
    number, _, rest = process.partition(" ")
    began, _, namespace = rest.partition(" ")
    if not number.isdecimal() or namespace != _namespace():
        return False
    try:
        found = psutil.Process(int(number))
        is_same = abs(found.create_time() - float(began)) <= _SLACK_SECONDS
        return not is_same or found.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
    except (psutil.Error, ValueError):
        return False


def _namespace() -> str:
    """Return the namespace of process ids, which differs between containers."""
    with suppress(OSError):
        return os.readlink("/proc/self/ns/pid")  # noqa: PTH115
    return os.uname().nodename
