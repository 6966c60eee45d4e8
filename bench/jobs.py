"""What servers are asked to do, over and over, and how their answers are judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from bench.client import Client, ToolCall
from bench.harness import check
from bench.wires import Kind

KEYS = 100
NOTE = "remember the milk " * 8


class Job(Protocol):
    """Requests of one kind.

    Attributes:
        kind: Of what kind.
    """

    kind: Kind

    def body(self, client: Client, number: int) -> bytes:
        """Return the request with this id."""

    def judge(self, number: int, told: Any) -> None:
        """Check what the request with this id was answered, after the others before it.

        Raises:
            WrongAnswerError: it is wrong.
        """


class Reads:
    """Reads of values that were stored before, with `prepare`."""

    kind = Kind("tools/call", "get_memory")

    def __init__(self) -> None:
        self._values = [value_of(key) for key in range(KEYS)]

    def prepare(self, client: Client) -> None:
        """Store what is read."""
        for key, value in enumerate(self._values):
            client.call(ToolCall("set_memory", {"key": f"read-{key}", "value": value}))

    def body(self, client: Client, number: int) -> bytes:
        """Return a call of `get_memory`."""
        return client.call_body(number, "get_memory", b'{"key":"read-%d"}' % (number % KEYS))

    def judge(self, number: int, told: Any) -> None:
        """Check that the value is the key's own."""
        check(told["value"] == self._values[number % KEYS], f"read-{number % KEYS} is {told}")


class Messages:
    """Messages added to one session, each of which is on disk when it is acknowledged."""

    kind = Kind("tools/call", "add_message")

    def __init__(self, client: Client) -> None:
        """Make the session."""
        self._session = client.call(ToolCall("create_session", {"purpose": "bench"}))["session_id"]
        arguments = {"session_id": self._session, "content": NOTE}
        self._arguments = msgspec.json.encode(arguments)
        self._last = 0
        self._count = 0

    def body(self, client: Client, number: int) -> bytes:
        """Return a call of `add_message`."""
        return client.call_body(number, "add_message", self._arguments)

    def judge(self, number: int, told: Any) -> None:
        """Check that messages get rising numbers, in the order in which they were sent."""
        found = told["message_id"]
        check(found > self._last, f"request {number} made message {found}, after message {self._last}")
        self._last = found
        self._count += 1

    def count(self, client: Client) -> None:
        """Check that the session holds what was acknowledged, nothing else."""
        read = client.call(ToolCall("get_session", {"session_id": self._session}))
        found = read["statistics"]["message_count"]
        check(found == self._count, f"{self._count} messages were acknowledged, and there are {found}")


class Echoes:
    """Calls of a tool that says it again; as long as what `Reads` brings back."""

    kind = Kind("tools/call", "echo")

    def body(self, client: Client, number: int) -> bytes:
        """Return a call of `echo`."""
        return client.call_body(number, "echo", b'{"text":"%d %b"}' % (number, NOTE.encode()))

    def judge(self, number: int, told: Any) -> None:
        """Check that it is what was said."""
        check(told["text"] == f"{number} {NOTE}", f"echo {number} was answered with {told}")


class Pings:
    """MCP's own pings: nothing but the protocol."""

    kind = Kind("ping")

    def body(self, client: Client, number: int) -> bytes:
        """Return a ping."""
        return client.body(number, "ping")

    def judge(self, number: int, told: Any) -> None:
        """Check that there is nothing in the answer."""
        check(told == "", f"ping {number} was answered with {told}")


def value_of(number: int) -> Mapping[str, Any]:
    """Return the value that is stored under a key."""
    return {"number": number, "note": NOTE}
