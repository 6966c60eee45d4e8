"""What stands at `/` where the console lies below a secret path: how to open it."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from greenroom.transports.auth.caller import Caller
from greenroom.transports.base.errors import HttpRefusedError
from greenroom.transports.console import static_files
from greenroom.transports.console.endpoint import plain_page, refusal_page
from greenroom.transports.http.asgi_exchange import Exchange
from greenroom.transports.http.responses import Response
from greenroom.transports.rest.reading import check_method
from greenroom.transports.rest.safe_headers import NOT_KEPT, SAFE

_PATH: Final = "/"


class FrontPage:
    """Answers at `/`, to everybody the same."""

    def serves(self, path: str) -> bool:
        """Return whether it answers at a path."""
        return path == _PATH or path.startswith(static_files.PREFIX)

    def refused(self, error: HttpRefusedError) -> Response:
        """Return the page that says why something is refused."""
        return refusal_page(_PATH, error)

    def stop(self) -> None:
        """Do nothing: it is answered whole."""

    def fail_open_requests(self) -> None:
        """Do nothing, likewise."""

    async def serve(self, exchange: Exchange, _caller: Caller) -> None:
        """Answer one request, see `http.endpoint.Endpoint`."""
        head = exchange.head
        exchange.extra = [*exchange.extra, *SAFE]
        check_method(head, "GET")
        await exchange.discard()
        if head.path != _PATH:
            await exchange.reply(static_files.static_file(head))
            return
        exchange.extra = [*exchange.extra, NOT_KEPT]
        await exchange.reply(plain_page("how_to_open.html", _PATH, "Greenroom"))
