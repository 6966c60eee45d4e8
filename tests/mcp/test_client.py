"""One client without a connection: every request ends exactly once, whatever ends first."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Self

import outcome
import pytest
import trio
from support.desk import Note, Noted, NoteTool, tool
from trio.testing import MockClock, wait_all_tasks_blocked

from greenroom.runtime import Procedure
from greenroom.testing import MODERN_META, import_sdk
from greenroom.transports import Limits, McpServer
from greenroom.transports.mcp.clients.open_requests import CONNECTION_CLOSED, Client
from greenroom.transports.mcp.frames.frames import parse_frame
from greenroom.transports.mcp.tools.content_blocks import Content

pytestmark = pytest.mark.usefixtures("imported")


@pytest.fixture(scope="session")
def imported() -> None:
    """Import the SDK once, which a test in virtual time has no time for."""
    import_sdk()


class Lookup(Procedure[Noted], frozen=True):
    """Is answered by no actor."""

    runs = "snapshot"


class Search(NoteTool, frozen=True, kw_only=True):
    """A tool whose request is a query, which a task asks."""

    def parse(self, _arguments: bytes) -> Any:
        return Lookup()


TOOLS = {
    each.name: each
    for each in (
        tool("note"),
        tool("large", weight=1),
        Search(name="search", title="", description=""),
    )
}


class Posted:
    """A request that the test has not answered."""

    def __init__(self, note: Note, done: Callable[[Any], None]) -> None:
        self.text = note.text
        self.is_abandoned = False
        self._done = done

    def answer(self, reply: Any = None) -> None:
        self._done(outcome.Value(Noted(self.text) if reply is None else reply))

    def cancel(self) -> None:
        self.is_abandoned = True


class Heard:
    """What a stream hears: nothing, for ever."""

    def __init__(self) -> None:
        self.uris: list[str] = []
        self.is_open = False

    def __len__(self) -> int:
        return len(self.uris)

    def add(self, uri: str) -> None:
        self.uris.append(uri)

    def remove(self, uri: str) -> None:
        self.uris.remove(uri)

    async def wait_heard(self) -> None:
        await trio.lowlevel.checkpoint()

    async def next(self) -> str:
        await trio.sleep_forever()
        raise AssertionError

    def __enter__(self) -> Self:
        self.is_open = True
        return self

    def __exit__(self, *_: object) -> None:
        self.is_open = False


class Door:
    """Takes requests, and answers them when the test says so."""

    scopes = frozenset({"*"})

    def check_scope(self, request: type[Any], arguments: bytes = b"") -> None:
        """Open everything."""

    def __init__(self) -> None:
        self.posted: list[Posted] = []
        self.heard: list[Heard] = []
        self.accepts = True
        self._accept: list[Callable[[], None]] = []

    def close(self) -> None:
        """Do nothing: nothing is held."""

    def subscriber(self, _window: float) -> Heard:
        self.heard.append(Heard())
        return self.heard[-1]

    async def ask(
        self, request: Any, *, checked: bool = False, on_accepted: Callable[[], None] | None = None
    ) -> Any:
        assert checked
        if isinstance(request, Lookup):
            return Noted("found")
        waiting, replies = trio.Event(), []

        def done(reply: Any) -> None:
            replies.append(reply)
            waiting.set()

        posted = self.post(request, done, print, on_accepted=on_accepted)
        assert posted is not None, "it is no look-up"
        try:
            await waiting.wait()
        except trio.Cancelled:
            posted.cancel()
            raise
        return replies[0].unwrap()

    def post(
        self,
        request: Any,
        done: Callable[[Any], None],
        in_task: Callable[[Callable[[], Any]], None],
        *,
        on_accepted: Callable[[], None] | None = None,
        deadline: float = 30,
    ) -> Posted | None:
        assert deadline == 30, "the server's time"
        if isinstance(request, Lookup):
            assert on_accepted is not None
            on_accepted()
            in_task(partial(self.ask, request, checked=True))
            return None
        self.posted.append(Posted(request[1], done))
        if on_accepted is not None:
            if self.accepts:
                on_accepted()
            else:  # it has a question, say, which is asked first
                self._accept.append(on_accepted)
        return self.posted[-1]

    def accept(self) -> None:
        """Put into the mailboxes what has waited for that."""
        self.accepts = True
        for on_accepted in self._accept:
            on_accepted()


class Out:
    """What a client is told, in order."""

    def __init__(self) -> None:
        self.said: list[dict[str, Any]] = []
        self.ends: list[Any] = []

    def send(self, line: bytes) -> None:
        self.said.append(json.loads(line))

    def answer(self, line: bytes) -> None:
        self.said.append(json.loads(line))
        self.ends.append(self.said[-1]["id"])

    def unanswered(self) -> None:
        self.ends.append(None)

    def close_stream(self) -> None:
        pass

    async def room_for_notice(self) -> None:
        await trio.lowlevel.checkpoint()

    def answer_to(self, id: int) -> dict[str, Any]:
        (found,) = [line for line in self.said if line.get("id") == id]
        return found


class Desk:
    """A client and all about it."""

    def __init__(self, server: McpServer, door: Door, limits: Limits) -> None:
        self.door = door
        self.out = Out()
        self.has_room = True
        self.tasks: trio.Nursery | None = None
        self.meter = server.meter
        self.client = Client(
            server,
            lambda _: door,
            self.out,
            limits,
            spawn=self._spawn,
            on_failure=lambda: pytest.fail("the store is sound"),
            has_room=lambda: self.has_room,
        )

    def _spawn(self, work: Callable[..., Any], /, *args: Any) -> None:
        assert self.tasks is not None, "who is gone starts nothing any more"
        self.tasks.start_soon(work, *args)

    def take(self, **message: Any) -> None:
        frame = parse_frame(json.dumps({"jsonrpc": "2.0", **message}).encode())
        assert frame is not None
        self.client.take(frame, self.out)

    def request(self, id: int, method: str, **params: Any) -> None:
        self.take(id=id, method=method, params=params)

    def call(self, id: int, name: str, *, odd: bool = False, **meta: Any) -> None:
        """Call a tool; an odd call is what only the SDK judges."""
        params: dict[str, Any] = {"name": name, "arguments": {"text": str(id)}}
        if meta or self.client.identity.version == "2026-07-28":
            params["_meta"] = {**MODERN_META, **meta}
        self.take(id=id, method="tools/call", params=params | ({"odd": 1} if odd else {}))

    def cancel(self, id: int) -> None:
        self.take(method="notifications/cancelled", params={"requestId": id})

    def initialize(self) -> None:
        info = {"name": "tester", "version": "1"}
        self.request(0, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=info)
        self.out.ends.clear()

    def leave(self) -> None:
        """Go, as a connection does: its tasks end before the client is closed."""
        assert self.tasks is not None
        self.tasks.cancel_scope.cancel()
        self.tasks = None
        self.client.close()

    @property
    def settled(self) -> int:
        return sum(sum(row.buckets) for row in self.meter.snapshot() if row.method != "initialize")


@asynccontextmanager
async def desk(**limits: Any) -> AsyncIterator[Desk]:
    door = Door()
    server = McpServer(TOOLS, lambda _: door)
    async with server.running(), trio.open_nursery() as nursery:
        at_desk = Desk(server, door, Limits(**limits))
        at_desk.tasks = nursery
        yield at_desk
        nursery.cancel_scope.cancel()


def texts(posted: list[Posted]) -> list[str]:
    return [each.text for each in posted]


# -- taken back ----------------------------------------------------------------------------------


async def test_a_stream_that_is_taken_back_before_it_began_never_stands(autojump_clock: MockClock) -> None:
    del autojump_clock
    async with desk() as served:
        wanted = {"resourceSubscriptions": ["session://s"]}
        for _ in range(3):
            served.request(1, "subscriptions/listen", notifications=wanted, _meta=MODERN_META)
            served.cancel(1)
        await wait_all_tasks_blocked()
        assert served.out.said == []
        assert served.out.ends == [None] * 3
        assert len(served.client.streams.scopes) == 0
        assert not any(heard.is_open for heard in served.door.heard)


@pytest.mark.parametrize("ticks", range(12))
@pytest.mark.parametrize("name", ["note", "large"])
async def test_a_call_by_way_of_the_sdk_can_be_taken_back_at_any_moment(
    ticks: int, name: str, autojump_clock: MockClock
) -> None:
    del autojump_clock
    async with desk(large_answers=1) as served:
        served.initialize()
        for number in range(1, 6):
            served.call(number, name, odd=True)
            for _ in range(ticks):
                await trio.lowlevel.checkpoint()
            served.cancel(number)
        await wait_all_tasks_blocked()
        assert served.out.ends == [None] * 5
        assert all(posted.is_abandoned for posted in served.door.posted)
        before = len(served.door.posted)
        served.call(6, "large")  # room for it, and its turn, is there again
        assert texts(served.door.posted[before:]) == ["6"]
        assert served.client.open_requests == 1
        assert served.settled == 5


@pytest.mark.parametrize("first_end", ["turn", "cancellation"])
async def test_a_turn_and_the_end_may_come_at_once(first_end: str, autojump_clock: MockClock) -> None:
    del autojump_clock
    async with desk(large_answers=1) as served:
        served.initialize()
        served.door.accepts = False
        served.call(1, "note")
        served.call(2, "large", odd=True)
        await wait_all_tasks_blocked()  # it waits for its turn
        ends: list[Callable[[], None]] = [served.door.accept, partial(served.cancel, 2)]
        for end in ends if first_end == "turn" else reversed(ends):
            end()
        await wait_all_tasks_blocked()
        wanted = [posted for posted in served.door.posted if not posted.is_abandoned]
        assert texts(wanted) == ["1"]
        served.call(3, "large")
        assert texts(served.door.posted[-1:]) == ["3"]


# -- order ---------------------------------------------------------------------------------------


@pytest.mark.promise("mcp.pipelining")
async def test_calls_of_both_ways_reach_their_mailboxes_in_the_order_of_arrival(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    async with desk() as served:
        served.initialize()
        odd = [number % 3 == 0 or number % 7 == 0 for number in range(1, 100)]
        for number, is_odd in enumerate(odd, 1):
            served.call(number, "note", odd=is_odd)
        await wait_all_tasks_blocked()
        assert texts(served.door.posted) == [str(number) for number in range(1, 100)]


@pytest.mark.promise("mcp.pipelining")
@pytest.mark.parametrize("attempt", range(8))  # trio runs tasks of one moment in any order
async def test_a_bare_initialized_opens_the_door_for_what_follows_it(
    attempt: int, autojump_clock: MockClock
) -> None:
    del attempt, autojump_clock
    async with desk() as served:
        served.request(1, "ping")
        served.take(method="notifications/initialized")
        served.request(2, "tools/list")
        await wait_all_tasks_blocked()
        assert "result" in served.out.answer_to(2)


# -- the end -------------------------------------------------------------------------------------


def blocked(served: Desk) -> None:
    """Fill a client's queue: behind a call that finds no room are such as need a task, or nobody."""
    served.initialize()
    served.has_room = False
    served.call(1, "large")
    served.request(2, "resources/subscribe", uri="session://s")
    served.call(3, "search")
    served.call(4, "note")
    served.request(5, "resources/unsubscribe", uri="session://s")


async def test_who_is_given_up_is_answered_once_for_each_request(autojump_clock: MockClock) -> None:
    del autojump_clock
    async with desk() as served:
        blocked(served)
        served.client.fail_open_requests()
        assert served.out.ends == [1, 2, 3, 4, 5]
        codes = [served.out.answer_to(number)["error"]["code"] for number in range(1, 6)]
        assert codes == [CONNECTION_CLOSED] * 5
        assert served.door.posted == []
        assert served.client.open_requests == 0


@pytest.mark.promise("mcp.slow-reader")
async def test_who_leaves_before_the_turn_of_its_requests_begins_none_of_them(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    async with desk() as served:
        blocked(served)
        served.leave()
        assert served.out.ends == [None] * 5
        assert served.door.posted == []
        assert served.door.heard == []


async def test_a_client_that_is_gone_takes_nothing_any_more(autojump_clock: MockClock) -> None:
    del autojump_clock
    async with desk() as served:
        served.initialize()
        served.leave()
        served.request(1, "resources/subscribe", uri="session://s")
        served.request(2, "completion/complete")
        served.take(method="notifications/initialized")
        assert [served.out.answer_to(number)["error"]["code"] for number in (1, 2)] == [CONNECTION_CLOSED] * 2
        assert served.client.open_requests == 0


# -- bad luck ------------------------------------------------------------------------------------


@pytest.mark.parametrize("odd", [False, True])
async def test_a_reply_that_cannot_be_told_is_an_error_and_holds_nobody_up(
    autojump_clock: MockClock, *, odd: bool
) -> None:
    del autojump_clock
    async with desk() as served:
        served.initialize()
        served.call(1, "note", odd=odd)
        served.call(2, "note")
        await wait_all_tasks_blocked()
        served.door.posted[0].answer(Content(blocks=[{"type": "text", "text": object()}]))
        served.door.posted[1].answer()
        await wait_all_tasks_blocked()
        assert served.out.ends.count(1) == served.out.ends.count(2) == 1
        said = served.out.answer_to(1)
        assert "error" in said or said["result"]["isError"]


@pytest.mark.promise("mcp.hostile-frames")
@pytest.mark.parametrize("token", [[], {}, True, 1.0, None, "1", 1, 2**70])
@pytest.mark.parametrize("progress", [[], "1", True, 1])
async def test_progress_of_nothing_hurts_nobody(
    token: object, progress: object, autojump_clock: MockClock
) -> None:
    del autojump_clock
    async with desk() as served:
        served.initialize()
        served.take(method="notifications/initialized")
        served.request(1, "no/such/method")
        said = {"progressToken": token, "progress": progress, "total": [], "message": 7}
        served.take(method="notifications/progress", params=said)
        await wait_all_tasks_blocked()
        served.call(2, "note")
        assert texts(served.door.posted) == ["2"]


@pytest.mark.promise("mcp.slow-reader")
async def test_what_waits_for_the_sdk_is_in_flight(autojump_clock: MockClock) -> None:
    del autojump_clock
    async with desk(in_flight=1) as served:
        served.initialize()
        served.request(1, "no/such/method")
        assert served.client.is_full
        with trio.fail_after(5):
            await served.client.until(lambda: not served.client.is_full)
        assert served.out.answer_to(1)["error"]["code"] == -32601
        served.request(2, "no/such/method")  # now it is there
        assert served.out.answer_to(2)["error"]["code"] == -32601


def pairs() -> Iterator[tuple[str, bool]]:
    for ending in ("answered", "cancelled", "overdue", "left"):
        for odd in (False, True):
            yield ending, odd


@pytest.mark.promise("mcp.deadline")
@pytest.mark.parametrize(("ending", "odd"), list(pairs()))
async def test_however_calls_end_nothing_stays_counted(
    ending: str, autojump_clock: MockClock, *, odd: bool
) -> None:
    del autojump_clock
    async with desk(large_answers=1, in_flight=4) as served:
        served.initialize()
        for number in range(1, 5):
            served.call(number, "large", odd=odd)
        await wait_all_tasks_blocked()
        assert served.client.is_full
        assert len(served.door.posted) == 1
        match ending:
            case "answered":
                for number in range(4):
                    served.door.posted[number].answer()
                    await wait_all_tasks_blocked()
            case "cancelled":
                for number in (3, 1, 4, 2):
                    served.cancel(number)
            case "overdue":
                await trio.sleep(31)
            case "left":
                served.leave()
        assert len(served.out.ends) == served.settled == 4
        assert served.client.open_requests == 0
        assert not served.client.is_full
        assert served.client.queue._large == served.client._open_bytes == 0
