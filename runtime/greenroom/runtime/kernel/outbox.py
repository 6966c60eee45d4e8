"""Messages that live in the store: tells after their sender's commit, timers when they are due.

Each is a row that only the commit handling it removes, so it is handed over at
least once across a crash and handled once: a row that is gone is not handled again.
The rows are the truth; this module only remembers which of them it has handed over.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import msgspec
import outcome
import trio

from greenroom.runtime.actor.actor import Actor
from greenroom.runtime.actor.effects import Effects
from greenroom.runtime.actor.message import Message
from greenroom.runtime.base.address import Address
from greenroom.runtime.base.clock import Clock
from greenroom.runtime.base.errors import (
    ActorQuarantinedError,
    InvalidAddressError,
    OverloadedError,
    RuntimeClosedError,
    UnknownKindError,
)
from greenroom.runtime.kernel.dispatcher import Dispatcher
from greenroom.runtime.kernel.group_commit import GroupCommit
from greenroom.runtime.kernel.mailbox import CommitUnit, Envelope
from greenroom.runtime.lmdb import keys
from greenroom.runtime.store.store import ACTORS, INDEXES, Store

logger = logging.getLogger(__name__)

LOOK_AGAIN_SECONDS = 30.0
"""The longest sleep between two looks at the timers, because the wall clock may jump."""

BACKLOG_SECONDS = 0.25
FULL_STORE_SECONDS = 1.0
"""How long an actor gets no stored message after the store had no room for what followed from one."""
LONGEST_FULL_STORE_SECONDS = 60.0
"""While that goes on the pause doubles up to this."""

WINDOW = 1_000
"""How many stored messages are handed over and not yet over, at most; the others wait in the store."""

SHARE = 128
"""How full a mailbox may be and still get stored messages, so that no single actor fills the window."""


class Mailboxes(Protocol):
    """The mailboxes that stored messages are delivered to: the kernel's."""

    dispatcher: Dispatcher

    def deliver(self, address: Address, envelope: Envelope) -> None:
        """Put a message into its actor's mailbox; raises as `Kernel.deliver` when it is not accepted."""

    def waiting_for(self, address: Address) -> int:
        """Return how many messages wait in an actor's mailbox."""
        ...


class Outbox:
    """The stored messages: delivers them, and moves those that cannot be handled to the dead letters."""

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
        self._handed_over: set[bytes] = set()
        self._behind: set[Address] = set()  # addresses with a tell that its mailbox did not take
        self._short_of_room: dict[Address, tuple[float, float]] = {}  # until when, and the pause
        self._tells_wait = True  # whether the store may hold tells that nobody has handed over
        self._new_tells = False  # whether one was added to them since the last look
        self._from_the_start = False  # whether an actor takes again what this look has passed
        self._timers_wait = True  # whether it may hold due timers that nobody has handed over
        self._look = trio.Event()
        self._next_due: int | None = 0
        self.fired = 0
        self.dead_letters = 0

    def dispatch(self, row: bytes, address: Address, message: Message[Any]) -> None:
        """Deliver a tell that was just committed, unless earlier ones still wait in the store."""
        if self._tells_wait or self._is_full():
            self._tells_wait = self._new_tells = True
            self._look.set()
        elif not self._deliver(address, Envelope(message, row=row), row) and address in self._behind:
            self._tells_wait = True
            self._look.set()

    def add_timer(self, due: int) -> None:
        """Add a timer that was just committed, due in microseconds since 1970."""
        if self._next_due is None or due < self._next_due:
            self._next_due = due
            self._look.set()

    def rescan(self) -> None:
        """Look at every stored message again: an actor that refused its own may take them now."""
        self._tells_wait = self._timers_wait = self._from_the_start = True
        self._look.set()

    def back_off(self, address: Address, envelopes: Sequence[Envelope]) -> None:
        """Take back what an actor was handed, for want of room, and hand it over again a little later.

        All that is stored for it, so that its order stays; what is asked is handled meanwhile.
        """
        self._handed_over.difference_update(
            envelope.outbox_key for envelope in envelopes if envelope.outbox_key is not None
        )
        now = trio.current_time()
        lately = {
            each: short
            for each, short in self._short_of_room.items()
            if now < short[0] + LONGEST_FULL_STORE_SECONDS
        }
        pause = FULL_STORE_SECONDS
        if address in lately:
            pause = min(2 * lately[address][1], LONGEST_FULL_STORE_SECONDS)
        self._short_of_room = {**lately, address: (now + pause, pause)}
        self.rescan()

    def forget(self, row: bytes) -> None:
        """Forget a message that is over."""
        self._handed_over.discard(row)
        if (self._tells_wait or self._timers_wait) and len(self._handed_over) == WINDOW // 2:
            self._look.set()

    def dead_letter(self, envelope: Envelope, error: Exception, reason: str) -> None:
        """Move a stored message that cannot be handled to the dead letters; then it is over."""
        assert envelope.outbox_key is not None
        assert envelope.activation is not None
        activation, timer = envelope.activation, envelope.timer or ""
        stored = _stored_message(activation.address, envelope.message, reason, timer)
        pending = activation.overlay.get(keys.timer_name_key(activation.prefix, timer, activation.blinder))
        work = self._bury(
            envelope.outbox_key, stored, is_set_anew=pending is not None and pending[1] != envelope.outbox_key
        )
        work.settlements.append((envelope, outcome.Error(error)))

    def recover(self) -> None:
        """Hand over the tells that an earlier process left, a window of them; called before anything else."""
        for _ in self._hand_over_tells():
            pass

    async def run(self) -> None:
        """Hand over what is stored: tells in their order, timers when they are due. For ever."""
        dispatcher = self._mailboxes.dispatcher
        while True:
            started = dispatcher.start_slice()
            for hand_over in (self._hand_over_tells, self._fire):
                for _ in hand_over():
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
        return len(self._handed_over) >= WINDOW

    def _hand_over_tells(self) -> Iterator[None]:
        """Deliver the tells in the store that nobody has handed over; yield when the slice is over."""
        self._behind.clear()
        if not self._tells_wait:
            return
        self._new_tells = self._from_the_start = False
        refusing: set[Address] = set()  # a later tell must not go before one that was refused
        for row, payload in self._store.scan(INDEXES, keys.OUTBOX):
            if self._is_full():
                return
            if row in self._handed_over or self._store.get(INDEXES, row) is None:
                continue  # the scan shows the store as it was when it began
            stored = keys.decode(payload, keys.StoredMessage)
            address = Address(stored.kind, stored.key)
            if address in refusing:
                continue
            message = self._unpack(row, stored)
            if message is not None:
                self._deliver(address, Envelope(message, row=row), row)
                if row not in self._handed_over:
                    refusing.add(address)
            if self._mailboxes.dispatcher.should_yield():
                yield
                if self._from_the_start:
                    return
        self._tells_wait = self._new_tells or bool(self._behind)

    def _fire(self) -> Iterator[None]:
        """Deliver the timers that are due, and note when the next one is; yield when the slice is over."""
        now = self._clock.now()
        self._next_due = None
        self._timers_wait = False
        for row, payload in self._store.scan(INDEXES, keys.TIMERS):
            due = keys.timer_due(row)
            if due > now or self._is_full():
                self._timers_wait = due <= now
                self._next_due = min(due, self._next_due or due)
                return
            if row in self._handed_over or self._store.get(INDEXES, row) is None:
                continue
            stored = keys.decode(payload, keys.StoredMessage)
            message = self._unpack(row, stored)
            if message is not None:
                envelope = Envelope(message, row=row, timer=stored.name)
                self.fired += self._deliver(Address(stored.kind, stored.key), envelope, row)
            if self._mailboxes.dispatcher.should_yield():
                yield

    def _deliver(self, address: Address, envelope: Envelope, row: bytes) -> bool:
        """Return whether the message is in its mailbox; if it is not, its row stays, or is a dead letter."""
        if self._mailboxes.waiting_for(address) >= SHARE or self._waits_for_room(address):
            self._behind.add(address)
            return False
        try:
            self._mailboxes.deliver(address, envelope)
        except OverloadedError:
            self._behind.add(address)
        except (ActorQuarantinedError, RuntimeClosedError):
            pass  # its time comes when the actor is let in again, or with the next start
        except (InvalidAddressError, UnknownKindError) as error:
            self._bury(row, _stored_message(address, envelope.message, str(error)))
        else:
            self._handed_over.add(row)
            return True
        return False

    def _waits_for_room(self, address: Address) -> bool:
        return address in self._short_of_room and trio.current_time() < self._short_of_room[address][0]

    def _unpack(self, row: bytes, stored: keys.StoredMessage) -> Message[Any] | None:
        """Return the stored message, or bury one that this program does not know."""
        message_type = self._messages.get((stored.kind, stored.message))
        reason = f"no {stored.kind!r} actor handles {stored.message}"
        if message_type is not None:
            try:
                message: Message[Any] = msgspec.json.decode(stored.body, type=message_type)
            except msgspec.DecodeError as error:
                reason = f"{stored.message}: {error}"
            else:
                return message
        self._bury(row, msgspec.structs.replace(stored, reason=reason))
        return None

    def _bury(self, row: bytes, stored: keys.StoredMessage, *, is_set_anew: bool = False) -> CommitUnit:
        """Stage the move to the dead letters. Until that is committed nobody may hand the row over again.

        Args:
            row: The stored message's row.
            stored: The message, with the reason.
            is_set_anew: Whether a setting of the same timer is on its way to disk.
        """
        self._handed_over.add(row)
        self.dead_letters += 1
        logger.error("dead letter: %s to %s/%s: %s", stored.message, stored.kind, stored.key, stored.reason)
        number = self._commits.next_number()
        key = keys.DEAD + keys.sortable(self._clock.now().to_bytes(8)) + number.to_bytes(8)
        effects = Effects(reserve=True)
        effects.rows.update({row: None, key: keys.encode(stored)})
        if row.startswith(keys.TIMERS) and not is_set_anew:
            prefix = keys.prefix_of(Address(stored.kind, stored.key), self._store.blinder)
            name_key = keys.timer_name_key(prefix, stored.name, self._store.blinder)
            if self._store.get(ACTORS, name_key) == row:
                effects.own[name_key] = None
        work = CommitUnit(number, None, effects)
        work.buried = row
        self._commits.add(work)
        return work


def _stored_message(
    address: Address, message: Message[Any], reason: str, name: str = ""
) -> keys.StoredMessage:
    return keys.StoredMessage(
        *address, type(message).__name__, keys.encode_json(message), name, reason=reason
    )
