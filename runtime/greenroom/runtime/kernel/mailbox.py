"""One actor in memory: its mailbox and its commit units on their way to disk."""

from __future__ import annotations

from collections import deque
from math import inf
from typing import Any, NamedTuple, Protocol

import msgspec
import outcome
import trio

from greenroom.runtime.actor.actor import Actor, Handlers
from greenroom.runtime.actor.context import Context
from greenroom.runtime.actor.effects import ActorKeys, Effects
from greenroom.runtime.actor.message import EncodedReply, Message, Slices
from greenroom.runtime.base.address import Address
from greenroom.runtime.base.errors import ActorFailedError
from greenroom.runtime.lmdb.key_blinding import KeyBlinder, Names, no_names
from greenroom.runtime.lmdb.write_batch import WriteBatch

Result = outcome.Value[Any] | outcome.Error


class Caller(Protocol):
    """A receiver of a reply; it is not a task."""

    def complete(self, result: Result) -> None:
        """Receive the result. This runs in the kernel's critical section: do not call the kernel."""


class Idempotency(NamedTuple):
    """The idempotency key of a request, in its scope: the principal and the operation.

    The fingerprint is a digest of the arguments; the same key with other arguments is a conflict.
    """

    scope: str
    key: str
    fingerprint: bytes


class Envelope(msgspec.Struct, eq=False):
    """A message in a mailbox, and its caller.

    Attributes:
        caller: The waiting task or callback; None for tells and timers, and after a cancellation.
        deadline: On trio's clock; a message is not begun after it.
        outbox_key: The stored row (an outbox number, a timer) that this message came from; the commit that
            handles the message deletes it.
        one_way: Whether no caller ever waited for a reply.
        relay_key: The row for the reply to a relayed message, stored with the message's effects. None for
            other messages, and once the relay will not repeat the message.
        is_retry: Whether an earlier owner may have handled it already, so that the relay's row may exist.
        encoded: The relayed reply as stored; None until it is stored.
    """

    message: Message[Any]
    principal: Any = None
    precheck_answer: Any = None
    deadline: float = inf
    idempotency: Idempotency | None = None
    outbox_key: bytes | None = None
    timer: str | None = None
    one_way: bool = False
    caller: trio.lowlevel.Task | Caller | None = None
    failures: int = 0
    begun: bool = False
    relay_key: bytes | None = None
    is_retry: bool = False
    encoded: EncodedReply | None = None
    activation: Activation | None = None

    @property
    def is_durable(self) -> bool:
        """Whether the message survives a crash; after an error it must be retried, not answered."""
        return self.outbox_key is not None

    @property
    def needs_handling(self) -> bool:
        """Whether it must be handled; False if it was cancelled and no repeat can come."""
        return (
            self.caller is not None
            or self.one_way
            or self.idempotency is not None
            or self.relay_key is not None  # a repeat may come, and must not find it half done
        )

    def complete(self, result: Result) -> bool:
        """Pass the result to the caller; return False if the caller no longer waits."""
        caller, self.caller = self.caller, None
        if caller is None:
            return False
        if type(caller) is trio.lowlevel.Task:  # isinstance would use a slow ABC
            trio.lowlevel.reschedule(caller, result)
        else:
            caller.complete(result)
        return True


class Running(NamedTuple):
    """A generator handler between two of its slices."""

    envelope: Envelope
    context: Context
    slices: Slices[Any]


class Activation(ActorKeys):
    """One actor in memory.

    Attributes:
        actor: The instance, or None until the next message activates it.
        restart: A pending restart, which comes before every message of the mailbox.
        is_handling: Whether one of its handlers runs right now; its changes are not visible yet.
        last_unit: The newest commit unit on its way to disk; replies that may have seen it wait for it.
        paused_until: On trio's clock; a failed actor is not restarted earlier. 0 when it is not paused.
    """

    __slots__ = (
        "actor",
        "handlers",
        "is_handling",
        "last_unit",
        "last_used",
        "mailbox",
        "paused_until",
        "ready",
        "resident_bytes",
        "restart",
        "running",
    )

    def __init__(
        self,
        address: Address,
        handlers: Handlers,
        names: Names = no_names,
        blinder: KeyBlinder | None = None,
    ) -> None:
        super().__init__(address, names, blinder)
        self.handlers = handlers
        self.actor: Actor | None = None
        self.mailbox: deque[Envelope] | None = None
        self.running: Running | None = None
        self.restart: ActorFailedError | None = None
        self.last_unit: CommitUnit | None = None
        self.is_handling = False
        self.ready = False
        self.paused_until = 0.0
        self.last_used = 0.0
        self.resident_bytes = 0

    def has_callers(self, besides: type[Any]) -> bool:
        """Return whether principals wait; messages of the type ``besides`` do not count."""
        return any(
            each.caller is not None and each.principal is not None and type(each.message) is not besides
            for each in self.mailbox or ()
        )

    @property
    def is_idle(self) -> bool:
        """Return whether the actor can leave memory without losing anything."""
        return (
            not self.mailbox
            and not self.ready
            and self.running is None
            and not self.is_handling
            and self.restart is None
            and self.last_unit is None
            and not self.paused_until
        )


class CommitUnit(WriteBatch):
    """The effects of one message on their way to disk, with their waiting replies.

    Attributes:
        dead_lettered: The row of a stored message that this unit moves to the dead letters.
        replies: The replies to send once the unit is on disk: its own, then the replies of later readers.
    """

    __slots__ = ("activation", "dead_lettered", "effects", "number", "replies")

    def __init__(
        self, number: int, activation: Activation | None, effects: Effects
    ) -> None:  # no super(): a hot path
        self.owner = self if activation is None else activation
        self.changes = (effects.own, effects.rows)
        self.entries = effects.entries
        self.revocations = effects.revocations
        self.reserve = effects.reserve
        self.error = None
        self.number = number
        self.activation = activation
        self.effects = effects
        self.dead_lettered: bytes | None = None
        self.replies: list[tuple[Envelope, Result]] = []
