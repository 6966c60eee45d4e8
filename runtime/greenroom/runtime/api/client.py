"""The interface of a runtime for programs, in any process on the folder; procedures.

A procedure is a request that one process runs, often with several actors.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar

import msgspec
import trio

from greenroom.runtime.actor.message import Message, Slices, check_tellable
from greenroom.runtime.actor.services import RuntimeServices
from greenroom.runtime.base.address import Address
from greenroom.runtime.base.statistics import RuntimeStatistics
from greenroom.runtime.kernel.callbacks import CallbackQueue, MessageSink, Ticket
from greenroom.runtime.kernel.mailbox import Envelope, Idempotency, Result
from greenroom.runtime.kernel.pubsub import WINDOW_SECONDS, Subscriber
from greenroom.runtime.maintenance.backup import BackupInfo, VerifyReport

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Procedure(msgspec.Struct, Generic[R_co], frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request to the process: subclass ``Procedure[int]`` and define `run`.

    With ``snapshot`` it reads committed rows of the shared indexes, and decides itself which of them the
    caller may see.

    With ``owner`` it runs in the process that owns the folder, and may await several actors. After a takeover
    it runs again from the start, so handling its requests twice must do no harm. To write to several actors
    exactly once, let one of them tell the others.

    With ``here`` the calling process calls `run`, which may be stopped at any moment and begun again.

    Attributes:
        runs: Where the procedure runs.
        flushes_journals: Whether buffered journal rows are written first; not for ``here``.
    """

    runs: ClassVar[Literal["snapshot", "owner", "here"]] = "owner"
    flushes_journals: ClassVar[bool] = False

    def run(self, context: Any) -> R_co | Slices[R_co] | Awaitable[R_co]:
        """Return the reply.

        Args:
            context: With ``snapshot`` an `IndexReader`; then `run` may be a generator that yields wherever it
                may be paused. Otherwise `run` is async: with ``owner`` a `ProcedureContext`, with ``here``
                the context of the calling client.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define run()")


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
        """Send a message; return its reply once all that the reply reflects is on disk.

        The caller's cancel scope sets the deadline. A cancelled request that was not begun leaves the
        mailbox; one that was begun commits whole or not at all.

        Args:
            address: The actor.
            message: The request. Its `Message.precheck`, if any, is sent first.
            principal: The caller's identity, for `Context.principal`.
            idempotency: The idempotency key: a repeat within 24 hours gets the first reply.
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

        ``done`` is called once, in trio's thread, after this method has returned and all that the reply could
        have seen is on disk; never after `Ticket.cancel`. Its exceptions are logged.

        Args:
            address: The actor.
            message: The request.
            done: Called with an `outcome.Value` of the reply or an `outcome.Error` of what `ask` raises.
            principal: The caller's identity.
            idempotency: The idempotency key.
            deadline: On trio's clock. A message not begun by then fails with `DeadlineExceededError` at its
                turn; cancel it to end it sooner.
            on_accepted: As in `ask`; after a precheck, once this method has returned.

        Raises:
            OverloadedError, ActorQuarantinedError, UnknownKindError, RuntimeClosedError: not accepted;
                ``done`` is not called.
        """
        envelope = Envelope(message, principal, None, deadline, idempotency)
        return self._callbacks.send(address, envelope, done, on_accepted)

    def tell(self, address: Address, message: Message[Any], *, principal: Any = None) -> None:
        """Put a message into an actor's mailbox without waiting for a reply.

        Unlike a message of `Context.tell`, this message is lost if the process dies before it is handled.

        Raises:
            OverloadedError, ActorQuarantinedError, UnknownKindError, RuntimeClosedError: not accepted.
            TypeError: the message has a precheck.
        """
        check_tellable(message)
        self._kernel.deliver(address, Envelope(message, principal, one_way=True))

    async def query(self, query: Procedure[R], *, principal: Any = None) -> R:
        """Run a procedure; return its reply once everything that it read is on disk."""

    def subscriber(self, window: float = WINDOW_SECONDS) -> Subscriber:
        """Return a subscriber without topics, a context manager.

        A quiet topic's first change is delivered at once; changes within ``window`` seconds after it are one.
        """

    def apply_settings(self) -> AbstractContextManager[None]:
        """Return a context manager that sets `current_settings`, for code outside of actors and queries."""

    def derive(self, purpose: str) -> bytes:
        """Return the store's key for a purpose: 32 bytes, the same in each process.

        The key derives from the secret beside the store, and is in no store or backup.

        Raises:
            StoreError: the runtime was opened without a secret, or no owner has been reached yet.
        """

    def run_ready(self) -> None:
        """Give ready actors their turns now, before the next pass of the event loop.

        A program may call it when it has posted everything and would only wait. It takes at most one slice.
        Handlers and callbacks must not call it.
        """

    def statistics(self) -> RuntimeStatistics:
        """Return the statistics of all parts."""

    def readmit(self, address: Address) -> bool:
        """Readmit an actor from quarantine; return whether it was in quarantine."""

    async def backup(self, destination: Path) -> BackupInfo:
        """Write a copy of the store to a new file while actors run; see `backup`."""

    async def verify(self) -> VerifyReport:
        """Check the structure and every record on a copy, in another process; see `verify`."""

    @property
    def is_sound(self) -> bool:
        """Whether every commit so far is on disk, or was refused for lack of space."""


class ProcedureContext:
    """The context of a procedure: it sends requests to actors in the caller's name.

    Attributes:
        now: The wall clock in microseconds since 1970 UTC.
        sidecar: The service beside the actors (`open_runtime`); None until it runs.
    """

    def __init__(self, runtime: RuntimeClient, services: RuntimeServices, principal: Any, now: int) -> None:
        self._runtime = runtime
        self._services = services
        self.principal = principal
        self.now = now
        self.sidecar = services.sidecar

    def append_soon(self, journal: str, value: Any) -> None:
        """Append a row to a journal with a later commit; see `Context.append_soon`."""
        self._services.append_soon(journal, value)

    async def ask(self, address: Address, message: Message[R]) -> R:
        """Send a message in the caller's name and return its reply, as `RuntimeClient.ask`."""
        return await self._runtime.ask(address, message, principal=self.principal)

    def tell(self, address: Address, message: Message[Any]) -> None:
        """Send a message in the caller's name without a reply, as `RuntimeClient.tell`.

        Use this only for effects that may be lost or happen twice, because a procedure may run again.
        """
        self._runtime.tell(address, message, principal=self.principal)

    async def take_former_format(self) -> int:
        """Return the store's former format, once; else 0."""
        return await trio.to_thread.run_sync(self._services.store.writer.take_former_format)

    async def query(self, query: Procedure[R]) -> R:
        """Run a procedure in the caller's name, as `RuntimeClient.query`."""
        return await self._runtime.query(query, principal=self.principal)
