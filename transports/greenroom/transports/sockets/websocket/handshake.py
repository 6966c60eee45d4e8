"""The server's side of a WebSocket handshake, and the check who may connect."""

from __future__ import annotations

from http import HTTPStatus
from typing import NamedTuple

import trio
from wsproto.connection import Connection as Protocol
from wsproto.connection import ConnectionType
from wsproto.events import AcceptConnection, RejectConnection, RejectData, Request
from wsproto.handshake import H11Handshake
from wsproto.utilities import RemoteProtocolError

from greenroom.transports.auth.caller import Caller, caller_of, header_values
from greenroom.transports.auth.origin_check import check_host, check_origin
from greenroom.transports.base.errors import HttpRefusedError

READ_SIZE = 4096
SUBPROTOCOL = "mcp"
PATHS = frozenset({"", "/", "/mcp", "/mcp/"})


class UpgradeRequest(NamedTuple):
    """A client's handshake.

    Attributes:
        headers: The other headers, with names in lower case.
    """

    target: str
    host: str
    subprotocols: list[str]
    headers: list[tuple[bytes, bytes]]


def check_upgrade(
    request: UpgradeRequest, allowed_origins: frozenset[str], *, any_host: bool = False
) -> Caller:
    """Return the caller of an allowed upgrade."""
    path, _, query = request.target.partition("?")
    if not any_host:
        check_host(request.host, HTTPStatus.FORBIDDEN)
    for value in header_values(request.headers, b"origin"):
        check_origin(value, allowed_origins)
    if path not in PATHS:
        raise HttpRefusedError(
            HTTPStatus.NOT_FOUND, f"there is nothing at {path[:100]!r}; connect to / or /mcp"
        )
    if SUBPROTOCOL not in request.subprotocols:
        offered = ", ".join(request.subprotocols)[:100] or "none"
        sentence = f"the WebSocket subprotocol must be {SUBPROTOCOL!r}; offered was {offered}"
        raise HttpRefusedError(HTTPStatus.BAD_REQUEST, sentence)
    return caller_of(query, request.headers)


class Handshake:
    """One client's handshake, from its first byte to the answer.

    Args:
        stream: Where it comes from.
        began: Its first bytes, if they were read already.
    """

    def __init__(self, stream: trio.abc.Stream, began: bytes = b"") -> None:
        self._stream = stream
        self._began = began
        self._core = H11Handshake(ConnectionType.SERVER)
        self.has_begun = False

    async def receive_request(self) -> UpgradeRequest | None:
        """Return the client's request; None if it disconnected before.

        Raises:
            HttpRefusedError: The request is no WebSocket handshake.
            trio.BrokenResourceError: The client disconnected, or does not speak TLS where it must.
        """
        while data := self._began or await self._stream.receive_some(READ_SIZE):
            self._began = b""
            self.has_begun = True
            try:
                self._core.receive_data(bytes(data))
                for event in self._core.events():
                    if isinstance(event, Request):
                        return UpgradeRequest(
                            event.target, event.host, event.subprotocols, list(event.extra_headers)
                        )
            except RemoteProtocolError as error:
                hint = error.event_hint
                status = hint.status_code if isinstance(hint, RejectConnection) else HTTPStatus.BAD_REQUEST
                wanted = {"Sec-WebSocket-Version": "13"} if status == HTTPStatus.UPGRADE_REQUIRED else {}
                sentence = f"this address speaks WebSocket: {error}"
                raise HttpRefusedError(HTTPStatus(status), sentence, **wanted) from None
            except ValueError:  # wsproto on a header that is not ASCII, or no host name
                raise HttpRefusedError(HTTPStatus.BAD_REQUEST, "a header cannot be read") from None
        return None

    async def refuse(self, refusal: HttpRefusedError) -> None:
        """Answer with a refusal."""
        body = f"{refusal}\n".encode()
        headers = {
            "Content-Type": "text/plain; charset=utf-8",
            "Content-Length": str(len(body)),
            "Connection": "close",
            **refusal.headers,
        }
        answer = RejectConnection(
            status_code=refusal.status,
            headers=[(name.encode(), value.encode()) for name, value in headers.items()],
            has_body=True,
        )
        await self._stream.send_all(self._core.send(answer) + self._core.send(RejectData(data=body)))

    async def accept(self) -> Protocol:
        """Accept the client; return the protocol's state, the only remainder of the handshake."""
        await self._stream.send_all(self._core.send(AcceptConnection(subprotocol=SUBPROTOCOL)))
        protocol = self._core.connection
        assert protocol is not None, "it was accepted"
        return protocol
