"""The door for programs: open a runtime on a folder, ask, tell, query, and close it in order."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import trio
from msgspec import Raw

from greenroom.runtime.actor.actor import Actor
from greenroom.runtime.actor.audit_buffer import Notes
from greenroom.runtime.actor.context import Domain
from greenroom.runtime.actor.query import IndexReader, Query
from greenroom.runtime.api.client import Doors
from greenroom.runtime.api.procedure import Desk, Procedure
from greenroom.runtime.base.address import Address
from greenroom.runtime.base.clock import Clock
from greenroom.runtime.base.errors import (
    GreenroomError,
    Refusal,
    RuntimeClosedError,
    StoreDamagedError,
    StoreFailedError,
    UnknownKindError,
)
from greenroom.runtime.base.options import RuntimeOptions
from greenroom.runtime.base.random_pool import BlockRandom
from greenroom.runtime.base.statistics import RuntimeStatistics
from greenroom.runtime.base.supervision import Group
from greenroom.runtime.journal.chain import Journal, Keys
from greenroom.runtime.journal.checkpoints import SUFFIX, Seen
from greenroom.runtime.journal.revocations import SUFFIX as LASTING
from greenroom.runtime.journal.revocations import Again, Lasting
from greenroom.runtime.journal.secrets import Secret
from greenroom.runtime.kernel.expiry import Janitor
from greenroom.runtime.kernel.group_commit import Pipeline
from greenroom.runtime.kernel.kernel import Kernel
from greenroom.runtime.kernel.outbox import Deliveries
from greenroom.runtime.kernel.pubsub import WINDOW_SECONDS, Bus, Subscriber
from greenroom.runtime.kernel.stats_collector import runtime_statistics
from greenroom.runtime.lmdb import keys as lmdb_keys
from greenroom.runtime.lmdb.keys import Index
from greenroom.runtime.lmdb.lock_file import Owner
from greenroom.runtime.maintenance import backup as maintenance_backup
from greenroom.runtime.maintenance.scrub import scrub
from greenroom.runtime.store.committer import Committer
from greenroom.runtime.store.store import INDEXES, Store

if TYPE_CHECKING:
    from greenroom.runtime.kernel.callbacks import Posts

logger = logging.getLogger(__name__)

R = TypeVar("R")

OWNERSHIP_CHECK_SECONDS = 2.0


class Runtime(Doors):
    """A running set of actors on one folder. `open_runtime` makes it."""

    _kernel: Kernel

    def __init__(
        self,
        kinds: dict[str, type[Actor]],
        groups: dict[str, Group],
        indexes: Mapping[str, Index],
        store: Store,
        committer: Committer,
        clock: Clock,
        options: RuntimeOptions,
        bus: Bus | None = None,
        posts: Posts | None = None,
        secret: Secret | None = None,
        journals: Mapping[str, Journal] | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._failure: StoreFailedError | StoreDamagedError | None = None
        self._ended = False
        self._lasting: Lasting | None = None
        self._stop = trio.CancelScope()
        self._notes = Notes(journals or {}, clock)
        self._domain = Domain(store, indexes, BlockRandom(), self._slice_over, self._notes, secret)
        self._kernel = Kernel(kinds, groups, self._domain, clock, options)
        self._domain.last_number = max(clock.now(), _last_outbox_number(store))
        self._pipeline = Pipeline(committer, store, self._kernel.settle, self._fail)
        self._deliveries = Deliveries(store, kinds, self._kernel, self._pipeline, clock)
        self._pipeline.notes = self._notes
        self._kernel.pipeline = self._pipeline
        self._kernel.deliveries = self._deliveries
        self._bus = self._kernel.bus = Bus(self._kernel.is_busy) if bus is None else bus
        if bus is not None:
            bus.is_busy = self._kernel.is_busy
        self._domain.is_heard = self._bus.is_heard
        if posts is not None:
            posts.go_through(self._kernel)
            self._kernel.posts = posts
        answers_ttl = options.idempotency_seconds * 1_000_000
        self._janitor = Janitor(
            store, indexes.values(), answers_ttl, self._pipeline, self._kernel.residents, clock, self._domain
        )
        if secret is not None and secret.place is not None:
            self._lasting = store.keep_lasting(secret.place.with_suffix(LASTING), clock.now())
        if journals:
            self._keep_journals(journals)

    def _keep_journals(self, journals: Mapping[str, Journal]) -> None:
        """Find where the journals end, and say so if that is not where they ended before."""
        secret = self._domain.secret
        if secret is None or secret.place is None:
            raise ValueError("a runtime with journals needs a secret; name its folder")
        keys = self._domain.keys = {name: Keys(name, secret) for name in journals}
        seen = self._domain.seen = Seen(secret.place.with_suffix(SUFFIX))
        self._store.keep_journals(keys.values())
        for name, journal in journals.items():
            with self._store.reading() as reading:
                found = seen.compare(keys[name], reading, self._clock.now())
            if found is not None:
                log = logger.debug if found.restored else logger.warning  # who restores a backup expects it
                log("records %d to %d of %r were seen and are gone", found.first, found.last, name)
                self._notes.add(name, journal.broken(found.first, found.last))

    def note_seen(self) -> None:
        """Keep what the journals are beside the secret, when all is on disk."""
        for name in self._domain.journals:
            self._janitor.note_seen(self._janitor.checkpoint(name))

    def parts(self) -> tuple[Kernel, Pipeline, Bus, Store]:
        """Return the parts that a relay works with."""
        return self._kernel, self._pipeline, self._bus, self._store

    def check_open(self) -> None:
        """Raise what the doors raise when nothing is taken any more.

        Raises:
            RuntimeClosedError, StoreFailedError: that is so.
        """
        self._check_open()

    @property
    def has_ended(self) -> bool:
        """Whether nobody gets a turn any more."""
        return self._ended

    def run_ready(self) -> None:
        """Give actors that have something to do their turns now, not when the event loop comes round to it.

        For a program that has posted all it has and would only wait: its callbacks come a pass earlier.
        It takes no longer than one slice, and must not be called from a handler or a callback.
        """
        if not self._ended:
            self._kernel.dispatcher.run_ready()

    def held(self) -> AbstractContextManager[None]:
        """Return a block within which nothing that is posted wakes the task that gives actors their turns.

        For a program that ends the block with `run_ready`: then that task has nothing left to do, and
        the event loop is free for the writer's thread a pass earlier. Who is ready after the block
        has its turn as ever. There must be no ``await`` within.
        """
        return self._kernel.dispatcher

    async def query(self, query: Query[R] | Procedure[R], *, principal: Any = None) -> R:
        """Run a query or a procedure and return its answer, once what it saw is on disk."""
        self._check_open()
        await trio.lowlevel.checkpoint()
        if query.sees_notes:
            self._flush_notes()
            await self._pipeline.landed()  # a group that was on its way may have some of the notes,
            await self._pipeline.landed()  # and then the next one has the others
        if isinstance(query, Procedure):
            domain = self._domain
            desk = Desk(self, principal, self._clock.now(), domain.companion, domain.note)
            try:
                return await query.run(desk)
            except Refusal as refusal:
                self._note_denial(principal, query, refusal)
                raise
        try:
            return await self._read(query, principal)
        except Refusal as refusal:
            self._note_denial(principal, query, refusal)
            raise

    def _note_denial(self, principal: Any, query: object, refusal: Refusal) -> None:
        if refusal.is_denial:
            self._domain.deny(principal, None, query, refusal)

    async def _read(self, query: Query[R], principal: Any) -> R:
        with self._store.reading() as reading:
            reader = IndexReader(self._domain, reading, principal, self._clock.now())
            started = self._kernel.dispatcher.start_slice()
            answer = query.run(reader)
            if isinstance(answer, Generator):
                while True:
                    try:
                        next(answer)
                    except StopIteration as done:
                        answer = done.value
                        break
                    self._kernel.dispatcher.end_slice(started)
                    await trio.lowlevel.checkpoint()
                    started = self._kernel.dispatcher.start_slice()
            self._kernel.dispatcher.end_slice(started)
        await self._pipeline.landed()
        if self._ended:
            raise self._last_word()
        return answer

    def subscriber(self, window: float = WINDOW_SECONDS) -> Subscriber:
        """Return a subscriber without topics, a context manager.

        The first change of a quiet topic is told at once; those within ``window`` seconds after a
        telling become one, told at its end.

        Raises:
            RuntimeClosedError: the runtime is closed.
        """
        self._check_open()
        return self._bus.subscriber(window)

    def note(self, journal: str, value: Any) -> None:
        """Have a row of a journal follow soon, as `Context.note` does.

        Raises:
            UnknownKindError: no such journal was given when the runtime was opened.
        """
        self._domain.note(journal, value)

    def derive(self, purpose: str) -> bytes:
        """Return the store's key for a purpose: 32 bytes, the same in every process on the folder.

        Raises:
            StoreError: the runtime was opened without a secret.
        """
        return self._domain.derive(purpose)

    def readmit(self, address: Address) -> bool:
        """Let an actor that was set aside in again; return whether it was."""
        return self._kernel.readmit(address)

    async def backup(self, destination: Path) -> maintenance_backup.BackupInfo:
        """Write a copy of the store, as of now, to a new file while the runtime goes on.

        Raises:
            StoreError: the destination exists or cannot be written.
        """
        return await trio.to_thread.run_sync(
            partial(
                maintenance_backup.backup, self._store, destination, poll=trio.from_thread.check_cancelled
            )
        )

    async def verify(self) -> maintenance_backup.VerifyReport:
        """Check the structure and every record, on a copy, in a process of its own.

        Raises:
            StoreDamagedError: naming what is wrong and the remedy.
        """
        return await trio.to_thread.run_sync(
            partial(maintenance_backup.verify, self._store, poll=trio.from_thread.check_cancelled)
        )

    def statistics(self) -> RuntimeStatistics:
        """Return what every part says of itself."""
        return runtime_statistics(
            self._kernel, self._deliveries, self._pipeline, self._bus, self._store, self._janitor
        )

    @property
    def is_sound(self) -> bool:
        """Whether no damage was found, and every commit is on disk or was refused for want of room."""
        return self._failure is None

    @property
    def has_found_damage(self) -> bool:
        """Whether that is why it ended."""
        return isinstance(self._failure, StoreDamagedError)

    def _slice_over(self) -> bool:
        return self._kernel.dispatcher.slice_over()

    def _last_word(self) -> GreenroomError:
        """Return what those hear who still wait when the runtime ends."""
        if self._failure is not None:
            return StoreFailedError(str(self._failure))
        return RuntimeClosedError("the runtime closed before the reply; look whether the request took effect")

    def _check_open(self) -> None:
        if self._failure is not None:
            raise self._last_word()
        if self._ended:
            raise RuntimeClosedError("the runtime is closed")

    def _fail(self, failure: StoreFailedError | StoreDamagedError) -> None:
        """End everything: what is on disk is no longer known, so nothing more may be answered."""
        self._failure = self._store.writer.damage or failure
        self._stop.cancel()
        self._end()  # now, since who is ready already would have its turn before the cancellation

    def _end(self) -> None:
        """Give nobody a turn any more, and answer whoever waits."""
        self._ended = True
        self._kernel.abort(self._last_word)
        self._pipeline.abandon()
        self._bus.close()

    async def _watch_ownership(self, owner: Owner) -> None:
        try:
            while True:
                self._store.writer.check_place()
                owner.check_mine()
                await trio.sleep(OWNERSHIP_CHECK_SECONDS)
        except StoreFailedError as failure:
            self._fail(failure)

    async def _scrub(self) -> None:
        try:
            await scrub(self._store)
        except StoreDamagedError as error:
            self._fail(error)

    async def _catch_up(self) -> None:
        """Tell actors what an older store than the last one does not know, before anybody else is heard.

        Raises:
            GreenroomError: an actor cannot take it, so that what has ended would go on.
        """
        if self._lasting is None or not self._lasting.missed:
            return
        missed: dict[Address, list[Raw]] = {}
        for line in self._lasting.missed:
            missed.setdefault(Address(line.kind, line.key), []).append(line.value)
        logger.warning(
            "an older store was brought back; %d of its actors are told what has ended", len(missed)
        )
        for address, values in missed.items():
            try:
                await self.ask(address, Again(values=values))
            except UnknownKindError:
                logger.warning("there are no %r actors here, to which something has ended", address.kind)
        self._lasting.caught_up()

    def _flush_notes(self) -> None:
        self._pipeline.board()
        self._pipeline.flush()

    async def _drain(self, relay: RelayHost | None) -> None:
        if relay is not None:
            relay.leave()
        self._flush_notes()  # nobody waits for them, so they go first,
        await self._kernel.drain()
        self._flush_notes()  # and again with those that came since
        await self._kernel.drain()
        if relay is not None:
            await relay.wound_up()

    @asynccontextmanager
    async def _accompanied(
        self, companion: Callable[[Runtime], AbstractAsyncContextManager[Any]] | None
    ) -> AsyncIterator[None]:
        if companion is None:
            yield
            return
        async with companion(self) as opened:
            self._domain.companion = opened
            yield

    @asynccontextmanager
    async def _running(
        self, owner: Owner, drain_seconds: float, relay: RelayHost | None
    ) -> AsyncIterator[None]:
        """Run the parts while the block runs, then drain; an error of the block leaves in no group."""
        error: BaseException | None = None
        self._deliveries.recover()
        if relay is not None:
            relay.begin(self)
        try:
            with self._stop:
                async with trio.open_nursery() as nursery:
                    for part in (self._kernel.dispatcher, self._deliveries, self._janitor, self._bus):
                        nursery.start_soon(part.run)
                    nursery.start_soon(self._notes.run, self._pipeline)
                    nursery.start_soon(self._watch_ownership, owner)
                    if self._store.has_own_codec:
                        nursery.start_soon(self._scrub)
                    try:
                        await self._catch_up()
                        nursery.start_soon(trio.sleep_forever if relay is None else relay.run)
                        yield
                    except BaseException as raised:  # noqa: BLE001  re-raised below, outside the nursery
                        error = raised
                    if not isinstance(error, trio.Cancelled):
                        try:
                            with trio.move_on_after(drain_seconds):
                                await self._drain(relay)
                        except trio.Cancelled as cancelled:  # the block's own error, if any, goes first
                            error = error or cancelled
                    # Otherwise an outer cancellation would end the nursery with `Cancelled` for an error.
                    nursery.cancel_scope.shield = True
                    nursery.cancel_scope.cancel()
        finally:
            self._end()
        if self._failure is not None:
            raise self._failure from error
        if error is not None:
            raise error


def _last_outbox_number(store: Store) -> int:
    """Return the highest number of a tell in the store: the wall clock may have gone back."""
    last = next(store.scan(INDEXES, lmdb_keys.OUTBOX, reverse=True), None)
    return 0 if last is None else int.from_bytes(last[0][len(lmdb_keys.OUTBOX) :])


class RelayHost(Protocol):
    """What takes the connections of attached processes, from a runtime's opening until it is drained."""

    def begin(self, runtime: Runtime) -> None:
        """Take note of the runtime, which nobody has asked anything yet."""

    async def run(self) -> None:
        """Do its work, until it is cancelled."""

    def leave(self) -> None:
        """Bring nothing new: the runtime is about to drain."""

    async def wound_up(self) -> None:
        """Return when what the drained runtime answered is on its way."""
