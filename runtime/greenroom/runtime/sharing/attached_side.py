"""The attached side: relay messages to the owner, and again to the next owner.

Invariants:

- A message is unanswered from its acceptance until its reply, its error, or its cancellation by the caller.
- Numbers only grow; unanswered messages are sent in the order of their numbers.
- Callers wait on the same type of envelopes as at the owner; a takeover hands these to the kernel here.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
import outcome
import trio

from greenroom.runtime.api.client import Procedure
from greenroom.runtime.base import errors
from greenroom.runtime.base.address import Address
from greenroom.runtime.base.statistics import RelayStatistics, RuntimeStatistics
from greenroom.runtime.base.system import program_version
from greenroom.runtime.kernel.callbacks import CallbackQueue
from greenroom.runtime.kernel.kernel import Kernel
from greenroom.runtime.kernel.mailbox import Envelope
from greenroom.runtime.kernel.pubsub import ANYBODY, Bus
from greenroom.runtime.lmdb import keys
from greenroom.runtime.sharing import frames
from greenroom.runtime.sharing.framed_connection import FramedConnection
from greenroom.runtime.sharing.frames import error_of
from greenroom.runtime.sharing.pending import AGAIN, Pending, PendingMessage, PendingQuery
from greenroom.runtime.sharing.type_registry import TypeRegistry

UNANSWERED_LIMIT: Final = 4_096
UNANSWERED_BYTES: Final = 64 << 20
SILENT_BEATS: Final = 5
"""After this many seconds without a sign of life from the owner, no message is accepted."""
CONFIRM_AT: Final = 512
"""This many replies are confirmed at once, if no message is sent earlier."""
RETRY_AFTER_MS: Final = 1_000
RELAY_BYTES: Final = 16


class AttachedSide:
    """The replacement of the kernel while another process owns the folder."""

    def __init__(self, types: TypeRegistry, bus: Bus) -> None:
        self.callbacks = CallbackQueue(self.deliver, self.cancel)
        self.relay = secrets.token_bytes(RELAY_BYTES)
        self.owner_pid = 0
        self.attachments = 0
        self.silent_beats = 0
        self._types = types
        self._bus = bus
        self._prefix = keys.RELAYED + self.relay
        self._connection: FramedConnection[frames.FromOwner] | None = None
        self._unanswered: dict[int, Pending] = {}
        self._unanswered_bytes = 0
        self._numbers = 0
        self._confirmed: list[int] = []
        self._statistics = b""
        self._watches = self._confirmed_watches = 0
        self._confirms_watches = False
        self._watching = trio.lowlevel.ParkingLot()  # tasks that wait for their subscriptions' confirmation
        self._closing = ""
        self._emptied = trio.Event()
        self._words: dict[type, Callable[[Any], None]] = {
            frames.Response: self._receive_reply,
            frames.Failure: self._receive_failure,
            frames.Changed: self._receive_change,
            frames.Watching: self._receive_watching,
            frames.Heartbeat: self._receive_heartbeat,
            frames.Goodbye: self._receive_goodbye,
        }
        bus.on_interest = self._watch
        bus.wait_heard = self._wait_watching

    # -- requests ----------------------------------------------------------

    def deliver(self, address: Address, envelope: Envelope) -> None:
        """Send a message to its actor."""
        if self._closing:
            raise errors.RuntimeClosedError(self._closing)
        actor = self._types.kinds.get(address.kind)
        if actor is None or type(envelope.message) not in actor.handlers:
            raise errors.UnknownKindError(
                f"no {address.kind!r} actor handles {type(envelope.message).__name__}"
            )
        address.prefix()
        self._check_room()
        self._numbers = number = self._numbers + 1
        pending = PendingMessage(self._types, number, address, envelope)
        word = pending.word()
        envelope.relay_key = self._prefix + number.to_bytes(8)
        self._accept(pending, word)

    def cancel(self, envelope: Envelope) -> None:
        """Drop the caller; if the message was not begun, it never will be."""
        envelope.caller = None
        if envelope.relay_key is not None:
            self._abandon(int.from_bytes(envelope.relay_key[-8:]))

    async def query(self, query: Procedure[Any], principal: Any) -> Any:
        """Return the reply to a query, or `AGAIN` if this process can now run it."""
        if not self._types.knows_query(query):
            raise errors.UnknownKindError(
                f"{type(query).__name__} is not among the queries given when the folder was opened"
            )
        self._check_room()
        self._numbers = number = self._numbers + 1
        pending = PendingQuery(number, query, self._types.write_principal(principal))
        self._accept(pending, pending.word())
        pending.task = trio.lowlevel.current_task()

        def give_up(_: object) -> trio.lowlevel.Abort:
            self._abandon(number)
            return trio.lowlevel.Abort.SUCCEEDED

        return await trio.lowlevel.wait_task_rescheduled(give_up)

    def flush(self) -> None:
        """Send buffered requests now."""
        if self._connection is not None:
            self._connection.flush()

    def _check_room(self) -> None:
        if self._closing:
            raise errors.RuntimeClosedError(self._closing)
        if self.silent_beats >= SILENT_BEATS:
            raise errors.OverloadedError.of(f"{self._silence()}; repeat later", RETRY_AFTER_MS)
        if len(self._unanswered) >= UNANSWERED_LIMIT or self._unanswered_bytes >= UNANSWERED_BYTES:
            raise errors.OverloadedError.of(
                f"{len(self._unanswered)} messages wait for the process that owns the folder; repeat later",
                RETRY_AFTER_MS,
            )

    def _accept(self, pending: Pending, word: frames.Request | frames.QueryRequest) -> None:
        self._unanswered[pending.number] = pending
        self._unanswered_bytes += pending.size
        if self._connection is not None:
            pending.was_sent = True
            if self._confirmed:
                self._confirm(self._connection)
            if len(self._unanswered) == 1:  # a caller with one request at a time gets its reply sooner
                self._connection.send(word, pending.size)
                self._connection.flush()
            else:
                self._connection.send_soon(word, pending.size)

    def _abandon(self, number: int) -> None:
        if self._forget(number) is not None and self._connection is not None:
            self._connection.send_soon(frames.Cancel(number))

    def _forget(self, number: int) -> Pending | None:
        pending = self._unanswered.pop(number, None)
        if pending is not None:
            self._unanswered_bytes -= pending.size
            if not self._unanswered:
                self._emptied.set()
        return pending

    # -- the connection ----------------------------------------------

    def hello(self) -> frames.Hello:
        """Return the greeting to an owner."""
        return frames.Hello(
            frames.PROTOCOL,
            frames.OLDEST,
            program_version(),
            frames.FORMAT_VERSION,
            self.relay,
            os.getpid(),
            list(self._unanswered),
        )

    async def serve(self, wire: FramedConnection[frames.FromOwner], welcome: frames.Welcome) -> None:
        """Relay over a greeted connection until it ends; then raise `PeerError`."""
        self.attachments += 1
        self.owner_pid = welcome.pid
        self._statistics = welcome.statistics
        self._confirms_watches = welcome.confirms_watches
        self._watching.unpark_all()
        self.silent_beats = 0
        self._confirmed.clear()  # `Hello` confirmed all of them
        wire.end_greeting()
        wire.send(frames.Watch(self._bus.topics, number=self._watches))
        for pending in self._unanswered.values():
            pending.was_sent = True
            wire.send(pending.word(again=True), pending.size)
        self._connection = wire
        wire.flush()
        if self.attachments > 1:
            self.renew_subscriptions()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(wire.run_writer)
                while True:
                    self.receive(await wire.receive())
                    wire.flush()
        finally:
            self._disconnect()
            self.owner_pid = 0

    def receive(self, words: Sequence[frames.FromOwner]) -> None:
        """Handle the messages of the owner."""
        for word in words:
            do = self._words.get(type(word))
            if do is not None:
                do(word)
        self.callbacks.run_callbacks()

    def renew_subscriptions(self) -> None:
        """Notify every subscriber of every topic once, because changes may have been missed."""
        for topic in self._bus.topics:
            self._bus.publish(topic, ANYBODY)

    def beat(self) -> None:
        """Do the periodic tasks of each second."""
        self.silent_beats += 1
        if self._connection is not None:
            if self._confirmed:
                self._confirm(self._connection)
            self._connection.send_soon(frames.Heartbeat())
        if self.silent_beats >= SILENT_BEATS:
            self._answer_for_silent_owner()

    def _silence(self) -> str:
        name = f"process {self.owner_pid}" if self.owner_pid else "the process"
        return f"{name} that owns the folder does not answer"

    def _answer_for_silent_owner(self) -> None:
        """Fail waiting requests; the owner may still handle requests that were sent."""
        for pending in [each for each in self._unanswered.values() if each.has_caller]:
            self._abandon(pending.number)
            known = pending.outcome_unanswered
            advice = (
                "it may still do this, so repeat a write with the same idempotency key"
                if known == "unknown"
                else "repeat later"
            )
            pending.end(
                outcome.Error(
                    errors.OverloadedError.of(f"{self._silence()}; {advice}", RETRY_AFTER_MS, known)
                )
            )
        self.callbacks.run_callbacks()

    async def drain(self) -> None:
        """Accept nothing more, and wait until everything is answered."""
        self._closing = "the runtime is closing and takes no more messages"
        while self._unanswered:
            self._emptied = trio.Event()
            await self._emptied.wait()

    async def aclose(self) -> None:
        """Send what is still buffered for the owner."""
        if self._connection is not None:
            if self._confirmed:
                self._confirm(self._connection)
            await self._connection.drain()

    def close(self) -> None:
        """Accept nothing more, and fail all waiting requests."""
        self._closing = "the runtime is closed"
        for pending in list(self._unanswered.values()):
            pending.end(
                outcome.Error(
                    errors.RuntimeClosedError(
                        "the runtime closed before the reply; check whether the request took effect"
                    )
                )
            )
        self._unanswered.clear()
        self._watching.unpark_all()
        self.callbacks.run_callbacks()
        self._bus.close()

    def hand_over(self, kernel: Kernel) -> list[Envelope]:
        """Move unanswered messages to this process's own kernel; return them."""
        self._bus.on_interest = self._bus.wait_heard = None
        self._watching.unpark_all()
        messages = []
        unanswered, self._unanswered = self._unanswered, {}
        for pending in unanswered.values():
            if isinstance(pending, PendingQuery):
                pending.end(outcome.Value(AGAIN))
                continue
            envelope = pending.envelope
            envelope.is_retry = True
            messages.append(envelope)
            try:
                kernel.deliver(pending.address, envelope)
            except errors.GreenroomError as error:
                envelope.complete(outcome.Error(error))
        self._emptied.set()
        return messages

    def statistics(self) -> RuntimeStatistics | None:
        """Return the owner's newest statistics, with this process's view of the relay."""
        if not self._statistics:
            return None
        oldest = next(iter(self._unanswered.values()), None)
        relay = RelayStatistics(
            role="attached",
            owner_pid=self.owner_pid,
            attached_pids=[],
            takeovers=max(0, self.attachments - 1),
            unanswered=len(self._unanswered),
            oldest_seconds=0.0 if oldest is None else round(trio.current_time() - oldest.since, 3),
            silent_seconds=max(0, self.silent_beats - 1),
        )
        owner = msgspec.json.decode(self._statistics, type=RuntimeStatistics)
        return msgspec.structs.replace(owner, relay=relay)

    # -- words of the owner --------------------------------------------

    def _receive_reply(self, word: frames.Response) -> None:
        pending = self._forget(word.number)
        if word.kept:
            self._confirmed.append(word.number)
            if len(self._confirmed) >= CONFIRM_AT and self._connection is not None:
                self._confirm(self._connection)
        if pending is not None:
            pending.answer(word)

    def _receive_failure(self, word: frames.Failure) -> None:
        pending = self._forget(word.number)
        if pending is not None:
            pending.end(outcome.Error(error_of(word)))

    def _receive_change(self, word: frames.Changed) -> None:
        try:
            labels = self._types.read_labels(word.labels)
        except msgspec.DecodeError:
            return  # a label of another version: which subscribers may see it is not known here
        for label in labels:
            self._bus.publish(word.topic, label)

    def _receive_heartbeat(self, word: frames.Heartbeat) -> None:
        self.silent_beats = 0
        self._statistics = word.statistics or self._statistics

    def _receive_goodbye(self, _word: frames.Goodbye) -> None:
        if self._connection is not None:
            self._connection.flush()
        self._disconnect()  # new requests wait for the next owner

    def _confirm(self, wire: FramedConnection[frames.FromOwner]) -> None:
        wire.send(frames.Confirm(self._confirmed))
        self._confirmed = []

    def _watch(self, topic: str, wanted: bool) -> None:  # noqa: FBT001  as the bus calls it
        self._watches += 1
        if self._connection is not None:
            self._connection.send_soon(frames.Watch([topic], wanted, self._watches))

    async def _wait_watching(self) -> None:
        """Wait until the owner has every subscription of this moment.

        After a lost connection nothing is to wait for: when there is an owner again, every subscriber is
        notified of every topic.
        """
        wanted = self._watches
        while not self._is_watching(wanted):
            await self._watching.park()

    def _is_watching(self, wanted: int) -> bool:
        if self._closing or self._bus.wait_heard is None:  # closed, or the owner itself
            return True
        if not self.attachments:
            return False
        return self._connection is None or not self._confirms_watches or self._confirmed_watches >= wanted

    def _receive_watching(self, word: frames.Watching) -> None:
        self._confirmed_watches = word.number
        self._watching.unpark_all()

    def _disconnect(self) -> None:
        self._connection = None
        self._watching.unpark_all()
