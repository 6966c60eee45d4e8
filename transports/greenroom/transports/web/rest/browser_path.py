"""Endpoints below a secret path, see `rest.browser_path`."""

from __future__ import annotations

import hmac
from http import HTTPStatus

from greenroom.transports.auth.caller import Caller
from greenroom.transports.base.errors import HttpRefusedError
from greenroom.transports.sockets.http.asgi_exchange import Exchange
from greenroom.transports.sockets.http.endpoint import Endpoint
from greenroom.transports.sockets.http.responses import Response
from greenroom.transports.web.rest.safe_headers import NOT_KEPT, SAFE


class MountedEndpoints:
    """Answers below a secret path as other endpoints do at `/`.

    Args:
        path: The path.
        endpoints: What answers below it; the last one says why something is refused.
    """

    def __init__(self, path: str, *endpoints: Endpoint) -> None:
        self._path = path.encode()
        self._endpoints = endpoints

    def __repr__(self) -> str:
        return "<MountedEndpoints>"

    def serves(self, path: str) -> bool:
        """Return whether a path is this one or below it, compared in constant time."""
        return hmac.compare_digest(_first_part(path).encode(errors="replace"), self._path)

    def refused(self, error: HttpRefusedError) -> Response:
        """Return the answer for a refusal that comes before any endpoint."""
        response = self._endpoints[-1].refused(error)
        return response._replace(headers=[*response.headers, NOT_KEPT, *SAFE])

    def stop(self) -> None:
        """End what would not end by itself."""
        for endpoint in self._endpoints:
            endpoint.stop()

    def fail_open_requests(self) -> None:
        """Answer what is still under way."""
        for endpoint in self._endpoints:
            endpoint.fail_open_requests()

    async def serve(self, exchange: Exchange, caller: Caller) -> None:
        """Answer one request, see `http.endpoint.Endpoint`."""
        head = exchange.head
        first = _first_part(head.path)
        head.path = head.path.removeprefix(first)
        if not head.path:
            exchange.extra = [*exchange.extra, NOT_KEPT, *SAFE]
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
