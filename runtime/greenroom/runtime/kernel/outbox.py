"""Messages that live in the store: tells after their sender's commit, timers when they are due.

Each is a row that only the commit handling it removes, so it is handed over at
least once across a crash and handled once: a row that is gone is not handled again.
The rows are the truth; this module only remembers which of them it has handed over.
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


class Progress(Enum):
    """How far the stored messages of one kind are handed over."""

    DONE = "all of them are"
    DUE = "some may not be"
    LOOKING = "a look at them is under way"
    OVERTAKEN = "a look is under way, and more were stored since it began"
    VOID = "a look is under way that has to begin again"


_ADDED: Final = {Progress.DONE: Progress.DUE, Progress.LOOKING: Progress.OVERTAKEN}
_RESCAN: Final = {
    Progress.DONE: Progress.DUE,
    Progress.LOOKING: Progress.VOID,
    Progress.OVERTAKEN: Progress.VOID,
}


class Scanner:
    """Whether the store may hold tells, or due timers, that nobody has handed over."""

    def __init__(self) -> None:
        self.progress = Progress.DUE  # what an earlier process left

    def add(self) -> None:
        """Leave one in the store that was just committed."""
        self.progress = _ADDED.get(self.progress, self.progress)

    def rescan(self) -> None:
        """Look at all of them again."""
        self.progress = _RESCAN.get(self.progress, self.progress)

    def begin(self) -> None:
        """Begin a look, which sees what is stored now."""
        self.progress = Progress.LOOKING

    def end(self, *, is_complete: bool) -> None:
        """End the look; it is not complete where it left one of those that it saw."""
        is_done = is_complete and self.progress is Progress.LOOKING
        self.progress = Progress.DONE if is_done else Progress.DUE


class Mailboxes(Protocol):
    """The mailboxes that stored messages are delivered to: the kernel's."""

    dispatcher: Dispatcher

    def deliver(self, address: Address, envelope: Envelope) -> None:
        """Put a message into its actor's mailbox; raises as `Kernel.deliver` when it is not accepted."""

    def waiting_for(self, address: Address) -> int:
        """Return how many messages wait in an actor's mailbox."""
        ...

    def uncommitted(self, address: Address, key: bytes) -> tuple[int, bytes | None] | None:
        """Return what is on its way to disk of an actor's record at a full key, as its overlay has it."""


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
            self._deliver(address, Envelope(message, row=row), row) or address not in self._behind
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
        """Look at every stored message again: an actor that refused its own may take them now."""
        self._tells.rescan()
        self._timers.rescan()
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
        if len(self._handed_over) == WINDOW // 2 and (
            self._tells.progress is not Progress.DONE or self._timers.progress is not Progress.DONE
        ):
            self._look.set()

    def dead_letter(self, envelope: Envelope, error: Exception, reason: str) -> None:
        """Move a stored message that cannot be handled to the dead letters; then it is over."""
        assert envelope.outbox_key is not None
        assert envelope.activation is not None
        stored = _stored_message(envelope.activation.address, envelope.message, reason, envelope.timer or "")
        work = self._bury(envelope.outbox_key, stored)
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
        if self._tells.progress is Progress.DONE:
            return
        self._tells.begin()
        refusing: set[Address] = set()  # a later tell must not go before one that was refused
        for row, payload in self._store.scan(INDEXES, keys.OUTBOX):
            if self._is_full() or self._tells.progress is Progress.VOID:
                self._tells.end(is_complete=False)
                return
            stored = self._unhandled(row, payload)
            if stored is None or (address := Address(stored.kind, stored.key)) in refusing:
                continue
            if not self._hand_over(row, stored) and row not in self._handed_over:
                refusing.add(address)
            if self._mailboxes.dispatcher.should_yield():
                yield
        self._tells.end(is_complete=not self._behind)

    def _fire(self) -> Iterator[None]:
        """Deliver the timers that are due, and note when the next one is; yield when the slice is over."""
        now = self._clock.now()
        self._next_due = None
        self._timers.begin()
        for row, payload in self._store.scan(INDEXES, keys.TIMERS):
            due = keys.timer_due(row)
            if due > now or self._is_full():
                self._timers.end(is_complete=due > now)
                self._next_due = due  # what was added meanwhile has set `_look`: another round follows
                return
            stored = self._unhandled(row, payload)
            if stored is None:
                continue
            self.fired += self._hand_over(row, stored)
            if self._mailboxes.dispatcher.should_yield():
                yield
        self._timers.end(is_complete=True)

    def _unhandled(self, row: bytes, payload: bytes) -> keys.StoredMessage | None:
        """Return what a scan found at a row, unless it was handed over or is gone since the scan began."""
        if row in self._handed_over or self._store.get(INDEXES, row) is None:
            return None
        return keys.decode(payload, keys.StoredMessage)

    def _hand_over(self, row: bytes, stored: keys.StoredMessage) -> bool:
        """Return whether a stored message is in its mailbox; one that nobody can read is buried."""
        message = self._unpack(row, stored)
        if message is None:
            return False
        timer = stored.name if row.startswith(keys.TIMERS) else None
        return self._deliver(Address(stored.kind, stored.key), Envelope(message, row=row, timer=timer), row)

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

    def _bury(self, row: bytes, stored: keys.StoredMessage) -> CommitUnit:
        """Stage the move of a row to the dead letters, with the reason in ``stored``.

        Until that is committed nobody may hand the row over again.
        """
        self._handed_over.add(row)
        self.dead_letters += 1
        kind_of_reason = stored.reason.partition(":")[0]  # the rest may quote what was in the message
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
            pending = self._mailboxes.uncommitted(address, name_key)
            is_set_anew = pending is not None and pending[1] != row
            if not is_set_anew and self._store.get(ACTORS, name_key) == row:
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
