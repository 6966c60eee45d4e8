"""An MCP client that costs next to nothing, so that the server is what is measured."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Literal, NamedTuple, get_args

import msgspec

from bench.channels import Channel, spawn, to_http, to_process, to_websocket
from bench.harness import WrongAnswerError, check
from bench.servers import GRACE_SECONDS
from bench.wires import Kind

Era = Literal["handshake", "modern"]
ERAS: Final[tuple[Era, ...]] = get_args(Era)
VERSIONS: Final[Mapping[Era, str]] = {"handshake": "2025-11-25", "modern": "2026-07-28"}
PATIENCE = 120.0  # seconds
MOST_SAID = 2_000  # characters
NONE: Final = msgspec.Raw()
_META = "io.modelcontextprotocol/"
_INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


class ToolCall(NamedTuple):
    """A call of a tool, and what its answer must hold."""

    tool: str
    arguments: Mapping[str, Any]
    expected: Mapping[str, Any] = {}


class Text(msgspec.Struct):
    """A block of a tool's answer."""

    text: str = ""


class Result(msgspec.Struct, rename="camel"):
    """As much of a result as must be read to judge it."""

    structured_content: msgspec.Raw = NONE
    is_error: bool = False
    content: list[Text] = []

    def told(self) -> Any:
        """Return what a tool answered: the structured content, or the text as JSON, or the text itself."""
        if self.structured_content is not NONE:
            return msgspec.json.decode(self.structured_content)
        text = "".join(block.text for block in self.content)
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError:
            return text


class Fault(msgspec.Struct):
    """An error of JSON-RPC."""

    code: int
    message: str


class Answer(msgspec.Struct):
    """A message of a server: an answer, unless it has a method."""

    id: int | str | None = None
    result: Result | None = None
    error: Fault | None = None
    method: str | None = None


read_answer: Final[Callable[[bytes], Answer]] = msgspec.json.Decoder(Answer).decode


class Client:
    """One client of one server.

    Attributes:
        channel: Where it speaks.
        pid: The server's process, if it is this client's own.
    """

    def __init__(
        self, channel: Channel, *, era: Era = "handshake", name: str = "bench", pid: int | None = None
    ) -> None:
        self.channel = channel
        self.pid = pid
        self._era = era
        self._about = {"name": name, "version": "1"}
        self._ids = itertools.count(1)
        self._suffix = b""
        if era == "modern":
            meta = {
                f"{_META}protocolVersion": VERSIONS[era],
                f"{_META}clientInfo": self._about,
                f"{_META}clientCapabilities": {},
            }
            self._suffix = b'"_meta":' + msgspec.json.encode(meta)

    def begin(self) -> dict[str, Any]:
        """Do what the era begins with, and return its result."""
        if self._era == "modern":
            return self.ask("server/discover")
        result = self.ask("initialize", self._hello())
        self.channel.post(Kind("notifications/initialized"), _INITIALIZED)
        self.channel.settle(PATIENCE)
        return result

    def introduce(self) -> int:
        """Begin without waiting for the answer; return its id, which is 0 where there is no handshake."""
        if self._era == "modern":
            return 0
        number = self.number()
        self.channel.post(
            Kind("initialize"), self.body(number, "initialize", msgspec.json.encode(self._hello()))
        )
        self.channel.post(Kind("notifications/initialized"), _INITIALIZED)
        return number

    def number(self) -> int:
        """Return the id for another request."""
        return next(self._ids)

    def body(self, number: int, method: str, params: bytes = b"{}") -> bytes:
        """Return a request.

        Args:
            number: Its id.
            method: Its method.
            params: The JSON of its parameters, an object.
        """
        if self._suffix:
            comma = b"," if len(params) > len("{}") else b""
            params = params[:-1] + comma + self._suffix + b"}"
        return b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":%b}' % (number, method.encode(), params)

    def call_body(self, number: int, tool: str, arguments: bytes) -> bytes:
        """Return a tool call; see `body`."""
        return self.body(number, "tools/call", b'{"name":"%b","arguments":%b}' % (tool.encode(), arguments))

    def ask(self, method: str, params: Mapping[str, Any] | None = None, *, name: str = "") -> dict[str, Any]:
        """Return the result of a request while no other is open; what else comes meanwhile is passed over.

        Raises:
            WrongAnswerError: it failed.
        """
        number = self.number()
        body = self.body(number, method, msgspec.json.encode(params or {}))
        self.channel.post(Kind(method, name), body)
        while True:
            for message in self.channel.wait(PATIENCE):
                answer = msgspec.json.decode(message)
                if "method" in answer:
                    continue
                right = answer.get("id") == number and "result" in answer
                check(right, f"{name or method} was answered with {answer}")
                result: dict[str, Any] = answer["result"]
                return result

    def call(self, call: ToolCall) -> dict[str, Any]:
        """Return what a tool answers, checked against what is expected."""
        params = {"name": call.tool, "arguments": call.arguments}
        result = self.ask("tools/call", params, name=call.tool)
        told: dict[str, Any] = result.get("structuredContent") or {}
        right = all(told.get(name) == value for name, value in call.expected.items())
        right = right and not result.get("isError")
        check(right, f"{call.tool} answered {result}, without {call.expected}")
        return told

    def close(self) -> None:
        """Hang up."""
        self.channel.close()

    def _hello(self) -> dict[str, Any]:
        return {"protocolVersion": VERSIONS["handshake"], "capabilities": {}, "clientInfo": self._about}


@contextmanager
def serving(command: Sequence[str]) -> Iterator[Client]:
    """Start a server on pipes, do the handshake, and end the server afterwards."""
    with started(command) as client:
        client.begin()
        yield client


@contextmanager
def started(
    command: Sequence[str], *, era: Era = "handshake", name: str = "bench", ends_well: bool = True
) -> Iterator[Client]:
    """Start a server on pipes, and end it afterwards by ending its input.

    Args:
        command: The server's.
        era: The protocol's.
        name: The client's.
        ends_well: Whether the server must then end by itself, with code 0.
    """
    with tempfile.TemporaryFile() as said:
        process = spawn(command, errors=said.fileno())
        client = Client(to_process(process), era=era, name=name, pid=process.pid)
        try:
            yield client
            client.close()
            if ends_well:
                code = process.wait(GRACE_SECONDS)
                check(code == 0, f"the server ended with code {code}")
        except WrongAnswerError as error:
            said.seek(0)
            words = said.read().decode(errors="replace").strip()
            if not words or not client.channel.ended:
                raise
            raise WrongAnswerError(f"{error}; the server said: {words[-MOST_SAID:]}") from error
        finally:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


@contextmanager
def connected(url: str, *, era: Era = "handshake", name: str = "bench") -> Iterator[Client]:
    """Connect to a server, do the handshake, and hang up afterwards."""
    client = Client(channel_to(url, era), era=era, name=name)
    try:
        client.begin()
        yield client
    finally:
        client.close()


def channel_to(url: str, era: Era = "handshake") -> Channel:
    """Connect to a ``ws://`` or ``http://`` URL.

    Raises:
        ValueError: the URL is neither.
        OSError: no server was reached.
    """
    if url.startswith("http:"):
        return to_http(url, modern=era == "modern", version=VERSIONS[era])
    return to_websocket(url)
