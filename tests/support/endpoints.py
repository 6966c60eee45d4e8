"""An embeddings endpoint on loopback, as OpenAI's protocol has it, that does what a test tells it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import h11
import trio

Answer = tuple[int, dict[str, str], bytes]
Behaviour = Callable[["Endpoint", dict[str, Any]], "Answer | None"]


class Endpoint:
    """What was asked, and how it is answered.

    Attributes:
        url: Where it listens.
        dimensions: Of its vectors.
        behaviour: Returns the answer to a request, or None for the ordinary one.
        asked: The texts of each request.
        headers: Those of the last request.
        silent: Whether requests get no answer at all.
        silent_about: Texts that get none.
        held: Texts whose requests are answered once `go_on` is set.
        hung_up: Set when a client closed a connection before its answer.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.dimensions = 8
        self.behaviour: Behaviour = lambda _endpoint, _body: None
        self.asked: list[list[str]] = []
        self.headers: dict[str, str] = {}
        self.silent = False
        self.silent_about: set[str] = set()
        self.held: set[str] = set()
        self.go_on = trio.Event()
        self.was_asked = trio.Event()
        self.hung_up = trio.Event()

    def vector(self, text: str) -> list[float]:
        """Return a vector that depends on the text's letters only."""
        made = [0.001] * self.dimensions
        for letter in text.lower():
            made[ord(letter) % self.dimensions] += 1.0
        return made

    def answer(self, body: dict[str, Any]) -> Answer:
        """Return the answer to a request."""
        found = self.behaviour(self, body)
        if found is not None:
            return found
        # In another order than asked, as the protocol allows.
        items = [
            {"object": "embedding", "index": index, "embedding": self.vector(text)}
            for index, text in reversed([*enumerate(body["input"])])
        ]
        return ok({"object": "list", "model": body["model"], "data": items})


def ok(value: Any) -> Answer:
    return 200, {"content-type": "application/json"}, json.dumps(value).encode()


def failing(status: int, said: str = "no", **headers: str) -> Behaviour:
    """Answer every request with this status."""
    return lambda _endpoint, _body: (status, headers, said.encode())


@asynccontextmanager
async def endpoint() -> AsyncIterator[Endpoint]:
    """Serve until the block ends."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    served = Endpoint(f"http://127.0.0.1:{port}/v1")

    async def serve(stream: trio.SocketStream) -> None:
        try:
            await _serve(served, stream)
        except (trio.BrokenResourceError, h11.RemoteProtocolError):
            served.hung_up.set()
        finally:
            await stream.aclose()

    async with trio.open_nursery() as nursery:
        await nursery.start(trio.serve_listeners, serve, listeners)
        yield served
        nursery.cancel_scope.cancel()


async def _serve(served: Endpoint, stream: trio.SocketStream) -> None:
    connection = h11.Connection(h11.SERVER)
    while True:
        content, head = b"", None
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                received = await stream.receive_some()
                connection.receive_data(received)
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                content += bytes(event.data)
            else:
                break
        if head is None:
            return
        served.headers = {name.decode(): value.decode() for name, value in head.headers}
        assert head.target == b"/v1/embeddings"
        body = json.loads(content)
        served.asked.append(body["input"])
        served.was_asked.set()
        if served.silent or served.silent_about.intersection(body["input"]):
            assert await stream.receive_some() == b""
            served.hung_up.set()
            return
        if served.held.intersection(body["input"]):
            await served.go_on.wait()
        status, headers, answer = served.answer(body)
        fields = [*headers.items(), ("content-length", str(len(answer)))]
        for out in (
            h11.Response(status_code=status, headers=fields),
            h11.Data(data=answer),
            h11.EndOfMessage(),
        ):
            sent = connection.send(out)
            await stream.send_all(sent or b"")
        connection.start_next_cycle()
