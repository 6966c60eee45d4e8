"""The interface of endpoints beside MCP's, and the authentication of their callers."""

from __future__ import annotations

from typing import Protocol

import msgspec

from greenroom.transports.auth.authenticator import Authenticator
from greenroom.transports.auth.caller import Caller
from greenroom.transports.base.errors import HttpRefusedError
from greenroom.transports.sockets.http.asgi_exchange import Exchange
from greenroom.transports.sockets.http.responses import Response


class Endpoint(Protocol):
    """Serves some paths, for allowed hosts and origins."""

    def serves(self, path: str) -> bool:
        """Return whether it serves a path, even with a refusal."""

    async def serve(self, exchange: Exchange, caller: Caller) -> None:
        """Answer one request.

        The caller is what the headers claim, not authenticated yet.

        Raises:
            HttpRefusedError: It is refused.
            ClientGoneError: The client disconnected.
            StoreFailedError: The store failed for good; no further answer is allowed.
        """

    def refused(self, error: HttpRefusedError) -> Response:
        """Return the response for a refusal."""

    def stop(self) -> None:
        """End what would not end by itself, because the server is stopping."""

    def fail_open_requests(self) -> None:
        """Answer the open requests, because the time to stop is over."""


async def authenticated(exchange: Exchange, caller: Caller, authenticator: Authenticator) -> Caller:
    """Authenticate the caller of a request, and return it with its credential."""
    caller = msgspec.structs.replace(caller, address=exchange.address)
    caller = await authenticator.authenticate(caller, exchange.head.lines)
    admit(exchange, caller, authenticator)
    return caller


def admit(exchange: Exchange, caller: Caller, authenticator: Authenticator) -> None:
    """Count a request, and the bytes of its body, for an authenticated caller."""
    # One connection of a proxy may carry several callers with several keys.
    credential = caller.credential if caller.address == exchange.address else None
    exchange.accept(None if credential is None else credential.holder)
    exchange.held = authenticator.body_budget(caller)
