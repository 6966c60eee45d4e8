"""One actor while it is in memory: its mailbox and what is on its way to disk."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import outcome
import trio

from greenroom.runtime.actor.context import Home
from greenroom.runtime.lmdb.key_blinding import Names, Veil, no_names

if TYPE_CHECKING:
    from greenroom.runtime.actor.actor import Actor, Message
    from greenroom.runtime.actor.context import Context
    from greenroom.runtime.actor.reply_codec import EncodedReply
    from greenroom.runtime.base.address import Address
    from greenroom.runtime.base.errors import ActorFailedError
    from greenroom.runtime.kernel.group_commit import Effects


Result = outcome.Value[Any] | outcome.Error


class Asker(Protocol):
    """Who waits for a reply without a task."""

    def settle(self, result: Result) -> None:
        """Take the result; the kernel is about its books and must not be asked anything meanwhile."""


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
        row: The stored row (an outbox number, a timer) that brought this message, deleted by the commit
            that handles it.
        timer: The name of the timer that brought it.
        told: Whether nobody ever waited for a reply.
        attempts: How often handling it has failed.
        begun: Whether a handler has seen it.
        relay: The row for the answer to a message of another process, which is stored with the message's
            effects; None for others, and once nobody will ask for that answer again.
        again: Whether an owner before may have handled it already, so that there may be such a row.
        encoded: That answer as stored, once it is.
    """

    __slots__ = (
        "again",
        "answer",
        "asker",
        "attempts",
        "begun",
        "cell",
        "deadline",
        "encoded",
        "idempotency",
        "message",
        "principal",
        "relay",
        "row",
        "timer",
        "told",
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
        self.answer = answer
        self.deadline = deadline
        self.idempotency = idempotency
        self.row = row
        self.timer = timer
        self.told = told or row is not None
        self.asker: trio.lowlevel.Task | Asker | None = None
        self.attempts = 0
        self.begun = False
        self.relay: bytes | None = None
        self.again = False
        self.encoded: EncodedReply | None = None
        self.cell: Cell | None = None

    @property
    def stored(self) -> bool:
        """Whether the message survives a crash and so must be retried rather than answered."""
        return self.row is not None

    @property
    def wanted(self) -> bool:
        """Whether somebody wants it handled: not when its asker gave up, and nobody may repeat it."""
        return (
            self.asker is not None
            or self.told
            or self.idempotency is not None
            or self.relay is not None  # where a repeat may come that must not find it half done
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


class Cell(Home):
    """One resident actor.

    Attributes:
        handlers: The names of its methods, by the type of the message.
        actor: The instance, or None until the next message activates it.
        mailbox: Messages that wait, oldest first.
        restart: A pending system message "restart", which goes before every message of the mailbox.
        last_work: The newest work on its way to disk; replies that may have seen it wait for it.
        ready: Whether the cell is in the queue of cells with something to do.
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
        veil: Veil | None = None,
    ) -> None:
        super().__init__(address, names, veil)
        self.handlers = handlers
        self.actor: Actor | None = None
        self.mailbox: deque[Envelope] | None = None
        self.running: Running | None = None
        self.restart: ActorFailedError | None = None
        self.last_work: Effects | None = None
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
