"""Keeping workspaces: their indexes are made in the background when first needed, and kept up to date.

Of several processes on one folder one does it and the others wait for its end. A search is answered from what
is there, with how far that is; the first one waits for it a while.
"""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from math import inf
from typing import TYPE_CHECKING, Final

import trio

from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.base.threads import read_in_thread
from greenroom.actors.knowledge.corpora.handlers.lease import RENEW_SECONDS
from greenroom.actors.knowledge.corpora.requests.catalogue import corpus_address
from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusRow
from greenroom.actors.schemas.workspace import DropKeeper, FindKeeper, KeepWorkspace, Kept, WorkspaceState
from greenroom.actors.workspace.processes import has_died, new_mark
from greenroom.runtime import GreenroomError, Refusal, RuntimeClient

if TYPE_CHECKING:
    from greenroom.actors.knowledge.ingest.files.watch import Changes
    from greenroom.actors.knowledge.ingest.run import Ingestion

logger = logging.getLogger(__name__)

QUIET_SECONDS: Final = 60.0
"""After so long without a change the processes that parse are ended."""
UNWATCHED_SECONDS: Final = 120.0
"""Where the system does not tell of changes, all files are looked at again after so long."""
RETRY_SECONDS: Final = 30.0
MOST: Final = 100
"""Workspaces that one process keeps."""
SLOW_SECONDS: Final = 0.2
"""What changed and is not taken in after so long is said to be under way, to other processes, too."""
MANY: Final = 1_000
"""After so many changes at once, as when a branch is checked out, everything is looked at again."""
_GOODBYE_SECONDS: Final = 1.0


@asynccontextmanager
async def open_workspaces(runtime: RuntimeClient) -> AsyncIterator[Workspaces]:
    """Keep workspaces as long as this is open."""
    async with trio.open_nursery() as nursery:
        yield Workspaces(runtime, nursery)
        nursery.cancel_scope.cancel()


class Workspaces:
    """The workspaces that this process keeps, or waits to keep; made by `open_workspaces`."""

    def __init__(self, runtime: RuntimeClient, nursery: trio.Nursery) -> None:
        self._runtime = runtime
        self._nursery = nursery
        self._keepers: dict[str, Keeper] = {}

    def need(self, principal: Principal, row: CorpusRow, closed: Sequence[str]) -> Keeper | None:
        """Return the keeper of a workspace, which begins now if there was none; None if there are too many.

        Args:
            principal: Who needs it; the index is kept in this name.
            row: The workspace.
            closed: Folders that nobody reads.
        """
        keeper = self._keepers.get(row.key)
        if keeper is None and len(self._keepers) < MOST:
            keeper = self._keepers[row.key] = Keeper(self._runtime, principal, row, closed)
            self._nursery.start_soon(self._run, keeper)
        return keeper

    async def _run(self, keeper: Keeper) -> None:
        try:
            with self._runtime.apply_settings():
                await keeper.run()
        except Exception:
            logger.exception("the workspace %s is not kept any more", keeper.root)
        finally:
            del self._keepers[keeper.key]
            keeper.settled.set()


class Keeper:
    """Keeps one workspace in this process, or waits until it may.

    Attributes:
        root: The folder.
        key: Of its corpus.
        patience: Until when, on trio's clock, a search waits for it: so long after the first one.
        settled: Set once the index is as the folder is, or another process sees to that, or it cannot be.
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
        self._news = trio.Event()
        self._changes: Changes | None = None
        self._waiting = 0
        self._is_keeping = False
        self._outdated: set[str] = set()
        self._has_outdated = trio.Event()

    @property
    def is_keeping(self) -> bool:
        """Whether it is this process that keeps it."""
        return self._is_keeping

    @property
    def is_behind(self) -> bool:
        """Whether this process knows of changes that are not taken in."""
        return self._waiting > 0 or (self._changes is not None and self._changes.is_pending)

    async def run(self) -> None:
        """Keep it until the folder or its corpus is gone."""
        # Both take long to import, and nobody but keepers waits for them.
        for module in ("run", "watch"):
            await trio.to_thread.run_sync(import_module, f"greenroom.actors.ingest.{module}")
        self._token = await trio.to_thread.run_sync(new_mark)
        try:
            while await self._is_there() and await self._attempted():
                pass
        finally:
            with suppress(GreenroomError), trio.move_on_after(_GOODBYE_SECONDS, shield=True):
                await self._say("unwatched")

    async def _attempted(self) -> bool:
        """Keep it as long as that goes well, or wait; return whether to go on after that."""
        goes_on = True
        try:
            if (await self._say("indexing")).is_asker:
                self._is_keeping = True
                await self._kept()
            elif not await released(self._runtime, self._principal, self._row):
                self.settled.set()
                await trio.sleep(RENEW_SECONDS)
        except* Refusal as refused:
            logger.info("the workspace %s is not kept: %s", self.root, refused.exceptions[0])
            goes_on = False
        except* GreenroomError as failed:
            logger.warning("the workspace %s is kept later: %s", self.root, failed.exceptions[0])
            self.settled.set()
            with suppress(GreenroomError):
                await self._say("unwatched")
            await trio.sleep(RETRY_SECONDS)
        finally:
            self._is_keeping = False
        return goes_on

    async def _kept(self) -> None:
        """Index and watch, as long as it is ours and the folder is there; else index and wait."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._renew, nursery.cancel_scope)
            nursery.start_soon(self._renew_outdated)
            await self._watched()
            nursery.cancel_scope.cancel()
        if self._state == "unwatched":
            await trio.sleep(UNWATCHED_SECONDS)

    async def _renew(self, scope: trio.CancelScope) -> None:
        """Say so again and again that it is kept, until another process keeps it or the folder is gone."""
        while await self._is_there():
            with trio.move_on_after(RENEW_SECONDS):
                await self._news.wait()
            self._news = trio.Event()
            if not (await self._say(self._state)).is_asker:
                break
        scope.cancel()

    async def _is_there(self) -> bool:
        return await trio.to_thread.run_sync(os.path.isdir, self.root, abandon_on_cancel=True)

    async def _watched(self) -> None:
        """Take in what is there and what changes; where changes are not told, once."""
        from greenroom.actors.knowledge.ingest.files.watch import NotWatchedError, watching  # noqa: PLC0415  imported by now

        failed: ExceptionGroup[NotWatchedError] | None = None
        try:
            async with watching([self.root], self._closed) as changes:
                self._changes = changes
                await self._followed(changes)
        except* NotWatchedError as errors:
            failed = errors
        finally:
            self._changes, self._waiting = None, 0
        if failed is not None:
            logger.warning("%s", failed.exceptions[0])
            self._waiting = 1  # nobody is to be told that it is watched
            await self._taken_in(frozenset(), None)
            await self._renewed()
            await self._say("unwatched")
            self._waiting = 0

    async def _followed(self, changes: Changes) -> None:
        """Take in what is there and what changes, until the folder is gone."""
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
                await self._taken_in(paths, receive)
                paths = await receive.receive()
            nursery.cancel_scope.cancel()

    async def _taken_in(
        self, paths: frozenset[str], more: trio.MemoryReceiveChannel[frozenset[str]] | None
    ) -> None:
        """Take in what changed, none for everything, and what comes soon after that."""
        from greenroom.actors.knowledge.ingest.run import open_ingestion  # noqa: PLC0415  imported by now

        async with open_ingestion(
            self._runtime,
            self._principal,
            self._row.full_name,
            root=self.root,
            closed=self._closed,
            progress=self._hear,
        ) as ingestion:
            if 0 < len(paths) <= MANY:
                await ingestion.learn([self.root])
            while True:
                if 0 < len(paths) <= MANY:
                    await self._changed(ingestion, paths)
                else:
                    await self._gone_through(ingestion)
                if more is None:
                    return
                self._waiting -= 1
                with trio.move_on_after(QUIET_SECONDS) as waiting:
                    paths = await more.receive()
                if waiting.cancelled_caught:
                    return

    async def _changed(self, ingestion: Ingestion, paths: frozenset[str]) -> None:
        """Take in some paths, and say so where that takes longer than nobody would notice."""
        async with trio.open_nursery() as nursery:

            async def say() -> None:
                await trio.sleep(SLOW_SECONDS)
                await self._say("indexing")

            nursery.start_soon(say)
            await ingestion.changes([self.root], paths)
            nursery.cancel_scope.cancel()
        if self._state != "watching":
            await self._say("watching")

    async def _gone_through(self, ingestion: Ingestion) -> None:
        """Take in all that is there."""
        await self._say("indexing")
        done = await ingestion.files([self.root])
        self._left_out, self._is_partial = done.left_out, not done.complete
        await self._say("watching")
        self.settled.set()
        self._outdated |= ingestion.outdated
        self._has_outdated.set()

    async def _renew_outdated(self) -> None:
        """Read files again that are read better now, whenever some were found."""
        while True:
            await self._has_outdated.wait()
            self._has_outdated = trio.Event()
            await self._renewed()

    async def _renewed(self) -> None:
        """Read the files again that are read better now; of several workspaces one at a time."""
        from greenroom.actors.knowledge.ingest.run import open_renewal  # noqa: PLC0415  imported by now

        while self._outdated:
            async with open_renewal(
                self._runtime, self._principal, self._row.full_name, root=self.root, closed=self._closed
            ) as ingestion:
                paths, self._outdated = self._outdated, set()
                await ingestion.renew(paths)

    def _hear(self, _done: int, total: int) -> None:
        """Hear how many files there are, and have it said soon."""
        if total and self._of != total:
            self._of = total
            self._news.set()

    async def _say(self, state: Kept) -> WorkspaceState:
        """Tell the corpus that it is kept, or not any more; return how far it is."""
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


async def released(runtime: RuntimeClient, principal: Principal, row: CorpusRow) -> bool:
    """Return whether nobody keeps a workspace; who does and has died keeps it no more."""
    address, corpus = corpus_address(row), row.full_name
    keeper = await runtime.ask(address, FindKeeper(corpus=corpus), principal=principal)
    if not keeper:
        return True
    if not await read_in_thread(has_died, keeper):
        return False
    await runtime.ask(address, DropKeeper(corpus=corpus, keeper=keeper), principal=principal)
    return True
