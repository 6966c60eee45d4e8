"""The owner's session of one attached process: post its requests and send their results."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Iterable, Sequence
from math import inf
from typing import Any, Protocol

import msgspec
import outcome
import trio

from greenroom.runtime.actor.message import EncodedReply, decode_reply, encode_reply
from greenroom.runtime.api.runtime import Runtime
from greenroom.runtime.base.address import Address
from greenroom.runtime.base.errors import GreenroomError, RuntimeClosedError, StoreFailedError
from greenroom.runtime.kernel.commit_queue import GroupCommit
from greenroom.runtime.kernel.kernel import Kernel
from greenroom.runtime.kernel.mailbox import Envelope, Idempotency, Result
from greenroom.runtime.kernel.pubsub import ANYBODY, Bus
from greenroom.runtime.lmdb import keys
from greenroom.runtime.sharing import frames
from greenroom.runtime.sharing.framed_connection import FramedConnection
from greenroom.runtime.sharing.frames import failure_of
from greenroom.runtime.sharing.type_registry import TypeRegistry

logger = logging.getLogger(__name__)

IN_FLIGHT_LIMIT = 4_096
"""The limit of unanswered messages of one relay; above it, nothing is read from the relay."""
UNSENT_LIMIT = 8 << 20
"""If an attached process has more unread bytes than this, nothing is read from it."""
UNSENT_MAX = 256 << 20
"""If an attached process has more unread bytes than this, it is disconnected, and may return."""
WORDS_AT_ONCE = 64
"""After this many words of one relay, it is checked whether the relay reads the replies."""
LABELS_LIMIT = 100_000
"""If more labels than this wait for an attached process, it is disconnected."""


class OwnerPort(Protocol):
    """The parts of the owner's side that its sessions use."""

    runtime: Runtime
    kernel: Kernel
    commits: GroupCommit
    bus: Bus
    types: TypeRegistry

    def complete(self, call: PendingRequest, result: Result) -> None:
        """Accept the result of a message; it is sent after the dispatcher's pass."""


class PendingRequest:
    """A relayed message that waits for its reply."""

    __slots__ = ("envelope", "number", "session")

    def __init__(self, session: AttachedSession, number: int, envelope: Envelope) -> None:
        self.session = session
        self.number = number
        self.envelope = envelope

    def complete(self, result: Result) -> None:
        """Accept the result; it is sent after the pass."""
        self.session.owner_side.complete(self, result)


class AttachedSession:
    """One attached process."""

    def __init__(
        self, owner_side: OwnerPort, connection: FramedConnection[frames.FromAttached], hello: frames.Hello
    ) -> None:
        self.owner_side = owner_side
        self.connection = connection
        self.pid = hello.pid
        self.relay = hello.relay
        self.prefix = keys.RELAYED + hello.relay
        self._calls: dict[int, Envelope] = {}
        self._queries: dict[int, trio.CancelScope] = {}
        self._topics: set[str] = set()
        self._changes: dict[str, dict[Hashable, None]] = {}
        self._room = trio.Event()
        self._nursery: trio.Nursery | None = None
        self._read_at = trio.current_time()
        self._words = {
            frames.Request: self._deliver,
            frames.QueryRequest: self._start_query,
            frames.Cancel: self._abandon,
            frames.Confirm: self._confirm,
            frames.Watch: self._watch,
        }

    async def serve(self) -> None:
        """Handle the process's requests until the connection ends; then raise `PeerError`."""
        connection = self.connection
        async with trio.open_nursery() as self._nursery:
            self._nursery.start_soon(connection.run_writer)
            while True:
                words = await connection.receive()
                self._read_at = trio.current_time()
                for first in range(0, len(words), WORDS_AT_ONCE):
                    self._do(words[first : first + WORDS_AT_ONCE])
                    while self._is_full():
                        self._room = trio.Event()
                        await self._room.wait()

    def _do(self, words: Sequence[frames.FromAttached]) -> None:
        with self.owner_side.kernel.dispatcher:
            for word in words:
                do: Any = self._words.get(type(word))
                if do is not None:
                    do(word)
            self.owner_side.kernel.dispatcher.run_ready()
        self.connection.flush()

    @property
    def unanswered(self) -> int:
        """The number of its unanswered requests."""
        return len(self._calls) + len(self._queries)

    @property
    def silent_seconds(self) -> float:
        """The seconds since something was last read from the process."""
        return trio.current_time() - self._read_at

    def _is_full(self) -> bool:
        return self.unanswered > IN_FLIGHT_LIMIT or self.connection.unsent > UNSENT_LIMIT

    def look_after(self) -> None:
        """Send delayed changes; disconnect a process that reads nothing; resume reading."""
        if self.connection.unsent <= UNSENT_LIMIT:
            for topic, labels in self._changes.items():
                self._send_change(topic, labels)
            self._changes = {}
        if self.connection.unsent > UNSENT_MAX or sum(map(len, self._changes.values())) > LABELS_LIMIT:
            logger.warning("the attached process %d reads nothing and is disconnected", self.pid)
            self.connection.close()
        self._resume_reading()

    def end(self) -> None:
        """Drop requests that are not begun; if the process is alive, it sends them again."""
        self.connection.close()
        for topic in self._topics:
            self.owner_side.bus.leave(topic, self)
        self._topics.clear()
        for envelope in self._calls.values():
            self.owner_side.kernel.cancel(envelope)
        self._calls.clear()

    # -- its words ---------------------------------------------------

    def _deliver(self, word: frames.Request) -> None:
        number = word.number
        if number in self._calls:
            return
        try:
            address, envelope = Address(word.kind, word.key), self._envelope(word)
            self.owner_side.kernel.deliver(address, envelope)
        except (RuntimeClosedError, StoreFailedError):
            return  # the process will ask the next owner
        except (GreenroomError, msgspec.DecodeError, ValueError) as error:
            self.connection.send(failure_of(number, error))
            return
        envelope.caller = PendingRequest(self, number, envelope)
        self._calls[number] = envelope

    def _envelope(self, word: frames.Request) -> Envelope:
        types = self.owner_side.types
        message = types.read_message(word.kind, word.name, word.body)
        answer = None
        if word.answer is not None:
            question = message.precheck()
            if question is not None:
                answer = decode_reply(type(question[1]), EncodedReply(word.answer))
        envelope = Envelope(
            message,
            types.read_principal(word.principal),
            answer,
            inf if word.left is None else trio.current_time() + word.left,
            None if word.idempotency is None else Idempotency(*word.idempotency),
            one_way=word.told,
        )
        envelope.relay_key = self.prefix + word.number.to_bytes(8)
        envelope.is_retry = word.again
        return envelope

    def _start_query(self, word: frames.QueryRequest) -> None:
        if word.number not in self._queries:
            assert self._nursery is not None, "words come while it serves"
            scope = self._queries[word.number] = trio.CancelScope()
            self._nursery.start_soon(self._query, word, scope)

    async def _query(self, word: frames.QueryRequest, scope: trio.CancelScope) -> None:
        types, number = self.owner_side.types, word.number
        try:
            with scope:
                query = types.read_query(word.name, word.body)
                principal = types.read_principal(word.principal)
                reply = encode_reply(
                    type(query), await self.owner_side.runtime.query(query, principal=principal)
                )
                self.connection.send(frames.Response(number, *reply), len(reply.body))
        except (RuntimeClosedError, StoreFailedError):
            pass  # as in _deliver
        except GreenroomError as error:
            self.connection.send(failure_of(number, error))
        except Exception as error:
            logger.exception("the relayed query %s failed", word.name)
            self.connection.send(failure_of(number, error))
        finally:
            del self._queries[number]
            self._resume_reading()
        self.connection.flush()

    def _abandon(self, word: frames.Cancel) -> None:
        envelope = self._calls.pop(word.number, None)
        if envelope is not None:
            self.owner_side.kernel.forget_reply(envelope)
            self._forget_answer(word.number)
        elif word.number in self._queries:
            self._queries[word.number].cancel()

    def _confirm(self, word: frames.Confirm) -> None:
        for number in word.numbers:
            self._forget_answer(number)

    def _forget_answer(self, number: int) -> None:
        self.owner_side.commits.defer_delete(self.prefix + number.to_bytes(8))

    def _watch(self, word: frames.Watch) -> None:
        for topic in word.topics:
            if word.wanted and topic not in self._topics:
                self._topics.add(topic)
                self.owner_side.bus.join(topic, self)
            elif not word.wanted and topic in self._topics:
                self._topics.remove(topic)
                self.owner_side.bus.leave(topic, self)
        if word.number:
            self.connection.send(frames.Watching(word.number))

    # -- words to it ------------------------------------------------

    def answer(self, call: PendingRequest, result: Result) -> None:
        """Send the result of a message with the next flush."""
        number, envelope = call.number, call.envelope
        self._calls.pop(number, None)  # missing if a callback ended the program and thus the connection
        self._resume_reading()
        if type(result) is outcome.Value:
            try:
                reply = envelope.encoded or encode_reply(type(envelope.message), result.value)
            except Exception as error:  # noqa: BLE001  what a handler returns may fail to encode in any way
                self.connection.send(failure_of(number, error))
                return
            kept = envelope.encoded is not None or envelope.is_retry
            self.connection.send(frames.Response(number, reply.body, reply.variant, kept), len(reply.body))
        elif isinstance(result, outcome.Error) and not isinstance(
            result.error, (RuntimeClosedError, StoreFailedError)
        ):  # else the process asks the next owner
            self.connection.send(failure_of(number, result.error))

    def notify(self, topic: str, labels: Iterable[Hashable], now: float) -> bool:  # noqa: ARG002  as the bus calls it
        """Relay a change; merge unread changes by topic."""
        relayed = {label: None for label in labels if label is not ANYBODY}
        if self.connection.unsent > UNSENT_LIMIT:
            self._changes.setdefault(topic, {}).update(relayed)
        elif relayed:
            self._send_change(topic, relayed)
        return False

    def _send_change(self, topic: str, labels: dict[Hashable, None]) -> None:
        try:
            written = self.owner_side.types.write_labels(list(labels))
        except TypeError:
            logger.exception("the labels of %s cannot be relayed", topic)
        else:
            self.connection.send_soon(frames.Changed(topic, written), len(written))

    def _resume_reading(self) -> None:
        if not self._room.is_set() and not self._is_full():
            self._room.set()
