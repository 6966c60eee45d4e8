"""What answers at paths beside MCP's: the interface of it, and who comes in there."""

from __future__ import annotations

from typing import Protocol

import msgspec

from greenroom.transports.auth.authenticator import Authenticator
from greenroom.transports.auth.caller import Caller
from greenroom.transports.base.errors import HttpRefusedError
from greenroom.transports.sockets.http.asgi_exchange import Exchange
from greenroom.transports.sockets.http.responses import Response


class Endpoint(Protocol):
    """Answers at some paths, to hosts and origins that may ask."""

    def serves(self, path: str) -> bool:
        """Return whether it answers at a path, be it with a refusal."""

    async def serve(self, exchange: Exchange, caller: Caller) -> None:
        """Answer one request.

        Args:
            exchange: The request.
            caller: Whom its headers say it is; it has shown nothing yet.

        Raises:
            HttpRefusedError: it is not answered.
            ClientGoneError: the client hung up.
            StoreFailedError: the store failed for good; nothing more may be answered.
        """

    def refused(self, error: HttpRefusedError) -> Response:
        """Return the answer that a refusal stands for."""

    def stop(self) -> None:
        """End what would not end by itself: the server is stopping."""

    def fail_open_requests(self) -> None:
        """Answer what is still under way: the time to stop is over."""


async def authenticated(exchange: Exchange, caller: Caller, authenticator: Authenticator) -> Caller:
    """Return the caller of a request with what it shows in its head.

    Raises:
        HttpRefusedError: it is not let in.
    """
    caller = msgspec.structs.replace(caller, address=exchange.address)
    caller = await authenticator.authenticate(caller, exchange.head.lines)
    admit(exchange, caller, authenticator)
    return caller


def admit(exchange: Exchange, caller: Caller, authenticator: Authenticator) -> None:
    """Count a request, and the bytes of its body, as an authenticated caller's.

    Raises:
        HttpRefusedError: there is no place for it.
    """
    # Over one connection of a proxy several come, by several keys.
    credential = caller.credential if caller.address == exchange.address else None
    exchange.accept(None if credential is None else credential.holder)
    exchange.held = authenticator.body_budget(caller)
