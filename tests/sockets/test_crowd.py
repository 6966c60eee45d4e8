"""Many connections that say nothing, or too many of one address or key: they keep nobody else out."""

from __future__ import annotations

from contextlib import AsyncExitStack
from functools import partial
from ipaddress import ip_network
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import trio
from support.desk import Desk
from support.https import place
from support.keyed import create_key, premises
from support.websockets import Peer, told, venue, venue_on_tcp

from greenroom.actors import open_key_cache
from greenroom.transports import KeyAuthenticator
from greenroom.transports.base.errors import HttpRefusedError
from greenroom.transports.base.net.connection_limits import AT_ONCE, TOLD_EVERY, ConnectionLimiter
from greenroom.transports.sockets.websocket.server import BEYOND

if TYPE_CHECKING:
    from support.agents import Enter
    from trio.testing import MockClock

    from greenroom.transports.base.net.connection_limits import ConnectionSlot

pytestmark = [pytest.mark.promise("limits.connections"), pytest.mark.slow]


class Comers:
    """A crowd, and those of whom it has hung up on, by name."""

    def __init__(self, places: int) -> None:
        self.crowd = ConnectionLimiter(places)
        self.gone: list[str] = []

    def come(self, who: str, address: str | None) -> ConnectionSlot:
        visitor = self.crowd.arrive(address, 0.0, partial(self.gone.append, who))
        assert visitor is not None
        return visitor


@pytest.mark.quick
def test_newcomers_of_one_address_make_room_for_each_other() -> None:
    here = Comers(100)
    here.come("stranger", "192.0.2.1")
    for number in range(30):
        here.come(f"{number}", "192.0.2.66")
    assert here.gone == ["0", "1", "2", "3", "4"]


def test_who_comes_when_all_places_are_taken_takes_that_of_the_greatest_crowd() -> None:
    here = Comers(100)
    inside = here.come("friend", "192.0.2.1")
    here.crowd.accept(inside, "192.0.2.1", None)
    here.come("stranger", "192.0.2.2")
    for number in range(98):
        here.come(f"{number}", f"198.51.100.{number % 4}")
    assert here.gone == []
    here.come("late", "192.0.2.3")
    assert len(here.gone) == 1
    assert here.gone[0] in {"0", "1"}
    assert len(here.crowd) == 100


def test_those_who_were_let_in_are_not_hung_up_on() -> None:
    here = Comers(20)
    for number in range(20):
        here.crowd.accept(here.come(f"{number}", None), None, None)
    assert here.crowd.arrive("192.0.2.1", 0.0, partial(here.gone.append, "late")) is None
    assert here.gone == []
    assert list(here.crowd.overdue(1.0)) == []


def test_a_quarter_is_left_by_one_address_and_by_one_key_and_comes_back_when_they_leave() -> None:
    here = Comers(100)
    visitors = [here.come(f"{number}", None) for number in range(75)]
    for number, visitor in enumerate(visitors):
        here.crowd.accept(visitor, "192.0.2.1", f"key {number}")
    late = here.come("late", None)
    with pytest.raises(HttpRefusedError, match="75 connections of your address") as caught:
        here.crowd.accept(late, "192.0.2.1", "another key")
    assert caught.value.status == 429
    here.crowd.accept(late, "192.0.2.2", "another key")
    for visitor in (*visitors, late):
        here.crowd.leave(visitor)
    assert len(here.crowd) == 0
    for number in range(75):
        here.crowd.accept(here.come(f"{number}", None), f"192.0.2.{number}", "one key")
    with pytest.raises(HttpRefusedError, match="75 connections of your key"):
        here.crowd.accept(here.come("late", None), "192.0.2.200", "one key")


async def test_silent_connections_keep_nobody_out_of_websocket() -> None:
    async with venue(Desk(), connections=4) as here:
        friend = await here.client()
        silent = [await here.peer() for _ in range(4 + BEYOND + 10)]
        late = await here.client()
        for client in (friend, late):
            await client.call("echo", "here")
            assert told(await client.receive()) == {"text": "here"}
        assert await silent[0].head() == b""
        assert here.server.statistics().connections == 2


async def test_silent_connections_keep_nobody_out_of_http() -> None:
    async with place(Desk(), connections=4) as here:
        friend = await here.client()
        silent = [await here.guest() for _ in range(10)]
        late = await here.client()
        for client in (friend, late):
            await client.request("ping")
            assert (await client.answer()).status == 200
        assert await silent[0].hung_up() == b""


async def test_who_was_told_of_the_health_alone_makes_room_too() -> None:
    async with place(Desk(), connections=4) as here:
        for _ in range(10):
            assert (await (await here.guest()).ask("GET", "/healthz")).status == 200
        friend = await here.client()
        await friend.request("ping")
        assert (await friend.answer()).status == 200


@pytest.mark.parametrize("transport", ["websocket", "http"])
async def test_those_who_are_too_slow_go_a_few_at_a_time_and_in_one_line(
    autojump_clock: MockClock,
    caplog: pytest.LogCaptureFixture,
    transport: str,
) -> None:
    many = 500
    serve: Any = venue if transport == "websocket" else place
    come = "peer" if transport == "websocket" else "guest"
    async with serve(Desk()) as here:
        there = [await getattr(here, come)() for _ in range(many)]
        counts = [0]

        def gone() -> int:
            found = here.server.statistics()
            return int(found.refused if transport == "websocket" else many - found.connections)

        await trio.sleep_until(10)
        for _ in range(10 * many):
            await trio.lowlevel.checkpoint()
            counts.append(gone())
        assert counts[-1] == many
        steps = [after - before for before, after in pairwise(counts)]
        assert max(steps) <= 4 * AT_ONCE
        await trio.sleep(TOLD_EVERY + 1)
        lines = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
        sentence = "500 connections were hung up on before they were let in: 500 sent too little in time"
        assert lines == [f"{sentence}, 0 made room for others"]
        assert len(there) == many
        assert autojump_clock.current_time() <= 10 + TOLD_EVERY + 1


async def test_one_address_behind_a_proxy_leaves_places_to_others(enter: Enter) -> None:
    async with enter() as at, open_key_cache(at.runtime, required=False) as ring:
        authenticator = KeyAuthenticator(ring, trusted=[ip_network("127.0.0.0/8")])
        async with (
            venue_on_tcp(Desk(), connections=20, authenticator=authenticator) as port,
            AsyncExitStack() as stack,
        ):

            async def come(address: str) -> bytes:
                stream = await stack.enter_async_context(await trio.open_tcp_stream("127.0.0.1", port))
                return await Peer(stream).ask(headers={"Forwarded": f"for={address}"})

            answers = [await come("192.0.2.1") for _ in range(17)]
            assert all(answer.startswith(b"HTTP/1.1 101 ") for answer in answers[:16])
            assert answers[16].startswith(b"HTTP/1.1 429 ")
            assert b"16 connections of your address" in answers[16]
            assert (await come("192.0.2.2")).startswith(b"HTTP/1.1 101 ")
            # A client that no proxy tells of is one of this machine, which is the operator's own.
            assert (await come("unknown")).startswith(b"HTTP/1.1 101 ")


async def test_one_key_leaves_places_to_others(enter: Enter) -> None:
    async with enter() as at, premises(at, connections=20) as here:
        greedy, modest = await create_key(at, "*"), await create_key(at, "*")
        await here.settled()
        for _ in range(16):
            await here.websocket(greedy)
        shown = {"Authorization": f"Bearer {greedy.api_key}"}
        answer = await (await here.peer()).ask("/", shown)
        assert answer.startswith(b"HTTP/1.1 429 ")
        assert b"Retry-After" in answer
        await here.websocket(modest)
        for _ in range(16):
            assert (await (await here.guest()).ask("GET", "/metrics", **shown)).status == 200
        assert (await (await here.guest()).ask("GET", "/metrics", **shown)).status == 429
        shown = {"Authorization": f"Bearer {modest.api_key}"}
        assert (await (await here.guest()).ask("GET", "/metrics", **shown)).status == 200
