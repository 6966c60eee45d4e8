"""The client of a request, in the form that handlers use; rooms extend it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from hashlib import blake2b
from typing import Any, Protocol, TypeVar

import msgspec

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import scopes
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.base.unicode_forms import compose
from greenroom.runtime import Address, GreenroomError, Idempotency, Message, RuntimeClient

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

ProgressCallback = Callable[[float, float, str], None]
"""Receives the progress of a procedure: the work done, the total, and a sentence."""

PROGRESS_CALLBACK: ContextVar[ProgressCallback | None] = ContextVar("REPORT", default=None)
"""The callback of the current task; a transport sets it if the client requested progress."""


class Client(Protocol):
    """The caller of a request and its way to the actors.

    ``tool`` is the client's program, ``scope`` the scope of its idempotency keys. ``on_export`` gets the
    number of exported bytes.
    """

    runtime: RuntimeClient
    principal: Principal
    tool: str
    scope: str
    on_export: Callable[[int], None]

    async def charge_bytes(self, stored_bytes: int, action: str) -> None:
        """Charge bytes that are stored beyond the request to the client's quota, once per action."""

    def check_scope(self, what: str, scope: str) -> None:
        """Check that the client has a scope that is needed besides the operation's scope."""
        if not scopes.allows(self.principal.scopes, scope):
            raise auth_errors.scope_missing(what, scope)

    def idempotency(self, tool: str, key: str | None, arguments: Any) -> Idempotency | None:
        """Return the idempotency key of a request with these arguments, in the client's scope."""
        if key is None:
            return None
        fingerprint = blake2b(msgspec.json.encode(arguments), digest_size=16).digest()
        return Idempotency(f"{self.scope} {tool}", compose(key), fingerprint)

    async def ask(self, address: Address, message: Message[R], idempotency: Idempotency | None = None) -> R:
        """Send an actor a message as the client, and await the reply."""
        return await self.runtime.ask(address, message, principal=self.principal, idempotency=idempotency)

    def tell(self, address: Address, message: Message[None]) -> None:
        """Send an actor a message without awaiting it; a failure is ignored."""
        with suppress(GreenroomError):  # a tell may be lost anyway
            self.runtime.tell(address, message, principal=self.principal)


def report_progress(done: float, total: float, words: str) -> None:
    """Report the progress of this task's procedure to `PROGRESS_CALLBACK`, if there is one."""
    callback = PROGRESS_CALLBACK.get()
    if callback is not None:
        callback(done, total, words)
