"""One attached process, at the owner: what it asks is posted, and what comes of that is told."""

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
from greenroom.runtime.kernel.group_commit import GroupCommit
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
"""Unanswered messages of one relay; at more than that nothing is read from it."""
UNSENT_LIMIT = 8 << 20
"""Bytes that an attached process has not read; at more than that nothing is read from it."""
UNSENT_MAX = 256 << 20
"""Bytes that an attached process has not read; at more than that it is let go, and can come back."""
WORDS_AT_ONCE = 64
"""Words of one relay that are done before it is looked whether it reads the answers."""
LABELS_LIMIT = 100_000
"""Labels that wait for an attached process; at more than that it is let go."""


class LeaderPort(Protocol):
    """The parts of the owner's side that its sessions work with."""

    runtime: Runtime
    kernel: Kernel
    commits: GroupCommit
    bus: Bus
    types: TypeRegistry
    settled: list[tuple[PendingRequest, Result]]
    is_leaving: bool


class PendingRequest:
    """Waits for the reply to one relayed message."""

    __slots__ = ("envelope", "number", "session")

    def __init__(self, session: FollowerSession, number: int, envelope: Envelope) -> None:
        self.session = session
        self.number = number
        self.envelope = envelope

    def settle(self, result: Result) -> None:
        """Take the result; it is told after the pass."""
        self.session.leader.settled.append((self, result))


class FollowerSession:
    """One attached process.

    Args:
        leader: The owner's side.
        connection: The connection, past the greeting.
        hello: How the process introduced itself.
    """

    def __init__(
        self, leader: LeaderPort, connection: FramedConnection[frames.FromFollower], hello: frames.Hello
    ) -> None:
        self.leader = leader
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
        self._heard_at = trio.current_time()
        self._words = {
            frames.Request: self._ask,
            frames.QueryRequest: self._ask_query,
            frames.Cancel: self._abandon,
            frames.Confirm: self._confirm,
            frames.Watch: self._watch,
        }

    async def serve(self) -> None:
        """Do what the process asks until the connection ends; raises `PeerError` then."""
        connection = self.connection
        async with trio.open_nursery() as self._nursery:
            self._nursery.start_soon(connection.run_writer)
            while True:
                words = await connection.receive()
                self._heard_at = trio.current_time()
                for first in range(0, len(words), WORDS_AT_ONCE):
                    self._do(words[first : first + WORDS_AT_ONCE])
                    while self._is_full():
                        self._room = trio.Event()
                        await self._room.wait()

    def _do(self, words: Sequence[frames.FromFollower]) -> None:
        with self.leader.runtime.hold_dispatch():
            for word in words:
                do: Any = self._words.get(type(word))
                if do is not None:
                    do(word)
            self.leader.runtime.run_ready()
        self.connection.flush()

    @property
    def unanswered(self) -> int:
        """How much of what it asked is not answered."""
        return len(self._calls) + len(self._queries)

    @property
    def silent_seconds(self) -> float:
        """For how long nothing was read from it."""
        return trio.current_time() - self._heard_at

    def _is_full(self) -> bool:
        return self.unanswered > IN_FLIGHT_LIMIT or self.connection.unsent > UNSENT_LIMIT

    def look_after(self) -> None:
        """Tell what could not be told before, let go who reads nothing, read from who has room again."""
        if self.connection.unsent <= UNSENT_LIMIT:
            for topic, labels in self._changes.items():
                self._tell_change(topic, labels)
            self._changes = {}
        if self.connection.unsent > UNSENT_MAX or sum(map(len, self._changes.values())) > LABELS_LIMIT:
            logger.warning("the attached process %d reads nothing and is let go", self.pid)
            self.connection.close()
        if not self._is_full():
            self._room.set()

    def end(self) -> None:
        """Let what is not begun go: if the process still lives, it will ask again."""
        self.connection.close()
        for topic in self._topics:
            self.leader.bus.leave(topic, self)
        self._topics.clear()
        for envelope in self._calls.values():
            if envelope.asker is not None:
                self.leader.kernel.cancel(envelope)
        self._calls.clear()

    # -- what it says ------------------------------------------------------

    def _ask(self, word: frames.Request) -> None:
        number = word.number
        if number in self._calls:
            return
        try:
            address, envelope = Address(word.kind, word.key), self._envelope(word)
            self.leader.kernel.deliver(address, envelope)
        except RuntimeClosedError:
            return  # the next owner is asked
        except (GreenroomError, msgspec.DecodeError, ValueError) as error:
            self.connection.send(failure_of(number, error))
            return
        envelope.asker = PendingRequest(self, number, envelope)
        self._calls[number] = envelope

    def _envelope(self, word: frames.Request) -> Envelope:
        types = self.leader.types
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
            told=word.told,
        )
        envelope.relay_key = self.prefix + word.number.to_bytes(8)
        envelope.is_retry = word.again
        return envelope

    def _ask_query(self, word: frames.QueryRequest) -> None:
        if not self.leader.is_leaving and word.number not in self._queries:
            assert self._nursery is not None, "words come while it serves"
            scope = self._queries[word.number] = trio.CancelScope()
            self._nursery.start_soon(self._query, word, scope)

    async def _query(self, word: frames.QueryRequest, scope: trio.CancelScope) -> None:
        types, number = self.leader.types, word.number
        try:
            with scope:
                query = types.read_query(word.name, word.body)
                principal = types.read_principal(word.principal)
                reply = encode_reply(type(query), await self.leader.runtime.query(query, principal=principal))
                self.connection.send(frames.Response(number, *reply), len(reply.body))
        except (RuntimeClosedError, StoreFailedError):
            pass  # as in _ask
        except GreenroomError as error:
            self.connection.send(failure_of(number, error))
        except Exception as error:
            logger.exception("the relayed query %s failed", word.name)
            self.connection.send(failure_of(number, error))
        finally:
            del self._queries[number]
            self._made_room()
        self.connection.flush()

    def _abandon(self, word: frames.Cancel) -> None:
        envelope = self._calls.pop(word.number, None)
        if envelope is not None:
            row = envelope.relay_key
            self.leader.kernel.forget_reply(envelope)
            if row is not None and envelope.begun:
                self.leader.commits.defer_delete(row)
        elif word.number in self._queries:
            self._queries[word.number].cancel()

    def _confirm(self, word: frames.Confirm) -> None:
        for number in word.numbers:
            self.leader.commits.defer_delete(self.prefix + number.to_bytes(8))

    def _watch(self, word: frames.Watch) -> None:
        for topic in word.topics:
            if word.wanted and topic not in self._topics:
                self._topics.add(topic)
                self.leader.bus.join(topic, self)
            elif not word.wanted and topic in self._topics:
                self._topics.remove(topic)
                self.leader.bus.leave(topic, self)

    # -- what it is told ---------------------------------------------------

    def answer(self, call: PendingRequest, result: Result) -> None:
        """Say what a message ended with, with the next flush."""
        number, envelope = call.number, call.envelope
        if self._calls.get(number) is not envelope:
            return
        del self._calls[number]
        self._made_room()
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
        ):  # otherwise the next owner is asked
            self.connection.send(failure_of(number, result.error))

    def notify(self, topic: str, labels: Iterable[Hashable], now: float) -> bool:  # noqa: ARG002  as the bus calls it
        """Pass a change on; what is not read is kept once a topic."""
        told = {label: None for label in labels if label is not ANYBODY}
        if self.connection.unsent > UNSENT_LIMIT:
            self._changes.setdefault(topic, {}).update(told)
        elif told:
            self._tell_change(topic, told)
        return False

    def _tell_change(self, topic: str, labels: dict[Hashable, None]) -> None:
        try:
            written = self.leader.types.write_labels(list(labels))
        except TypeError:
            logger.exception("the labels of %s cannot be relayed", topic)
        else:
            self.connection.send_soon(frames.Changed(topic, written), len(written))

    def _made_room(self) -> None:
        if not self._room.is_set() and not self._is_full():
            self._room.set()
