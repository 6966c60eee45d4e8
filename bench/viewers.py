"""Open consoles, played by plain HTTP clients that do what the console's script does in a browser.

Each holds an event stream and fetches its page again a moment after a change, and as often as the page says
itself. Nothing is drawn, so what a browser computes for its pages is in no figure: the server is measured.
"""

from __future__ import annotations

import html
import json
import random
import re
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import NamedTuple
from urllib.parse import urlencode

import h11
import trio

from bench.entrance import Entrance, asked
from bench.harness import WrongAnswerError, check

GATHER, APART = 0.25, 0.5  # seconds from a change to the fetch, and what chance adds at most, as in a browser
REST = 4  # times as long as a fetch took, likewise
SPREAD = 5.0  # seconds in which the consoles are opened, so that they do not all fetch at once
WRITES = 2
CHUNK = 65_536
_TOPICS = re.compile(rb"data-topics='([^']*)'")
_VIEW = re.compile(rb'<a href="\./([a-z]*)" data-key=')
_EVERY = re.compile(rb'data-every="([0-9.]+)"')


class Fetched(NamedTuple):
    """An answer, the seconds to its first byte and to its last, and its tag."""

    status: int
    body: bytes
    first: float
    last: float
    tag: str | None = None


@dataclass
class Tally:
    """What became of the consoles.

    Attributes:
        pages: How many pages were fetched.
        same: How many of them were answered as being what was sent last.
        changes: How many changes the streams told of.
        streams: How many are open.
        times: The seconds that each page took.
    """

    pages: int = 0
    same: int = 0
    changes: int = 0
    streams: int = 0
    times: list[float] = field(default_factory=list)


class Connection:
    """A connection that is kept, on which one request follows another."""

    def __init__(self, entrance: Entrance, stream: trio.abc.Stream) -> None:
        self._entrance = entrance
        self._stream = stream
        self._protocol = h11.Connection(h11.CLIENT)

    async def send(self, target: str, tag: str | None = None) -> None:
        """Send a GET to a path below the browser's; with a tag, a conditional one."""
        headers = [
            ("host", self._entrance.authority),
            ("cookie", self._entrance.cookie),
            ("accept-encoding", "gzip"),
            *([] if tag is None else [("if-none-match", tag)]),
        ]
        request = h11.Request(method="GET", target=self._entrance.path + target, headers=headers)
        data = (self._protocol.send(request) or b"") + (self._protocol.send(h11.EndOfMessage()) or b"")
        await self._stream.send_all(data)

    async def events(self) -> AsyncIterator[h11.Event]:
        """Yield what comes, to the end of the answer."""
        while True:
            event = self._protocol.next_event()
            if event is h11.NEED_DATA:
                self._protocol.receive_data(bytes(await self._stream.receive_some(CHUNK)))
                continue
            if not isinstance(event, h11.Event) or isinstance(event, h11.ConnectionClosed):
                raise WrongAnswerError("the server ended a connection")
            yield event
            if isinstance(event, h11.EndOfMessage):
                return

    async def get(self, target: str, tag: str | None = None) -> Fetched:
        """Fetch something whole, unless it still has the tag."""
        began = time.perf_counter()
        await self.send(target, tag)
        status, body, first, said = 0, bytearray(), 0.0, None
        async for event in self.events():
            first = first or time.perf_counter() - began
            if isinstance(event, h11.Response):
                status = event.status_code
                said = next((value.decode() for name, value in event.headers if name == b"etag"), None)
            elif isinstance(event, h11.Data):
                body += event.data
        self._protocol.start_next_cycle()
        return Fetched(status, bytes(body), first, time.perf_counter() - began, said)


@asynccontextmanager
async def connection(entrance: Entrance) -> AsyncIterator[Connection]:
    """Connect to a server."""
    async with await trio.open_tcp_stream(entrance.host, entrance.port) as stream:
        stream.setsockopt(trio.socket.IPPROTO_TCP, trio.socket.TCP_NODELAY, 1)
        yield Connection(entrance, stream)


def paths_of(entrance: Entrance, session_id: str) -> list[str]:
    """Return a page of each view, as the navigation has them, and at last that of a session."""

    async def first() -> Fetched:
        async with connection(entrance) as kept:
            return await kept.get("/")

    views = sorted({each.decode() for each in _VIEW.findall(trio.run(first).body)})
    check("sessions" in views, f"the navigation has no sessions but {views}")
    return [*(f"/{view}" for view in views), f"/sessions/{session_id}"]


class Tab:
    """One console that is open.

    Args:
        entrance: By which it has logged in.
        path: The page.
        topic: What it hears of where the page names nothing; then nothing is fetched for it.
        tally: Counts.
    """

    def __init__(self, entrance: Entrance, path: str, topic: str, tally: Tally) -> None:
        self._entrance = entrance
        self._path = path
        self._topic = topic
        self._tally = tally
        self._changed = trio.Event()
        self._tag: str | None = None

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Look at the page until it is cancelled; started once it is there and its stream is open."""
        async with connection(self._entrance) as kept:
            await self._look(kept, task_status)

    async def _look(self, kept: Connection, task_status: trio.TaskStatus[None]) -> None:
        page = await self._page(kept)
        said = _TOPICS.search(page)
        topics: list[str] = json.loads(html.unescape(said[1].decode())) if said is not None else []
        told = _EVERY.search(page)
        every = inf if told is None else float(told[1])
        async with trio.open_nursery() as nursery:
            await nursery.start(self._hear, topics)
            task_status.started()
            ready = -inf
            while True:
                with trio.move_on_after(every * random.uniform(0.9, 1.1)):
                    await self._changed.wait()
                    apart = GATHER + random.uniform(0, APART)
                    await trio.sleep(max(apart, ready - trio.current_time()))
                self._changed = trio.Event()
                began = trio.current_time()
                await self._page(kept)
                ended = trio.current_time()
                ready = ended + REST * (ended - began)

    async def _page(self, kept: Connection) -> bytes:
        found = await kept.get(self._path, self._tag)
        is_same = found.status == 304 and found.tag == self._tag
        is_page = found.status == 200 and b'<main id="main"' in found.body
        check(is_same or is_page, f"{self._path} is {found.status}")
        self._tag = found.tag
        self._tally.pages += 1
        self._tally.same += is_same
        self._tally.times.append(found.last)
        return found.body

    async def _hear(self, topics: Sequence[str], *, task_status: trio.TaskStatus[None]) -> None:
        query = urlencode([("topic", each) for each in topics or [self._topic]])
        async with connection(self._entrance) as kept:
            await kept.send(f"/api/v1/events?{query}")
            async for event in kept.events():
                if isinstance(event, h11.Response):
                    check(event.status_code == 200, f"the stream was answered with {event.status_code}")
                    self._tally.streams += 1
                    task_status.started()
                elif isinstance(event, h11.Data) and b"event: change" in event.data:
                    self._tally.changes += event.data.count(b"event: change")
                    if topics:
                        self._changed.set()


@contextmanager
def open_consoles(
    entrance: Entrance, paths: Sequence[str], session_id: str, count: int, spread: float = SPREAD
) -> Iterator[Tally]:
    """Keep so many consoles open while the block runs, in a thread; fail it if a page or a stream is wrong.

    Somebody writes into a session meanwhile, `WRITES` times a second.

    Args:
        entrance: By which they have logged in: tabs of one browser.
        paths: Their pages, in turn.
        session_id: The session, of which those hear whose page names nothing.
        count: How many.
        spread: Seconds in which they are opened.
    """
    tally, ready, failures = Tally(), threading.Event(), list[BaseException]()
    scope = trio.CancelScope()
    token: list[trio.lowlevel.TrioToken] = []

    async def main() -> None:
        token.append(trio.lowlevel.current_trio_token())
        with scope:
            async with trio.open_nursery() as nursery:
                for number in range(count):
                    tab = Tab(entrance, paths[number % len(paths)], f"session://{session_id}", tally)
                    await nursery.start(tab.run)
                    await trio.sleep(spread / count)
                ready.set()
                write = partial(asked, entrance, "add_message", session_id=session_id, content="one more")
                while True:
                    await trio.to_thread.run_sync(write)
                    await trio.sleep(1 / WRITES)

    def body() -> None:
        try:
            trio.run(main)
        except BaseException as error:  # noqa: BLE001  (it is raised where it is waited for)
            failures.append(error)
        ready.set()

    thread = threading.Thread(target=body)
    thread.start()
    try:
        ready.wait()
        if not failures:
            yield tally
            check(tally.streams == count, f"{tally.streams} of {count} consoles have a stream")
    finally:
        with suppress(trio.RunFinishedError):
            token[0].run_sync_soon(scope.cancel)
        thread.join()
    if failures:
        raise failures[0]
