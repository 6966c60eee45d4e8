"""The expiry sweep: remove expired rows and replies, and passivate idle actors."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import islice

import trio

from greenroom.runtime.actor.effects import Effects
from greenroom.runtime.actor.services import RuntimeServices
from greenroom.runtime.base.clock import Clock
from greenroom.runtime.base.errors import RecordDamagedError, StoreDamagedError
from greenroom.runtime.journal.chain import Checkpoint, Journal, head_of
from greenroom.runtime.journal.verify import find_expired
from greenroom.runtime.kernel.activation import ActivationCache
from greenroom.runtime.kernel.commit_queue import GroupCommit
from greenroom.runtime.kernel.idempotency import expired_answer
from greenroom.runtime.kernel.mailbox import CommitUnit
from greenroom.runtime.lmdb import keys as lmdb_keys
from greenroom.runtime.lmdb.environment import INDEXES
from greenroom.runtime.lmdb.keys import Index
from greenroom.runtime.store.store import Store

logger = logging.getLogger(__name__)

ROUND_SECONDS = 60.0
BATCH = 500
DEAD_LETTER_TTL = 7 * 86_400 * 1_000_000


class ExpirySweeper:
    """Sweep once a minute, in small batches."""

    def __init__(
        self,
        store: Store,
        indexes: Iterable[Index],
        answers_ttl: int,
        commits: GroupCommit,
        residents: ActivationCache,
        clock: Clock,
        services: RuntimeServices,
    ) -> None:
        self._store = store
        self._times = {
            lmdb_keys.index_prefix(index.name): index.ttl for index in indexes if index.ttl is not None
        }
        self._times[lmdb_keys.index_prefix(lmdb_keys.ANSWER_TIMES)] = answers_ttl
        self._times[lmdb_keys.DEAD] = DEAD_LETTER_TTL
        self._answers_ttl = answers_ttl
        self._commits = commits
        self._residents = residents
        self._clock = clock
        self._services = services
        self.removed = 0

    async def run(self) -> None:
        """Remove expired rows and passivate idle actors, forever."""
        while True:
            for prefix, ttl in self._times.items():
                while self._sweep(prefix, self._clock.now() - ttl) == BATCH:
                    await self._commits.wait_flushed()
            while self._sweep_relayed(self._clock.now() - self._answers_ttl) == BATCH:
                await self._commits.wait_flushed()
            for journal in self._services.journals.values():
                while self._sweep_journal(journal) == BATCH:
                    await self._commits.wait_flushed()
                checkpoint = self.checkpoint(journal.name)
                await self._commits.wait_committed()  # a reader may see rows that are not on disk yet
                self.record_checkpoint(checkpoint)
            await trio.sleep(min(ROUND_SECONDS, self._residents.passivate_idle()))

    def _sweep(self, prefix: bytes, oldest: int) -> int:
        """Remove a batch of rows before ``oldest`` (microseconds since 1970); return how many."""
        if oldest <= 0:
            return 0
        end = prefix + lmdb_keys.sortable(oldest.to_bytes(8))
        expired = [key for key in islice(self._store.keys(INDEXES, prefix), BATCH) if key < end]
        answers = prefix == lmdb_keys.index_prefix(lmdb_keys.ANSWER_TIMES)
        self._remove([*expired, *map(expired_answer, expired)] if answers else expired)
        self.removed += len(expired)
        return len(expired)

    def _sweep_relayed(self, oldest: int) -> int:
        """Remove a batch of relayed replies before ``oldest``; return how many.

        A living relay has confirmed its replies long ago, so these rows belong to processes that died.
        """
        expired: list[bytes] = []
        with self._store.snapshot() as snapshot:
            start = lmdb_keys.RELAYED
            while len(expired) < BATCH:
                first = next(snapshot.keys(INDEXES, lmdb_keys.RELAYED, start=start), None)
                if first is None:
                    break
                relay = first[: -lmdb_keys.NUMBER_BYTES]
                damaged: list[RecordDamagedError] = []
                rows = snapshot.scan(INDEXES, relay, on_damage=damaged.append)
                for row, payload in rows:  # ordered by time
                    if (
                        len(expired) == BATCH
                        or lmdb_keys.decode(payload, lmdb_keys.RelayedAnswer).time >= oldest
                    ):
                        break
                    expired.append(row)
                expired += [each.key for each in damaged if each.key.startswith(relay)]
                start = relay + b"\xff" * (lmdb_keys.NUMBER_BYTES + 1)
        self._remove(expired)
        self.removed += len(expired)
        return len(expired)

    def _sweep_journal(self, journal: Journal) -> int:
        """Remove a batch of expired rows of a journal; return how many."""
        oldest = None if journal.ttl is None else self._clock.now() - journal.ttl
        try:
            with self._store.snapshot() as snapshot:
                found = find_expired(
                    self._services.journal_keys[journal.name],
                    snapshot,
                    oldest=oldest,
                    max_bytes=journal.max_bytes,
                    most=BATCH,
                )
        except StoreDamagedError as error:
            logger.error("nothing is removed from the journal %r: %s", journal.name, error)  # noqa: TRY400
            return 0
        if found is None:
            return 0
        for first, last in found.doubtful:
            self._services.append_soon(journal.name, journal.broken(first, last))
        unit = CommitUnit(self._commits.next_number(), None, Effects(reserve=True))
        unit.changes = ({}, dict.fromkeys(found.rows), dict([found.start]))
        self._commits.add(unit)
        self._commits.flush()
        self.removed += len(found.rows)
        return len(found.rows)

    def checkpoint(self, journal: str) -> Checkpoint | None:
        """Return a checkpoint of a journal, if its end is signed."""
        keys = self._services.journal_keys[journal]
        with self._store.snapshot() as snapshot:
            head = head_of(keys, snapshot)
        return None if head is None else keys.checkpoint(head)

    def record_checkpoint(self, checkpoint: Checkpoint | None) -> None:
        """Record a checkpoint that is on disk beside the secret."""
        if checkpoint is not None and self._services.checkpoint_file is not None:
            self._services.checkpoint_file.record(checkpoint)

    def _remove(self, rows: list[bytes]) -> None:
        if rows:
            effects = Effects(reserve=True)
            effects.rows.update(dict.fromkeys(rows))
            self._commits.add(CommitUnit(self._commits.next_number(), None, effects))
            self._commits.flush()
