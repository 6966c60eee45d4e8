"""Procedures: several requests that make one answer, carried out where the actors are."""

from __future__ import annotations

from typing import Any, ClassVar, Generic, Protocol, TypeVar

import msgspec

from greenroom.runtime.actor.message import Message
from greenroom.runtime.actor.query import Query
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
        """Put a message into an actor's mailbox and wait for nothing."""

    async def query(self, query: Query[R] | Procedure[R], *, principal: Any = None) -> R:
        """Run a query or a procedure and return its answer."""
        ...


class ProcedureContext:
    """The context of a procedure: requests to actors in the name of its principal.

    Attributes:
        principal: Who asks.
        now: The wall clock in microseconds since 1970 UTC.
        sidecar: What runs beside the actors, as `open_runtime` was told; None until it does.
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
        """Send a message in the name of who asks and return its reply; raises as `RuntimeClient.ask`."""
        return await self._runtime.ask(address, message, principal=self.principal)

    def tell(self, address: Address, message: Message[Any]) -> None:
        """Put a message into an actor's mailbox in the name of who asks, and wait for nothing.

        For what may be lost and may happen twice, since a procedure may be carried out again; raises
        as `RuntimeClient.tell`.
        """
        self._runtime.tell(address, message, principal=self.principal)

    async def query(self, query: Query[R] | Procedure[R]) -> R:
        """Run a query in the name of who asks and return its answer; raises as `RuntimeClient.query`."""
        return await self._runtime.query(query, principal=self.principal)


class Procedure(msgspec.Struct, Generic[R_co], frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Questions to several actors, or one that waits: subclass ``Procedure[int]`` and define `run`.

    It is asked as a `Query` is, and carried out by the process that owns the folder. After a takeover it is
    carried out again, from the start: so what it asks for and tells on the way may happen twice, and must
    do no harm then. A search counts what it finds as used, for instance, and in such a case counts it twice.
    What must be written by several actors exactly once is told by one of them.
    """

    flushes_journals: ClassVar[bool] = False

    async def run(self, context: ProcedureContext) -> R_co:
        """Return the answer."""
        raise NotImplementedError(f"{type(self).__name__} does not define run()")
