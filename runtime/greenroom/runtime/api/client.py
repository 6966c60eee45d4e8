"""The interface of a runtime for programs, in any process of the folder."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, TypeVar

import trio

from greenroom.runtime.actor.message import Message, check_tellable
from greenroom.runtime.api.procedure import Procedure
from greenroom.runtime.base.address import Address
from greenroom.runtime.base.statistics import RuntimeStatistics
from greenroom.runtime.kernel.callbacks import CallbackQueue, MessageSink, Ticket
from greenroom.runtime.kernel.mailbox import Envelope, Idempotency, Result
from greenroom.runtime.kernel.pubsub import WINDOW_SECONDS, Subscriber
from greenroom.runtime.maintenance.backup import BackupInfo, VerifyReport

R = TypeVar("R")


class RuntimeClient(Protocol):
    """A client of actors: a `Runtime`, or one shared with other processes."""

    _kernel: MessageSink
    _callbacks: CallbackQueue

    async def ask(
        self,
        address: Address,
        message: Message[R],
        *,
        principal: Any = None,
        idempotency: Idempotency | None = None,
        on_accepted: Callable[[], None] | None = None,
    ) -> R:
        """Send a message and return its reply, once all that it reflects is on disk.

        The deadline is that of the caller's cancel scope. A cancelled request that was not begun leaves the
        mailbox; one that was begun commits whole or not at all.

        Args:
            address: The actor.
            message: The request. Its `Message.precheck`, if any, is sent first.
            principal: The caller's identity, for `Context.principal`.
            idempotency: With it, a repeat within 24 hours gets the first reply.
            on_accepted: Called once the message is in the mailbox, in the order of acceptance.

        Raises:
            Refusal: the handler refused.
            ActorFailedError, ActorQuarantinedError, OverloadedError, DeadlineExceededError, StorageFullError,
            IdempotencyConflictError, UnknownKindError, RuntimeClosedError: see each.
        """
        precheck = message.precheck()
        answer = None if precheck is None else await self.ask(*precheck, principal=principal)
        envelope = Envelope(
            message,
            principal,
            answer,
            trio.current_effective_deadline(),
            idempotency,
        )
        self._kernel.deliver(address, envelope)
        if on_accepted is not None:
            on_accepted()
        envelope.caller = trio.lowlevel.current_task()

        def give_up(_: object) -> trio.lowlevel.Abort:
            self._kernel.cancel(envelope)
            return trio.lowlevel.Abort.SUCCEEDED

        reply: R = await trio.lowlevel.wait_task_rescheduled(give_up)
        return reply

    def post(
        self,
        address: Address,
        message: Message[R],
        done: Callable[[Result], None],
        *,
        principal: Any = None,
        idempotency: Idempotency | None = None,
        deadline: float = math.inf,
        on_accepted: Callable[[], None] | None = None,
    ) -> Ticket:
        """Send a message as `ask` does, without a task; call ``done`` with the result.

        ``done`` is called once, in trio's thread, after this method returned, when all that the reply could
        have seen is on disk. It is never called after `Ticket.cancel`. Its exceptions are logged.

        Args:
            address: The actor.
            message: The request. Its `Message.precheck`, if any, is sent first.
            done: Called with an `outcome.Value` of the reply or an `outcome.Error` of what `ask` raises.
            principal: As in `ask`.
            idempotency: As in `ask`.
            deadline: On trio's clock. A message not begun by then fails with `DeadlineExceededError` at its
                turn; cancel it to end it sooner.
            on_accepted: Called once the message is in the mailbox; after a precheck that is after this method
                returned.

        Raises:
            OverloadedError, ActorQuarantinedError, UnknownKindError, RuntimeClosedError: it, or its precheck,
                was not accepted; ``done`` is not called.
        """
        envelope = Envelope(message, principal, None, deadline, idempotency)
        return self._callbacks.send(address, envelope, done, on_accepted)

    def tell(self, address: Address, message: Message[Any], *, principal: Any = None) -> None:
        """Put a message into an actor's mailbox without waiting for a reply.

        Unlike with `Context.tell` it is lost if the process dies before it is handled.

        Raises:
            OverloadedError, ActorQuarantinedError, UnknownKindError, RuntimeClosedError: it was not accepted.
            TypeError: the message has a precheck.
        """
        check_tellable(message)
        self._kernel.deliver(address, Envelope(message, principal, one_way=True))

    async def query(self, query: Procedure[R], *, principal: Any = None) -> R:
        """Run a procedure and return its reply, once what it read is on disk."""

    def subscriber(self, window: float = WINDOW_SECONDS) -> Subscriber:
        """Return a subscriber without topics, a context manager.

        The first change of a quiet topic is delivered at once. Changes within ``window`` seconds after that
        become one, delivered at its end.

        Raises:
            RuntimeClosedError: the runtime is closed.
        """

    def apply_settings(self) -> AbstractContextManager[None]:
        """Return a block in which `current_settings` are those of this store.

        For code on behalf of the store outside of its actors and queries.
        """

    def derive(self, purpose: str) -> bytes:
        """Return the store's key for a purpose: 32 bytes, the same in each process.

        They derive from the secret beside the store, and are in no store or backup.

        Raises:
            StoreError: the runtime was opened without a secret, or no owner has been reached yet.
        """

    def run_ready(self) -> None:
        """Give ready actors their turns now, before the next pass of the event loop.

        For a program that has posted everything and would only wait: its callbacks come a pass earlier. It
        takes at most one slice, and must not be called from a handler or a callback.
        """

    def statistics(self) -> RuntimeStatistics:
        """Return the statistics of all parts."""

    def readmit(self, address: Address) -> bool:
        """Readmit an actor from quarantine; return whether it was there."""

    async def backup(self, destination: Path) -> BackupInfo:
        """Write a copy of the store to a new file while the runtime goes on.

        Raises:
            StoreError: the destination exists or cannot be written.
        """

    async def verify(self) -> VerifyReport:
        """Check the structure and every record, on a copy, in a process of its own.

        Raises:
            StoreDamagedError: with the damage and the remedy.
        """

    @property
    def is_sound(self) -> bool:
        """Whether every commit so far is on disk, or was refused for lack of space."""
