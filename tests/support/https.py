"""An HTTP server on streams in memory or on TCP, and clients that send what they like, byte by byte."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from math import inf
from typing import Any, NamedTuple

import h11
import msgspec
import trio
from harness import PATIENCE
from support.desk import NOTES
from trio.testing import memory_stream_pair

from greenroom.testing import MODERN_META
from greenroom.transports import Caller, HttpApp, HttpOptions, HttpServer, Limits, McpServer, Timeouts

HEADERS = {
    "host": "localhost:8080",
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
}
MODERN_VERSION = "2026-07-28"
UPDATED = "notifications/resources/updated"
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

Pair = Callable[[], tuple[trio.abc.Stream, trio.abc.Stream]]


class Answer(NamedTuple):
    """A whole answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Event(NamedTuple):
    """One event of a stream; a comment has nothing but its text."""

    data: str = ""
    id: str | None = None
    retry: int | None = None
    comment: str | None = None

    def json(self) -> Any:
        return json.loads(self.data)


class Guest:
    """One HTTP connection of a client."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.stream = stream
        self._http = h11.Connection(h11.CLIENT)
        self._events = b""
        self._last_id = 0
        self.session: dict[str, str | None] = {}

    # -- HTTP ------------------------------------------------------------------------------------

    async def send(
        self,
        method: str,
        path: str = "/mcp",
        headers: Mapping[str, str | None] | None = None,
        body: bytes = b"",
    ) -> None:
        """Send one request."""
        if self._http.our_state is h11.DONE:
            self._http.start_next_cycle()
        given: dict[str, str | None] = {**HEADERS, "content-length": str(len(body))}
        given |= {name.lower(): value for name, value in (headers or {}).items()}
        lines = [(name, value) for name, value in given.items() if value is not None]
        data = self._http.send(h11.Request(method=method, target=path, headers=lines)) or b""
        if body:
            data += self._http.send(h11.Data(data=body)) or b""
        await self.stream.send_all(data + (self._http.send(h11.EndOfMessage()) or b""))

    async def _next(self) -> Any:
        while (found := self._http.next_event()) is h11.NEED_DATA:
            try:
                self._http.receive_data(bytes(await self.stream.receive_some()))
            except trio.BrokenResourceError:
                self._http.receive_data(b"")
        return found

    async def head(self) -> tuple[int, dict[str, str]]:
        """Return an answer's status and headers."""
        with trio.fail_after(PATIENCE):
            while isinstance(found := await self._next(), h11.InformationalResponse):
                pass
        assert isinstance(found, h11.Response), found
        return found.status_code, {name.decode(): value.decode() for name, value in found.headers}

    async def answer(self) -> Answer:
        """Return an answer whole."""
        status, headers = await self.head()
        body = b""
        with trio.fail_after(PATIENCE):
            while isinstance(found := await self._next(), h11.Data):
                body += bytes(found.data)
        assert isinstance(found, h11.EndOfMessage), found
        return Answer(status, headers, body)

    async def end_session(self) -> Answer:
        """Delete the session."""
        await self.send("DELETE", "/mcp", self.session)
        return await self.answer()

    async def ask(self, method: str, path: str = "/mcp", **headers: str | None) -> Answer:
        """Send one request without a body; return its answer."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        await self.send(method, path, named)
        return await self.answer()

    async def answer_to_raw(self) -> bytes:
        """Return the head of the answer to a request that was sent byte by byte."""
        said = b""
        with trio.fail_after(PATIENCE):
            while b"\r\n\r\n" not in said:
                data = await self.stream.receive_some()
                assert data, said
                said += data
        return said

    async def hung_up(self) -> bytes:
        """Read on until the server has hung up; return what else it said."""
        said = b""
        with trio.fail_after(PATIENCE):
            try:
                while data := await self.stream.receive_some():
                    said += data
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass
        return said

    # -- streams of events -----------------------------------------------------------------------

    async def event(self) -> Event | None:
        """Return the next event or comment of a stream; None at its end."""
        with trio.fail_after(PATIENCE):
            while b"\r\n\r\n" not in self._events:
                found = await self._next()
                if isinstance(found, h11.EndOfMessage):
                    assert self._events == b"", self._events
                    return None
                assert isinstance(found, h11.Data), found
                self._events += bytes(found.data)
        block, _, self._events = self._events.partition(b"\r\n\r\n")
        fields: dict[str, Any] = {}
        for line in block.decode().split("\r\n"):
            name, _, value = line.partition(": ")
            fields[name or "comment"] = value
        if not (fields.keys() - {"comment"}) and block.startswith(b": "):
            return Event(comment=block[2:].decode())
        if "retry" in fields:
            fields["retry"] = int(fields["retry"])
        return Event(**{name: value for name, value in fields.items() if name != "event"})

    async def events(self) -> list[Event]:
        """Return everything up to the end of a stream."""
        found = []
        while (event := await self.event()) is not None:
            found.append(event)
        return found

    # -- MCP -------------------------------------------------------------------------------------

    async def post(self, message: Mapping[str, Any], **headers: str | None) -> None:
        """Send a message in the session."""
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        await self.send("POST", "/mcp", self.session | named, body)

    def number(self) -> int:
        self._last_id += 1
        return self._last_id

    async def request(
        self, method: str, params: Mapping[str, Any] | None = None, **headers: str | None
    ) -> int:
        """Send a request in the session; return its id."""
        number = self.number()
        await self.post({"id": number, "method": method, "params": params or {}}, **headers)
        return number

    async def call(self, tool: str, text: str = "", **headers: str | None) -> int:
        return await self.request("tools/call", {"name": tool, "arguments": {"text": text}}, **headers)

    async def modern(
        self, method: str, params: Mapping[str, Any] | None = None, **headers: str | None
    ) -> int:
        """Send a request of the later era; return its id."""
        number = self.number()
        full = {**(params or {}), "_meta": {**MODERN_META, **(params or {}).get("_meta", {})}}
        routed: dict[str, str | None] = {"mcp_protocol_version": MODERN_VERSION, "mcp_method": method}
        if method in NAMED:
            routed["mcp_name"] = full.get(NAMED[method])
        await self.post({"id": number, "method": method, "params": full}, **{**routed, **headers})
        return number

    async def modern_call(self, tool: str, text: str = "", **headers: str | None) -> int:
        return await self.modern("tools/call", {"name": tool, "arguments": {"text": text}}, **headers)

    async def initialize(self, version: str = "2025-11-25", **headers: str | None) -> Guest:
        """Open a session."""
        info = {"name": "tester", "version": "1"}
        params = {"protocolVersion": version, "capabilities": {"elicitation": {}}, "clientInfo": info}
        await self.request("initialize", params, **headers)
        answer = await self.answer()
        assert (answer.status, answer.json()["result"]["protocolVersion"]) == (200, version), answer
        self.session = {
            "mcp-session-id": answer.headers["mcp-session-id"],
            "mcp-protocol-version": version,
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        await self.post({"method": "notifications/initialized"})
        assert (await self.answer()).status == 202
        return self

    async def listen(self, **headers: str | None) -> Guest:
        """Open the session's own stream."""
        await self.get(**headers)
        status, told = await self.head()
        assert (status, told["content-type"]) == (200, "text/event-stream")
        return self

    async def get(self, **headers: str | None) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        await self.send(
            "GET", "/mcp", {**self.session, "content-type": None, "content-length": None, **named}
        )


class Listener(trio.abc.Listener[trio.abc.Stream]):
    """Hands out streams that the test opens."""

    def __init__(self) -> None:
        self.arrivals, self._waiting = trio.open_memory_channel[trio.abc.Stream](inf)

    async def accept(self) -> trio.abc.Stream:
        return await self._waiting.receive()

    async def aclose(self) -> None:
        self.arrivals.close()
        await trio.lowlevel.checkpoint()


class Place:
    """A server and whoever comes.

    Attributes:
        callers: Whom the doors were opened for, with the client's own name.
        stop: Set it to end the server gracefully.
        ended: Set once it has.
    """

    def __init__(self, app: HttpApp, server: HttpServer) -> None:
        self.app = app
        self.server = server
        self.callers: list[tuple[Caller, str]] = []
        self.stop = trio.Event()
        self.ended = trio.Event()
        self.listener = Listener()
        self.port = 0

    async def guest(self, pair: Pair = memory_stream_pair, session: Guest | None = None) -> Guest:
        """Let a client come, in the session of another one if there is one."""
        ours, theirs = pair()
        await self.listener.arrivals.send(theirs)
        return self._in_session(Guest(ours), session)

    async def tcp_guest(self, session: Guest | None = None) -> Guest:
        return self._in_session(Guest(await trio.open_tcp_stream("127.0.0.1", self.port)), session)

    def _in_session(self, guest: Guest, session: Guest | None) -> Guest:
        if session is not None:
            guest.session = session.session
            guest.number = session.number  # type: ignore[method-assign]
        return guest

    async def client(self, version: str = "2025-11-25", **headers: str | None) -> Guest:
        return await (await self.guest()).initialize(version, **headers)


@asynccontextmanager
async def place(
    desk: Any, *, tools: Mapping[str, Any] = NOTES, tcp: bool = False, **options: Any
) -> AsyncIterator[Place]:
    """Serve a desk's tools over HTTP; at the end the server is stopped and must end."""
    here: Place
    own = {name: options.pop(name) for name in ("connections", "stop", "timeouts") if name in options}
    mcp = {name: options.pop(name) for name in ("extend", "debounce", "request_timeout") if name in options}

    def agent_for(caller: Caller, name: str) -> Any:
        here.callers.append((caller, name))
        return desk.open(name)

    server = McpServer(tools, desk.open, **mcp)
    app = HttpApp(server, agent_for, HttpOptions(limits=options.pop("limits", Limits()), **options))
    here = Place(app, HttpServer(app, **own))
    listeners: list[Any] = [here.listener]
    if tcp:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        here.port = listeners[0].socket.getsockname()[1]

    async def serve(task_status: trio.TaskStatus[None]) -> None:
        await here.server.serve(listeners, here.stop, task_status=task_status)
        here.ended.set()

    async with server.running(), trio.open_nursery() as nursery:
        await nursery.start(serve)
        yield here
        here.stop.set()
        with trio.fail_after(PATIENCE):
            await here.ended.wait()


PATIENT = Timeouts(head=1e6, rest=1e6, write=1e6)
"""For clients that may take all the time of the world."""


def told(answer: Any) -> Any:
    """Return what a tool's answer says."""
    return msgspec.json.decode(answer["result"]["content"][0]["text"])
