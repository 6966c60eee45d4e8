"""The server's side of a WebSocket handshake on a trio stream."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from wsproto.connection import ConnectionType
from wsproto.events import AcceptConnection, RejectConnection, RejectData, Request
from wsproto.handshake import H11Handshake
from wsproto.utilities import RemoteProtocolError

from greenroom.transports.base.errors import HttpRefusedError
from greenroom.transports.websocket.upgrade_check import SUBPROTOCOL, UpgradeRequest

if TYPE_CHECKING:
    import trio
    from wsproto.connection import Connection as Protocol

READ_SIZE = 4096


class Handshake:
    """One client's handshake, from its first byte to an answer.

    Attributes:
        has_begun: Whether anything came.
    """

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream
        self._core = H11Handshake(ConnectionType.SERVER)
        self.has_begun = False

    async def receive_request(self) -> UpgradeRequest | None:
        """Return the client's request; None when it went away before.

        Raises:
            HttpRefusedError: it is no WebSocket handshake.
            trio.BrokenResourceError: the client is gone, or speaks no TLS where it should.
        """
        while data := await self._stream.receive_some(READ_SIZE):
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
            except ValueError:  # wsproto's reading of a header that is no ASCII or no host name
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
        """Accept the client; return the protocol's state, the only thing that stays of the handshake."""
        await self._stream.send_all(self._core.send(AcceptConnection(subprotocol=SUBPROTOCOL)))
        protocol = self._core.connection
        assert protocol is not None, "it was accepted"
        return protocol
