"""The interface of a runtime for programs, whether its actors are in this process or in another."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, TypeVar

import trio

from greenroom.runtime.actor.message import Message, check_told
from greenroom.runtime.actor.query import Query
from greenroom.runtime.api.procedure import Procedure
from greenroom.runtime.base.address import Address
from greenroom.runtime.base.statistics import RuntimeStatistics
from greenroom.runtime.kernel.callbacks import MessageSink, Ticket
from greenroom.runtime.kernel.mailbox import Envelope, Idempotency, Result
from greenroom.runtime.kernel.pubsub import WINDOW_SECONDS, Subscriber
from greenroom.runtime.maintenance.backup import BackupInfo, VerifyReport

R = TypeVar("R")


class RuntimeClient(Protocol):
    """A client of actors: a `Runtime` of its own, or one that it shares with other processes."""

    _kernel: MessageSink
    _ended: bool

    async def ask(
        self,
        address: Address,
        message: Message[R],
        *,
        principal: Any = None,
        idempotency: Idempotency | None = None,
        on_accepted: Callable[[], None] | None = None,
    ) -> R:
        """Send a message and return its reply, once all that the reply could have seen is on disk.

        The deadline is that of the caller's cancel scope. A cancelled ask that is not yet begun
        leaves the mailbox; one that is begun commits whole or not at all.

        Args:
            address: The actor.
            message: What to ask. If it has a `Message.precheck`, that is asked first.
            principal: Who asks; the handler finds it in `Context.principal`.
            idempotency: Given, a repeat within 24 hours gets the first answer.
            on_accepted: Called once the message is in the mailbox, in the order of acceptance.

        Raises:
            Refusal: the handler's own "no".
            ActorFailedError, ActorQuarantinedError, OverloadedError, DeadlineExceededError, StorageFullError,
            IdempotencyConflictError, UnknownKindError, RuntimeClosedError: see each.
        """
        question = message.precheck()
        answer = None if question is None else await self.ask(*question, principal=principal)
        envelope = Envelope(
            message,
            principal,
            answer,
            trio.current_effective_deadline(),
            idempotency,
        )
        self._check_open()
        self._kernel.deliver(address, envelope)
        if on_accepted is not None:
            on_accepted()
        envelope.asker = trio.lowlevel.current_task()

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
        """Send a message as `ask` does, without a task: ``done`` is called with what `ask` would end with.

        It is called once, in trio's thread, after this method returned, when all that the reply could
        have seen is on disk; or never, when what is returned is abandoned before. An exception of it is
        logged and hurts nobody else.

        Args:
            address: The actor.
            message: What to ask. If it has a `Message.precheck`, that is asked first.
            done: Called with an `outcome.Value` of the reply or an `outcome.Error` of what `ask` raises.
            principal: As in `ask`.
            idempotency: As in `ask`.
            deadline: On trio's clock. A message not begun by then is answered with
                `DeadlineExceededError` at its turn; who does not want to wait for that abandons it.
            on_accepted: Called once the message is in the mailbox, which is after this method returned
                when there was a question to ask.

        Raises:
            OverloadedError, ActorQuarantinedError, UnknownKindError, RuntimeClosedError: it, or its question,
                was not accepted, and ``done`` is not called.
        """
        if self._ended:
            self._check_open()
        envelope = Envelope(message, principal, None, deadline, idempotency)
        return self._kernel.callbacks.send(address, envelope, done, on_accepted)

    def tell(self, address: Address, message: Message[Any], *, principal: Any = None) -> None:
        """Put a message into an actor's mailbox and wait for nothing.

        Unlike `Context.tell` it is gone if the process dies before it is handled.

        Raises:
            OverloadedError, ActorQuarantinedError, UnknownKindError, RuntimeClosedError: it was not accepted.
            TypeError: the message has a question.
        """
        self._check_open()
        check_told(message)
        self._kernel.deliver(address, Envelope(message, principal=principal, told=True))

    async def query(self, query: Query[R] | Procedure[R], *, principal: Any = None) -> R:
        """Run a query or a procedure and return its answer, once what it saw is on disk."""

    def subscriber(self, window: float = WINDOW_SECONDS) -> Subscriber:
        """Return a subscriber without topics, a context manager.

        The first change of a quiet topic is told at once; those within ``window`` seconds after a
        telling become one, told at its end.

        Raises:
            RuntimeClosedError: the runtime is closed.
        """

    def apply_settings(self) -> AbstractContextManager[None]:
        """Return a block within which `current_settings` are what this store was opened with here.

        For code that works on behalf of the store outside of its actors and queries.
        """

    def derive(self, purpose: str) -> bytes:
        """Return the store's key for a purpose: 32 bytes, the same in every process on the folder.

        They follow from the secret that is kept beside the store, and are in no store and no backup.

        Raises:
            StoreError: the runtime was opened without a secret, or no owner has been reached yet.
        """

    def run_ready(self) -> None:
        """Give actors that have something to do their turns now, not when the event loop comes round to it.

        For a program that has posted all it has and would only wait: its callbacks come a pass earlier.
        It takes no longer than one slice, and must not be called from a handler or a callback.
        """

    def statistics(self) -> RuntimeStatistics:
        """Return what every part says of itself."""

    def readmit(self, address: Address) -> bool:
        """Let an actor that was set aside in again; return whether it was."""

    async def backup(self, destination: Path) -> BackupInfo:
        """Write a copy of the store, as of now, to a new file while the runtime goes on.

        Raises:
            StoreError: the destination exists or cannot be written.
        """

    async def verify(self) -> VerifyReport:
        """Check the structure and every record, on a copy, in a process of its own.

        Raises:
            StoreDamagedError: naming what is wrong and the remedy.
        """

    @property
    def is_sound(self) -> bool:
        """Whether every commit so far ended as a commit can: on disk, or refused for lack of space."""

    def _check_open(self) -> None:
        """Raise `RuntimeClosedError` or `StoreFailedError` when nothing is taken any more."""
