"""How messages lie on a stream of bytes: as lines, in WebSocket frames, in HTTP exchanges. No I/O here.

The client must cost little beside the server that it measures, so messages go in and out as
the bytes they are. `h11` and `wsproto` do what is around them.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import h11
import msgspec
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Ping,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)
from wsproto.utilities import RemoteProtocolError

from bench.harness import check

SUBPROTOCOL = "mcp"
NOT_FOR_JSON = 400  # from this status on, a body may be anything

GIBBERISH = (h11.RemoteProtocolError, RemoteProtocolError)
"""What decoding raises for bytes that are not of the protocol."""


class Kind(NamedTuple):
    """What a message is, for transports that say so beside it.

    Attributes:
        method: Its method.
        name: The tool or URI that it is about; empty if there is none.
    """

    method: str
    name: str = ""


class Wire(Protocol):
    """One connection's bytes, from the client's side."""

    @property
    def ready(self) -> bool:
        """Whether a message may be sent now."""

    def opening(self) -> bytes:
        """Return what to send first on a new connection."""

    def encode(self, kind: Kind, body: bytes) -> bytes:
        """Return what to send for a message."""

    def decode(self, data: bytes) -> list[bytes]:
        """Return the messages that are whole with these bytes."""

    def owed(self) -> bytes:
        """Return, once, what the received bytes want as an answer, below any message."""

    def renew(self) -> bool:
        """Begin anew, the connection having ended; return False where that was the end."""


class Lines:
    """A message a line, as on pipes."""

    ready = True

    def __init__(self) -> None:
        self._rest = b""

    def opening(self) -> bytes:
        """Return nothing."""
        return b""

    def encode(self, kind: Kind, body: bytes) -> bytes:  # noqa: ARG002  the line says it itself
        """Return the line."""
        return body + b"\n"

    def decode(self, data: bytes) -> list[bytes]:
        """Return the lines that are whole with these bytes."""
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        return lines

    def owed(self) -> bytes:
        """Return nothing."""
        return b""

    def renew(self) -> bool:
        """Return that the end was the end."""
        return False


class WebSocketWire:
    """A message a WebSocket message."""

    def __init__(self, host: str, path: str) -> None:
        self._protocol = WSConnection(ConnectionType.CLIENT)
        self._request = Request(host=host, target=path, subprotocols=[SUBPROTOCOL])
        self._owed = b""
        self._parts: list[bytes] = []
        self._refusal = ""
        self.ready = False

    def opening(self) -> bytes:
        """Return the handshake."""
        return self._protocol.send(self._request)

    def encode(self, kind: Kind, body: bytes) -> bytes:  # noqa: ARG002  the message says it itself
        """Return the frame."""
        return self._protocol.send(TextMessage(body.decode()))

    def decode(self, data: bytes) -> list[bytes]:
        """Return the messages that are whole with these bytes.

        Raises:
            WrongAnswerError: the server refused the connection.
        """
        self._protocol.receive_data(data)
        messages = []
        for event in self._protocol.events():
            if isinstance(event, TextMessage | BytesMessage):
                part = event.data.encode() if isinstance(event, TextMessage) else bytes(event.data)
                if event.message_finished:
                    messages.append(b"".join([*self._parts, part]))
                    self._parts.clear()
                else:
                    self._parts.append(part)
            elif isinstance(event, AcceptConnection):
                self.ready = True
            elif isinstance(event, Ping | CloseConnection):
                self._owed += self._protocol.send(event.response())
            elif isinstance(event, RejectConnection):
                self._refusal = f"HTTP {event.status_code}"
                check(event.has_body, self._refusal)
            elif isinstance(event, RejectData):
                self._refusal += f" {bytes(event.data)!r}"
                check(not event.body_finished, self._refusal)
        return messages

    def owed(self) -> bytes:
        """Return, once, the pongs and the answer to a close."""
        owed, self._owed = self._owed, b""
        return owed

    def renew(self) -> bool:
        """Return that the end was the end."""
        return False


class HttpWire:
    """A POST for each message, one after another on a connection that is kept."""

    def __init__(self, host: str, path: str, *, modern: bool, version: str) -> None:
        self._protocol = h11.Connection(h11.CLIENT)
        self._path = path
        self._modern = modern
        self._version = ("mcp-protocol-version", version)
        self._headers = [
            ("host", host),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ]
        self._status = 0
        self._events = False
        self._body = b""
        self._open = False
        self.ready = True

    def opening(self) -> bytes:
        """Return nothing."""
        return b""

    def encode(self, kind: Kind, body: bytes) -> bytes:
        """Return the request. There is no next one before its answer is over."""
        headers = [*self._headers, ("content-length", str(len(body)))]
        if kind.method != "initialize":  # which is where the version is agreed on
            headers.append(self._version)
        if self._modern:
            headers.append(("mcp-method", kind.method))
            if kind.name:
                headers.append(("mcp-name", kind.name))
        self.ready, self._open = False, True
        send = self._protocol.send
        head = send(h11.Request(method="POST", target=self._path, headers=headers))
        data, end = send(h11.Data(data=body)), send(h11.EndOfMessage())
        return (head or b"") + (data or b"") + (end or b"")

    def decode(self, data: bytes) -> list[bytes]:
        """Return the messages that are whole with these bytes.

        An HTTP error that holds none is turned into an error of JSON-RPC without an id.
        """
        self._protocol.receive_data(data)
        messages: list[bytes] = []
        while True:
            event = self._protocol.next_event()
            if isinstance(event, h11.Response):
                self._begin(event)
            elif isinstance(event, h11.Data):
                self._body += event.data
                if self._events:
                    messages += self._told()
            elif isinstance(event, h11.EndOfMessage):
                messages += self._ended()
            else:
                return messages

    def owed(self) -> bytes:
        """Return nothing."""
        return b""

    def renew(self) -> bool:
        """Begin anew unless an exchange was cut off: servers end connections that were used for long."""
        self._protocol = h11.Connection(h11.CLIENT)
        self.ready = not self._open
        return self.ready

    def _begin(self, response: h11.Response) -> None:
        self._status, self._body, self._events = response.status_code, b"", False
        for name, value in response.headers:
            if name == b"content-type":
                self._events = value.startswith(b"text/event-stream")
            elif name == b"mcp-session-id":
                self._headers = [each for each in self._headers if each[0] != "mcp-session-id"]
                self._headers.append(("mcp-session-id", value.decode()))

    def _told(self) -> list[bytes]:
        """Return the data of the stream's events that are whole; events without data are for resuming."""
        *events, self._body = self._body.replace(b"\r\n", b"\n").split(b"\n\n")
        lines = [[line for line in event.split(b"\n") if line.startswith(b"data:")] for event in events]
        data = [b"\n".join(line[5:].removeprefix(b" ") for line in each) for each in lines]
        return [each for each in data if each]

    def _ended(self) -> list[bytes]:
        self._open = False
        if self._protocol.their_state is h11.DONE:
            self._protocol.start_next_cycle()
            self.ready = True
        if self._status >= NOT_FOR_JSON and b'"jsonrpc"' not in self._body:
            error = {"code": self._status, "message": f"HTTP {self._status} {self._body[:200]!r}"}
            return [msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": error})]
        return [self._body] if self._body and not self._events else []
