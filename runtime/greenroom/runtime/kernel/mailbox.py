"""One actor while it is in memory: its mailbox and what is on its way to disk."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Mapping
from typing import Any, NamedTuple, Protocol

import outcome
import trio

from greenroom.runtime.actor.actor import Actor
from greenroom.runtime.actor.context import Context
from greenroom.runtime.actor.effects import ActorKeys, Effects
from greenroom.runtime.actor.message import EncodedReply, Message
from greenroom.runtime.base.address import Address
from greenroom.runtime.base.errors import ActorFailedError
from greenroom.runtime.lmdb.key_blinding import KeyBlinder, Names, no_names
from greenroom.runtime.lmdb.write_batch import WriteBatch

Result = outcome.Value[Any] | outcome.Error


class Asker(Protocol):
    """Who waits for a reply without a task."""

    def settle(self, result: Result) -> None:
        """Receive the result. Called inside the kernel's critical section: must not call the kernel."""


class Idempotency(NamedTuple):
    """What makes a request answerable once only.

    Attributes:
        scope: Whose key it is: the principal and the operation.
        key: The caller's key.
        fingerprint: A digest of the arguments; the same key with another one is a conflict.
    """

    scope: str
    key: str
    fingerprint: bytes


class Envelope:
    """A message in a mailbox, and who waits for the reply.

    Attributes:
        asker: The waiting task, or what was posted; None for tells and timers, and once the asker gave up.
        deadline: On trio's clock; a message not begun by then is not begun.
        outbox_key: The stored row (an outbox number, a timer) that brought this message, deleted by the
            commit that handles it.
        timer: The name of the timer that brought it.
        one_way: Whether nobody ever waited for a reply.
        failures: How often handling it has failed.
        begun: Whether a handler has seen it.
        relay_key: The row for the answer to a message of another process, which is stored with the message's
            effects; None for others, and once nobody will ask for that answer again.
        is_retry: Whether an owner before may have handled it already, so that there may be such a row.
        encoded: That answer as stored, once it is.
    """

    __slots__ = (
        "activation",
        "asker",
        "begun",
        "deadline",
        "encoded",
        "failures",
        "idempotency",
        "is_retry",
        "message",
        "one_way",
        "outbox_key",
        "precheck_answer",
        "principal",
        "relay_key",
        "timer",
    )

    def __init__(
        self,
        message: Message[Any],
        principal: Any = None,
        answer: Any = None,
        deadline: float = float("inf"),
        idempotency: Idempotency | None = None,
        *,
        row: bytes | None = None,
        timer: str | None = None,
        told: bool = False,
    ) -> None:
        self.message = message
        self.principal = principal
        self.precheck_answer = answer
        self.deadline = deadline
        self.idempotency = idempotency
        self.outbox_key = row
        self.timer = timer
        self.one_way = told or row is not None
        self.asker: trio.lowlevel.Task | Asker | None = None
        self.failures = 0
        self.begun = False
        self.relay_key: bytes | None = None
        self.is_retry = False
        self.encoded: EncodedReply | None = None
        self.activation: Activation | None = None

    @property
    def is_durable(self) -> bool:
        """Whether the message survives a crash and so must be retried rather than answered."""
        return self.outbox_key is not None

    @property
    def needs_handling(self) -> bool:
        """Whether somebody wants it handled: not when its asker gave up, and nobody may repeat it."""
        return (
            self.asker is not None
            or self.one_way
            or self.idempotency is not None
            or self.relay_key is not None  # where a repeat may come that must not find it half done
        )

    def settle(self, result: Result) -> bool:
        """Hand the result to the asker; return False when nobody waits for it any more."""
        asker, self.asker = self.asker, None
        if asker is None:
            return False
        if type(asker) is trio.lowlevel.Task:  # its isinstance is an ABC's, which is slow
            trio.lowlevel.reschedule(asker, result)
        else:
            asker.settle(result)
        return True


class Running(NamedTuple):
    """A generator handler between two of its slices."""

    envelope: Envelope
    context: Context
    slices: Generator[None, None, Any]


class Activation(ActorKeys):
    """One resident actor.

    Attributes:
        handlers: The names of its methods, by the type of the message.
        actor: The instance, or None until the next message activates it.
        mailbox: Messages that wait, oldest first.
        restart: A pending system message "restart", which goes before every message of the mailbox.
        last_work: The newest work on its way to disk; replies that may have seen it wait for it.
        ready: Whether the activation is in the queue of activations with something to do.
        paused_until: On trio's clock; before that a failed actor is not restarted. 0 when it is not paused.
    """

    __slots__ = (
        "actor",
        "handlers",
        "last_used",
        "last_work",
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
        handlers: Mapping[type[Message[Any]], str],
        names: Names = no_names,
        blinder: KeyBlinder | None = None,
    ) -> None:
        super().__init__(address, names, blinder)
        self.handlers = handlers
        self.actor: Actor | None = None
        self.mailbox: deque[Envelope] | None = None
        self.running: Running | None = None
        self.restart: ActorFailedError | None = None
        self.last_work: CommitUnit | None = None
        self.ready = False
        self.paused_until = 0.0
        self.last_used = 0.0
        self.resident_bytes = 0

    @property
    def is_idle(self) -> bool:
        """Return whether the actor can leave memory without losing anything."""
        return (
            not self.mailbox
            and not self.ready
            and self.running is None
            and self.restart is None
            and self.last_work is None
            and not self.paused_until
        )


class CommitUnit(WriteBatch):
    """The effects of one message on their way to disk, and the replies that wait for them.

    Attributes:
        activation: The actor that staged them, or None for the runtime's own housekeeping.
        number: Counts the works of this runtime, so that the overlay knows whose record it holds.
        buried: The row of a stored message that this moves to the dead letters.
        settlements: Whom to tell what once this is on disk: the sender itself, then those who read after it.
    """

    __slots__ = ("activation", "buried", "effects", "number", "settlements")

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
        self.buried: bytes | None = None
        self.settlements: list[tuple[Envelope, Result]] = []
