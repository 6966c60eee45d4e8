"""The outbox: stored tells, delivered after their commit, and timers, when due.

Each tell or timer is a row that only the commit of its handler removes. So it is delivered at least once
across a crash, but handled once: without its row it is not handled again. This module remembers only the rows
that it delivered.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Final, Protocol

import msgspec
import outcome
import trio

from greenroom.runtime.actor.actor import Actor
from greenroom.runtime.actor.effects import Effects
from greenroom.runtime.actor.message import Message
from greenroom.runtime.base import errors
from greenroom.runtime.base.address import Address
from greenroom.runtime.base.clock import Clock
from greenroom.runtime.kernel.commit_queue import GroupCommit
from greenroom.runtime.kernel.dispatcher import Dispatcher
from greenroom.runtime.kernel.mailbox import CommitUnit, Envelope
from greenroom.runtime.lmdb import keys
from greenroom.runtime.lmdb.environment import ACTORS, INDEXES
from greenroom.runtime.store.store import Store

logger = logging.getLogger(__name__)

LOOK_AGAIN_SECONDS = 30.0
"""The longest sleep between two scans of the timers, because the wall clock may jump."""

BACKLOG_SECONDS = 0.25
FULL_STORE_SECONDS = 1.0
"""After the store had no room for their effects, an actor's stored messages wait this long."""
LONGEST_FULL_STORE_SECONDS = 60.0
"""The limit of the pause, which doubles while the store is full."""

WINDOW = 1_000
"""At most this many stored messages are delivered and pending; the others wait in the store."""

SHARE = 128
"""A mailbox with more messages than this gets no stored messages.

So no single actor fills the window."""


class Progress(Enum):
    """The progress of the delivery of stored messages of one kind."""

    DONE = "all are delivered"
    DUE = "some may not be delivered"
    SCANNING = "a scan is running"
    OVERTAKEN = "a scan is running, and more were stored since it began"
    VOID = "a scan is running that must begin again"


_ADDED: Final = {Progress.DONE: Progress.DUE, Progress.SCANNING: Progress.OVERTAKEN}
_RESCAN: Final = {
    Progress.DONE: Progress.DUE,
    Progress.SCANNING: Progress.VOID,
    Progress.OVERTAKEN: Progress.VOID,
}


class Scanner:
    """Track whether the store may hold undelivered tells or due timers."""

    def __init__(self) -> None:
        self.progress = Progress.DUE  # an earlier process may have left undelivered ones

    def add(self) -> None:
        """Record that a committed message stays in the store."""
        self.progress = _ADDED.get(self.progress, self.progress)

    def rescan(self) -> None:
        """Scan all of them again."""
        self.progress = _RESCAN.get(self.progress, self.progress)

    def begin(self) -> None:
        """Begin a scan of what is stored now."""
        self.progress = Progress.SCANNING

    def end(self, *, is_complete: bool) -> None:
        """End the scan; it is not complete if it skipped a message."""
        is_done = is_complete and self.progress is Progress.SCANNING
        self.progress = Progress.DONE if is_done else Progress.DUE


class Mailboxes(Protocol):
    """The kernel's mailboxes, which receive the stored messages."""

    dispatcher: Dispatcher

    def deliver(self, address: Address, envelope: Envelope) -> None:
        """Put a message into its actor's mailbox, or raise as `Kernel.deliver` does."""

    def waiting_for(self, address: Address) -> int:
        """Return how many messages wait in an actor's mailbox."""
        ...

    def find_uncommitted(self, address: Address, key: bytes) -> tuple[int, bytes | None] | None:
        """Return an actor's uncommitted record at a full key, from its overlay."""


class Outbox:
    """Deliver stored messages; move those that cannot be handled to the dead letters."""

    def __init__(
        self,
        store: Store,
        kinds: Mapping[str, type[Actor]],
        mailboxes: Mailboxes,
        commits: GroupCommit,
        clock: Clock,
    ) -> None:
        self._store = store
        self._messages = {
            (kind, message.__name__): message for kind, actor in kinds.items() for message in actor.handlers
        }
        self._mailboxes = mailboxes
        self._commits = commits
        self._clock = clock
        self._delivered: set[bytes] = set()
        self._damaged: set[bytes] = set()
        self._behind: set[Address] = set()  # addresses with a tell that the mailbox refused
        self._backed_off: dict[Address, tuple[float, float]] = {}  # until when, and the pause
        self._tells = Scanner()
        self._timers = Scanner()
        self._look = trio.Event()
        self._next_due: int | None = 0
        self.fired = 0
        self.dead_letters = 0

    def dispatch(self, row: bytes, address: Address, message: Message[Any]) -> None:
        """Deliver a tell that was just committed, unless earlier ones still wait in the store."""
        is_next = self._tells.progress is Progress.DONE and not self._is_full()
        if is_next and (
            self._deliver(address, Envelope(message, outbox_key=row, one_way=True), row)
            or address not in self._behind
        ):
            return
        self._tells.add()
        self._look.set()

    def add_timer(self, due: int) -> None:
        """Add a timer that was just committed, due in microseconds since 1970."""
        if self._next_due is None or due < self._next_due:
            self._next_due = due
            self._look.set()

    def rescan(self) -> None:
        """Scan every stored message again: an actor may accept now what it refused."""
        self._tells.rescan()
        self._timers.rescan()
        self._look.set()

    def back_off(self, address: Address, envelopes: Sequence[Envelope]) -> None:
        """Take back an actor's stored messages when the store is full, and retry later.

        It takes back all of them, so that they stay in order. Other requests are handled in the meantime.
        """
        self._delivered.difference_update(
            envelope.outbox_key for envelope in envelopes if envelope.outbox_key is not None
        )
        now = trio.current_time()
        lately = {
            each: short
            for each, short in self._backed_off.items()
            if now < short[0] + LONGEST_FULL_STORE_SECONDS
        }
        pause = FULL_STORE_SECONDS
        if address in lately:
            pause = min(2 * lately[address][1], LONGEST_FULL_STORE_SECONDS)
        self._backed_off = {**lately, address: (now + pause, pause)}
        self.rescan()

    def forget(self, row: bytes) -> None:
        """Drop a message that has ended."""
        self._delivered.discard(row)
        if len(self._delivered) == WINDOW // 2 and (
            self._tells.progress is not Progress.DONE or self._timers.progress is not Progress.DONE
        ):
            self._look.set()

    def dead_letter(self, envelope: Envelope, error: Exception, reason: str) -> None:
        """Move a stored message that cannot be handled to the dead letters."""
        assert envelope.outbox_key is not None
        assert envelope.activation is not None
        stored = _stored_message(envelope.activation.address, envelope.message, reason, envelope.timer or "")
        unit = self._dead_letter(envelope.outbox_key, stored)
        unit.replies.append((envelope, outcome.Error(error)))

    def recover(self) -> None:
        """Deliver a first window of the tells that an earlier process left; call this first."""
        for _ in self._deliver_tells():
            pass

    async def run(self) -> None:
        """Deliver tells in their order, and timers when they are due, forever."""
        dispatcher = self._mailboxes.dispatcher
        while True:
            started = dispatcher.start_slice()
            for deliver in (self._deliver_tells, self._fire):
                for _ in deliver():
                    if dispatcher.should_yield():
                        dispatcher.end_slice(started)
                        await trio.lowlevel.checkpoint()
                        started = dispatcher.start_slice()
            dispatcher.end_slice(started)
            self._commits.flush()
            with trio.move_on_after(self._patience()):
                await self._look.wait()
            self._look = trio.Event()

    def _patience(self) -> float:
        if self._behind:
            return BACKLOG_SECONDS
        if self._next_due is None or self._is_full():
            return LOOK_AGAIN_SECONDS
        return min(max(0.0, (self._next_due - self._clock.now()) / 1e6), LOOK_AGAIN_SECONDS)

    def _is_full(self) -> bool:
        return len(self._delivered) >= WINDOW

    def _deliver_tells(self) -> Iterator[None]:
        """Deliver the undelivered tells in the store; yield after each."""
        self._behind.clear()
        if self._tells.progress is Progress.DONE:
            return
        self._tells.begin()
        refusing: set[Address] = set()  # a later tell must not overtake a refused one
        for row, payload in self._store.scan(INDEXES, keys.OUTBOX, on_damage=self._report_damage):
            if self._is_full() or self._tells.progress is Progress.VOID:
                self._tells.end(is_complete=False)
                return
            stored = self._find_pending(row, payload)
            if stored is None or (address := Address(stored.kind, stored.key)) in refusing:
                continue
            if not self._deliver_stored(row, stored) and row not in self._delivered:
                refusing.add(address)
            yield
        self._tells.end(is_complete=not self._behind)

    def _fire(self) -> Iterator[None]:
        """Deliver due timers, and record when the next one is due; yield after each."""
        now = self._clock.now()
        self._next_due = None
        self._timers.begin()
        for row, payload in self._store.scan(INDEXES, keys.TIMERS, on_damage=self._report_damage):
            due = keys.timer_due(row)
            if due > now or self._is_full():
                self._timers.end(is_complete=due > now)
                self._next_due = due  # a timer added during the scan has set `_look`: another round follows
                return
            stored = self._find_pending(row, payload)
            if stored is None:
                continue
            self.fired += self._deliver_stored(row, stored)
            yield
        self._timers.end(is_complete=True)

    def _report_damage(self, error: errors.RecordDamagedError) -> None:
        """Leave a damaged message in the store; log it once."""
        if error.key not in self._damaged:
            self._damaged.add(error.key)
            logger.error("a stored message is damaged and is not delivered: %s", error)

    def _find_pending(self, row: bytes, payload: bytes) -> keys.StoredMessage | None:
        """Return the message at a scanned row, unless it was delivered or removed since."""
        if row in self._delivered or self._store.get(INDEXES, row) is None:
            return None
        return keys.decode(payload, keys.StoredMessage)

    def _deliver_stored(self, row: bytes, stored: keys.StoredMessage) -> bool:
        """Deliver a stored message, or dead-letter an unreadable one; return whether delivered."""
        message = self._unpack(row, stored)
        if message is None:
            return False
        timer = stored.name if row.startswith(keys.TIMERS) else None
        return self._deliver(
            Address(stored.kind, stored.key),
            Envelope(message, outbox_key=row, timer=timer, one_way=True),
            row,
        )

    def _deliver(self, address: Address, envelope: Envelope, row: bytes) -> bool:
        """Deliver a message; return whether it is in its mailbox.

        If it is not, its row stays, or becomes a dead letter.
        """
        is_backed_off = address in self._backed_off and trio.current_time() < self._backed_off[address][0]
        if is_backed_off or self._mailboxes.waiting_for(address) >= SHARE:
            self._behind.add(address)
            return False
        try:
            self._mailboxes.deliver(address, envelope)
        except errors.OverloadedError:
            self._behind.add(address)
        except (errors.ActorQuarantinedError, errors.RuntimeClosedError, errors.StoreFailedError):
            pass  # retried when the actor is readmitted, or at the next start
        except (errors.InvalidAddressError, errors.UnknownKindError) as error:
            self._dead_letter(row, _stored_message(address, envelope.message, str(error)))
        else:
            self._delivered.add(row)
            return True
        return False

    def _unpack(self, row: bytes, stored: keys.StoredMessage) -> Message[Any] | None:
        """Return the stored message, or dead-letter one that this program does not know."""
        message_type = self._messages.get((stored.kind, stored.message))
        reason = f"no {stored.kind!r} actor handles {stored.message}"
        if message_type is not None:
            try:
                message: Message[Any] = msgspec.json.decode(stored.body, type=message_type)
            except msgspec.DecodeError as error:
                reason = f"{stored.message}: {error}"
            else:
                return message
        self._dead_letter(row, msgspec.structs.replace(stored, reason=reason))
        return None

    def _dead_letter(self, row: bytes, stored: keys.StoredMessage) -> CommitUnit:
        """Stage the move of a row to the dead letters, with the reason in ``stored``.

        Until that move is committed, the row must not be delivered again.
        """
        self._delivered.add(row)
        self.dead_letters += 1
        kind_of_reason = stored.reason.partition(":")[0]  # the rest may quote the message's content
        logger.error("dead letter: %s to %s/%s: %s", stored.message, stored.kind, stored.key, kind_of_reason)
        number = self._commits.next_number()
        key = keys.DEAD + keys.sortable(self._clock.now().to_bytes(8)) + number.to_bytes(8)
        effects = Effects(reserve=True)
        effects.rows.update({row: None, key: keys.encode(stored)})
        if row.startswith(keys.TIMERS):
            address = Address(stored.kind, stored.key)
            name_key = keys.timer_name_key(
                keys.prefix_of(address, self._store.blinder), stored.name, self._store.blinder
            )
            pending = self._mailboxes.find_uncommitted(address, name_key)
            is_set_anew = pending is not None and pending[1] != row
            try:
                is_this = self._store.get(ACTORS, name_key) == row
            except errors.RecordDamagedError:
                is_this = True
            if not is_set_anew and is_this:
                effects.own[name_key] = None
        unit = CommitUnit(number, None, effects)
        unit.dead_lettered = row
        self._commits.add(unit)
        return unit


def _stored_message(
    address: Address, message: Message[Any], reason: str, name: str = ""
) -> keys.StoredMessage:
    return keys.StoredMessage(
        *address, type(message).__name__, keys.encode_json(message), name, reason=reason
    )
