"""The runtime in the process that owns the folder."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
)
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import trio
from msgspec import Raw

from greenroom.runtime.actor.actor import Actor
from greenroom.runtime.actor.journal_buffer import JournalBuffer
from greenroom.runtime.actor.message import Replay
from greenroom.runtime.actor.query import IndexReader
from greenroom.runtime.actor.services import RuntimeServices
from greenroom.runtime.api.client import Procedure, ProcedureContext, RuntimeClient
from greenroom.runtime.base import errors
from greenroom.runtime.base.address import Address
from greenroom.runtime.base.clock import BlockRandom, Clock
from greenroom.runtime.base.options import RuntimeOptions, apply_settings
from greenroom.runtime.base.statistics import (
    ActorStatistics,
    DispatcherStatistics,
    MessageStatistics,
    RuntimeStatistics,
)
from greenroom.runtime.base.supervision import Group
from greenroom.runtime.journal.chain import Journal, JournalKeys
from greenroom.runtime.journal.checkpoints import SUFFIX, CheckpointFile
from greenroom.runtime.journal.revocations import SUFFIX as REVOCATIONS_SUFFIX
from greenroom.runtime.journal.revocations import RevocationLog
from greenroom.runtime.journal.secrets import Secret
from greenroom.runtime.kernel.callbacks import CallbackQueue
from greenroom.runtime.kernel.commit_queue import GroupCommit
from greenroom.runtime.kernel.expiry import ExpirySweeper
from greenroom.runtime.kernel.kernel import Kernel
from greenroom.runtime.kernel.outbox import Outbox
from greenroom.runtime.kernel.pubsub import WINDOW_SECONDS, Bus, Subscriber
from greenroom.runtime.lmdb import keys as lmdb_keys
from greenroom.runtime.lmdb.environment import INDEXES
from greenroom.runtime.lmdb.keys import Index
from greenroom.runtime.lmdb.lock_file import FolderLock
from greenroom.runtime.maintenance import backup as maintenance_backup
from greenroom.runtime.maintenance.scrub import scrub
from greenroom.runtime.store.committer import Committer
from greenroom.runtime.store.store import Store

logger = logging.getLogger(__name__)

R = TypeVar("R")

OWNERSHIP_CHECK_SECONDS = 2.0


class Runtime(RuntimeClient):
    """A running set of actors on one folder, made by `open_runtime`.

    Attributes:
        has_gone_back: Whether its store is known to be older than before, as after restoring a backup.
        lost_secret: The mark of the secret that a new one has just replaced; else empty.
    """

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
        callbacks: CallbackQueue | None = None,
        secret: Secret | None = None,
        journals: Mapping[str, Journal] | None = None,
        settings: Any = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._failure: errors.StoreFailedError | errors.StoreDamagedError | None = None
        self._ended = False
        self._revocations: RevocationLog | None = None
        self.has_gone_back = False
        self.lost_secret = ""
        self._stop = trio.CancelScope()
        self._journal_buffer = JournalBuffer(journals or {}, clock)
        self._services = RuntimeServices(
            store,
            indexes,
            BlockRandom(),
            lambda: self.dispatcher.should_yield(),  # noqa: PLW0108  the dispatcher is made below
            self._journal_buffer,
            secret,
            settings,
        )
        self._kernel = Kernel(kinds, groups, self._services, clock, options)
        self.dispatcher = self._kernel.dispatcher
        self._services.last_number = max(clock.now(), _last_outbox_number(store))
        self._commits = GroupCommit(committer, store, self._kernel.finish_group, self._fail)
        self._outbox = Outbox(store, kinds, self._kernel, self._commits, clock)
        self._commits.journal_buffer = self._journal_buffer
        self._kernel.commits = self._commits
        self._kernel.outbox = self._outbox
        self._kernel.check_open = self.check_open
        self._bus = self._kernel.bus = Bus(self._kernel.is_busy) if bus is None else bus
        if bus is not None:
            bus.is_busy = self._kernel.is_busy
        self._services.has_subscribers = self._bus.has_subscribers
        if callbacks is not None:
            callbacks.redirect(self._kernel)
            self._kernel.callbacks = callbacks
        self._callbacks = self._kernel.callbacks
        answers_ttl = options.idempotency_seconds * 1_000_000
        self._sweeper = ExpirySweeper(
            store, indexes.values(), answers_ttl, self._commits, self._kernel.residents, clock, self._services
        )
        if secret is not None and secret.path is not None:
            self._revocations = store.open_revocation_log(
                secret.path.with_suffix(REVOCATIONS_SUFFIX), clock.now()
            )
        if journals:
            self._open_journals(journals)

    def _open_journals(self, journals: Mapping[str, Journal]) -> None:
        """Find the ends of the journals; log each journal that lost records."""
        secret = self._services.secret
        if secret is None or secret.path is None:
            raise ValueError("a runtime with journals needs a secret; name its folder")
        keys = self._services.journal_keys = {name: JournalKeys(name, secret) for name in journals}
        seen = self._services.checkpoint_file = CheckpointFile(secret.path.with_suffix(SUFFIX))
        self.has_gone_back = seen.is_restored
        self._store.open_journals(keys.values())
        for name, journal in journals.items():
            with self._store.snapshot() as snapshot:
                found = seen.compare(keys[name], snapshot, self._clock.now())
            if found is not None:
                self.has_gone_back = True
                log = logger.debug if found.restored else logger.warning  # expected after a restore
                log("records %d to %d of %r were seen and are gone", found.first, found.last, name)
                self._journal_buffer.add(name, journal.broken(found.first, found.last))

    def record_checkpoints(self) -> None:
        """Record the ends of the journals beside the secret, once everything is on disk."""
        for name in self._services.journals:
            self._sweeper.record_checkpoint(self._sweeper.checkpoint(name))

    def parts(self) -> tuple[Kernel, GroupCommit, Bus, Store]:
        """Return the parts that the relay needs."""
        return self._kernel, self._commits, self._bus, self._store

    def check_open(self) -> None:
        """Raise the reason if the runtime no longer accepts requests."""
        if self._failure is not None:
            raise self._closing_error()
        if self._ended:
            raise errors.RuntimeClosedError("the runtime is closed")

    def run_ready(self) -> None:
        """Give ready actors their turns now, as `RuntimeClient.run_ready` does."""
        self.dispatcher.run_ready()

    def hold_dispatch(self) -> AbstractContextManager[None]:
        """Return a context manager: in its block, posted messages do not wake the dispatcher's task.

        Ended with `run_ready`, the block gives the writer's thread the event loop a pass earlier. It must not
        contain an ``await``.
        """
        return self.dispatcher

    async def query(self, query: Procedure[R], *, principal: Any = None) -> R:
        """Run a procedure; return its reply once everything that it read is on disk."""
        self.check_open()
        await trio.lowlevel.checkpoint()
        if query.flushes_journals:
            self._flush_journals()
            await self._commits.wait_flushed()
        try:
            with self.apply_settings():
                if query.runs == "snapshot":
                    return await self._read(query, principal)
                if query.runs == "here":
                    raise TypeError(f"{type(query).__name__} runs in the calling process, and in no runtime")
                run: Any = query.run
                answer: R = await run(ProcedureContext(self, self._services, principal, self._clock.now()))
                return answer
        except errors.Refusal as refusal:
            if refusal.is_denial:
                self._services.record_denial(principal, None, query, refusal)
            raise

    async def _read(self, query: Procedure[R], principal: Any) -> R:
        with self._store.snapshot() as snapshot:
            reader = IndexReader(self._services, snapshot, principal, self._clock.now())
            started = self.dispatcher.start_slice()
            answer: Any = query.run(reader)
            if isinstance(answer, Generator):
                while True:
                    try:
                        self.dispatcher.resume(answer)
                    except StopIteration as done:
                        answer = done.value
                        break
                    self.dispatcher.end_slice(started)
                    await trio.lowlevel.checkpoint()
                    started = self.dispatcher.start_slice()
            self.dispatcher.end_slice(started)
        await self._commits.wait_committed()
        if self._ended:
            raise self._closing_error()
        reply: R = answer
        return reply

    def subscriber(self, window: float = WINDOW_SECONDS) -> Subscriber:
        """Return a subscriber without topics, as `RuntimeClient.subscriber` does."""
        self.check_open()
        return self._bus.subscriber(window)

    def append_soon(self, journal: str, value: Any) -> None:
        """Append a row to a journal with a later commit, as `Context.append_soon` does."""
        self._services.append_soon(journal, value)

    def apply_settings(self) -> AbstractContextManager[None]:
        """Return a context manager: in its block, `current_settings` returns this store's settings."""
        return apply_settings(self._services.settings)

    def derive(self, purpose: str) -> bytes:
        """Return the store's key for a purpose, as `RuntimeClient.derive` does."""
        return self._services.derive(purpose)

    def readmit(self, address: Address) -> bool:
        """Readmit an actor from quarantine; return whether it was in quarantine."""
        return self._kernel.readmit(address)

    async def backup(self, destination: Path) -> maintenance_backup.BackupInfo:
        """Write a copy of the store to a new file, as `RuntimeClient.backup` does."""
        return await trio.to_thread.run_sync(
            partial(
                maintenance_backup.backup, self._store, destination, poll=trio.from_thread.check_cancelled
            )
        )

    async def verify(self) -> maintenance_backup.VerifyReport:
        """Check the structure and every record, as `RuntimeClient.verify` does."""
        return await trio.to_thread.run_sync(
            partial(maintenance_backup.verify, self._store, poll=trio.from_thread.check_cancelled)
        )

    def statistics(self) -> RuntimeStatistics:
        """Return the statistics of all parts."""
        kernel = self._kernel
        counts, residents = kernel.counts, kernel.residents
        mailboxes = kernel.dispatcher.mailboxes()
        return RuntimeStatistics(
            actors=ActorStatistics(
                resident=len(residents),
                resident_bytes=residents.bytes,
                activations=residents.activations,
                passivations=residents.passivations,
                evictions=residents.evictions,
                restarts=counts["restarts"],
                set_aside=[str(address) for address in kernel.restart_history.quarantined],
            ),
            messages=MessageStatistics(
                waiting=kernel.waiting,
                queued=sum(mailboxes),
                deepest=max(mailboxes, default=0),
                handled=counts["handled"],
                refused=counts["refused"],
                failed=counts["failed"],
                repeated=counts["repeated"],
                expired=counts["expired"],
                abandoned=counts["abandoned"],
                overloaded=counts["overloaded"],
                not_committed=counts["not_committed"],
                dispensed_with=counts["dispensed_with"],
                timers_fired=self._outbox.fired,
                dead_letters=self._outbox.dead_letters,
            ),
            dispatcher=DispatcherStatistics(
                ready=len(kernel.dispatcher), longest_slice_ms=round(kernel.dispatcher.longest_slice * 1e3, 3)
            ),
            commits=self._commits.statistics(),
            bus=self._bus.statistics(),
            store=self._store.statistics(),
            rows_expired=self._sweeper.removed,
        )

    @property
    def is_sound(self) -> bool:
        """Whether no damage was found, and no commit failed except for lack of space."""
        return self._failure is None

    @property
    def has_found_damage(self) -> bool:
        """Whether the runtime ended because of damage."""
        return isinstance(self._failure, errors.StoreDamagedError)

    def _closing_error(self) -> errors.GreenroomError:
        """Return the error for requests that still wait when the runtime ends."""
        if self._failure is not None:
            lost = isinstance(self._failure, errors.OwnershipLostError)
            return (errors.OwnershipLostError if lost else errors.StoreFailedError)(str(self._failure))
        return errors.RuntimeClosedError(
            "the runtime closed before the reply; check whether the request took effect"
        )

    def _fail(self, failure: errors.StoreFailedError | errors.StoreDamagedError) -> None:
        """End everything: the state of the disk is unknown, so nothing more may be answered."""
        self._failure = self._store.writer.damage or failure
        self._stop.cancel()
        self._end()  # at once, because ready actors would run before the cancellation

    def _end(self) -> None:
        """Stop giving turns to actors, and fail all waiting requests."""
        self._ended = True
        self._kernel.abort(self._closing_error)
        self._commits.release_waiters()
        self._bus.close()

    async def _watch_ownership(self, owner: FolderLock) -> None:
        try:
            while True:
                self._store.writer.check_place()
                owner.check_held()
                await trio.sleep(OWNERSHIP_CHECK_SECONDS)
        except errors.StoreFailedError as failure:
            self._fail(failure)

    async def _scrub(self) -> None:
        try:
            await scrub(self._store)
        except errors.StoreDamagedError as error:
            self._fail(error)

    async def _replay_revocations(self) -> None:
        """Replay revocations that a restored store lacks, before any other request."""
        if self._revocations is None or not self._revocations.missed:
            return
        missed: dict[Address, list[Raw]] = {}
        for line in self._revocations.missed:
            missed.setdefault(Address(line.kind, line.key), []).append(line.value)
        logger.warning(
            "an older store was restored; revocations are replayed to %d of its actors", len(missed)
        )
        for address, values in missed.items():
            try:
                await self.ask(address, Replay(values=values))
            except errors.UnknownKindError:
                logger.warning("there are no %r actors here to replay revocations to", address.kind)
        self._revocations.mark_caught_up()

    def _flush_journals(self) -> None:
        self._commits.attach_deferred()
        self._commits.flush()

    async def _drain(self, relay: RelayService | None) -> None:
        if relay is not None:
            relay.leave()
        self._flush_journals()  # no reply waits for these rows, so they go first,
        await self._kernel.drain()
        self._flush_journals()  # and again with the rows buffered since
        await self._kernel.drain()
        if relay is not None:
            await relay.aclose()

    @asynccontextmanager
    async def _run_sidecar(
        self, sidecar: Callable[[Runtime], AbstractAsyncContextManager[Any]] | None
    ) -> AsyncIterator[None]:
        if sidecar is None:
            yield
            return
        async with AsyncExitStack() as stack:
            with self.apply_settings():  # tasks that it starts inherit them
                self._services.sidecar = await stack.enter_async_context(sidecar(self))
            yield

    @asynccontextmanager
    async def _run_parts(
        self, owner: FolderLock, drain_seconds: float, relay: RelayService | None
    ) -> AsyncIterator[None]:
        """Run the parts while the block runs, then drain; errors are not grouped."""
        error: BaseException | None = None
        self._outbox.recover()
        if relay is not None:
            relay.begin(self)
        try:
            with self._stop:
                async with trio.open_nursery() as nursery:
                    for part in (self.dispatcher, self._outbox, self._sweeper, self._bus):
                        nursery.start_soon(part.run)
                    nursery.start_soon(self._journal_buffer.run, self._flush_journals)
                    nursery.start_soon(self._watch_ownership, owner)
                    if self._store.has_own_codec:
                        nursery.start_soon(self._scrub)
                    try:
                        await self._replay_revocations()
                        nursery.start_soon(trio.sleep_forever if relay is None else relay.run)
                        yield
                    except BaseException as raised:  # noqa: BLE001  re-raised below, outside the nursery
                        error = raised
                    error = await self._drain_after(error, drain_seconds, relay)
                    # Otherwise an outer cancellation would end the nursery with `Cancelled` for an error.
                    nursery.cancel_scope.shield = True
                    nursery.cancel_scope.cancel()
        finally:
            self._end()
        if self._failure is not None:
            raise self._failure from error
        if error is not None:
            raise error

    async def _drain_after(
        self, error: BaseException | None, seconds: float, relay: RelayService | None
    ) -> BaseException | None:
        """Drain unless the block was cancelled; return the error to raise."""
        if not isinstance(error, trio.Cancelled):
            try:
                with trio.move_on_after(seconds):
                    await self._drain(relay)
            except trio.Cancelled as cancelled:
                return error or cancelled
        return error


def _last_outbox_number(store: Store) -> int:
    """Return the highest number of a stored tell: the wall clock may have gone back."""
    found: list[bytes] = []
    last = next(
        store.scan(INDEXES, lmdb_keys.OUTBOX, reverse=True, on_damage=lambda error: found.append(error.key)),
        None,
    )
    found += [] if last is None else [last[0]]
    mine = (key for key in found if key.startswith(lmdb_keys.OUTBOX))  # a damaged row may lie beside them
    return max((int.from_bytes(key[len(lmdb_keys.OUTBOX) :]) for key in mine), default=0)


class RelayService(Protocol):
    """The server of attached processes, from a runtime's opening until it is drained."""

    def begin(self, runtime: Runtime) -> None:
        """Start with the runtime, before its first request."""

    async def run(self) -> None:
        """Serve until cancelled."""

    def leave(self) -> None:
        """Accept nothing new: the runtime is about to drain."""

    async def aclose(self) -> None:
        """Send the last replies, and close."""
