"""Procedures: requests that one process runs, often with several actors."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar

import msgspec

from greenroom.runtime.actor.message import Message, Slices
from greenroom.runtime.actor.services import RuntimeServices
from greenroom.runtime.base.address import Address

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class RuntimePort(Protocol):
    """The methods of a `Runtime` that procedures use."""

    async def ask(self, address: Address, message: Message[R], *, principal: Any = None) -> R:
        """Send a message and return its reply."""
        ...

    def tell(self, address: Address, message: Message[Any], *, principal: Any = None) -> None:
        """Put a message into an actor's mailbox without waiting for a reply."""

    async def query(self, query: Procedure[R], *, principal: Any = None) -> R:
        """Run a procedure and return its reply."""
        ...


class ProcedureContext:
    """The context of a procedure: requests to actors in the name of its principal.

    Attributes:
        principal: The caller's identity.
        now: The wall clock in microseconds since 1970 UTC.
        sidecar: The service beside the actors (`open_runtime`); None until it runs.
    """

    def __init__(self, runtime: RuntimePort, services: RuntimeServices, principal: Any, now: int) -> None:
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

        For effects that may be lost or happen twice, because a procedure may run again.
        """
        self._runtime.tell(address, message, principal=self.principal)

    async def query(self, query: Procedure[R]) -> R:
        """Run a procedure in the caller's name, as `RuntimeClient.query`."""
        return await self._runtime.query(query, principal=self.principal)


class Procedure(msgspec.Struct, Generic[R_co], frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request of the process: subclass ``Procedure[int]`` and define `run`.

    With ``snapshot`` it reads committed rows of the shared indexes. It decides itself which rows the caller
    may see.

    With ``owner`` it runs in the process that owns the folder, and may await several actors. After a takeover
    it runs again from the start, so its requests may happen twice and must do no harm then: a search, for
    instance, counts its results as used twice. To write to several actors exactly once, let one of them tell
    the others.

    With ``here`` the calling process calls `run`. It may end at any moment, with its process or by a
    cancellation, so it must be safe to stop and to begin again.

    Attributes:
        runs: Where it runs.
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
