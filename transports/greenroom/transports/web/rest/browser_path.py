"""The secret path of the store for browsers without TLS, and the endpoints below it.

A browser sends a cookie to every port of its host, but only below the cookie's path. A program on another
port does not know the path, so it gets no cookie.

Invariants:

- No log, record or refusal repeats the path of a request, so none of them contains the secret.
- The path is derived from the store's secret, and a restart keeps it. No store or backup contains the path.
- Any other path gets the same refusal in the same time.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from http import HTTPStatus
from typing import Final

from greenroom.runtime import RuntimeClient
from greenroom.transports.auth.caller import Caller
from greenroom.transports.base.errors import HttpRefusedError
from greenroom.transports.sockets.http.asgi_exchange import Exchange
from greenroom.transports.sockets.http.endpoint import Endpoint
from greenroom.transports.sockets.http.responses import Response
from greenroom.transports.web.rest.browser_checks import NO_STORE, SAFE

_PURPOSE: Final = "browsers/path"
_BYTES: Final = 18


def browser_path(runtime: RuntimeClient) -> str:
    """Return the secret path of a store: a slash and 24 characters."""
    return "/" + urlsafe_b64encode(runtime.derive(_PURPOSE)[:_BYTES]).decode()


class MountedEndpoints:
    """Serves endpoints below the secret path; the last one renders refusals."""

    def __init__(self, path: str, *endpoints: Endpoint) -> None:
        self._path = path.encode()
        self._endpoints = endpoints

    def __repr__(self) -> str:
        return "<MountedEndpoints>"

    def serves(self, path: str) -> bool:
        """Return whether a path is the secret path or below it; compare in constant time."""
        return hmac.compare_digest(_first_part(path).encode(errors="replace"), self._path)

    def refused(self, error: HttpRefusedError) -> Response:
        """Return the response to a refusal that comes before any endpoint."""
        response = self._endpoints[-1].refused(error)
        return response._replace(headers=[*response.headers, NO_STORE, *SAFE])

    def stop(self) -> None:
        """End the streams that would not end by themselves."""
        for endpoint in self._endpoints:
            endpoint.stop()

    def fail_open_requests(self) -> None:
        """Fail the open requests with a response."""
        for endpoint in self._endpoints:
            endpoint.fail_open_requests()

    async def serve(self, exchange: Exchange, caller: Caller) -> None:
        """Answer one request; see `http.endpoint.Endpoint`."""
        head = exchange.head
        first = _first_part(head.path)
        head.path = head.path.removeprefix(first)
        if not head.path:
            exchange.extra = [*exchange.extra, NO_STORE, *SAFE]
            location = (b"location", f".{first}/".encode())
            await exchange.reply(Response(HTTPStatus.SEE_OTHER, [location], b""))
            return
        endpoint = next((each for each in self._endpoints if each.serves(head.path)), None)
        if endpoint is None:
            raise HttpRefusedError(HTTPStatus.NOT_FOUND, "there is nothing at this address")
        try:
            await endpoint.serve(exchange, caller)
        except HttpRefusedError as error:
            exchange.drop()
            await exchange.reply(endpoint.refused(error))


def _first_part(path: str) -> str:
    return "/" + path.removeprefix("/").partition("/")[0]
