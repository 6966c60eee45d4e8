"""Requests that are begun and not ended: how much of them is kept, of whom, and for how long."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest
import trio
from harness import PATIENCE
from sockets.test_abuse_process import everywhere
from sockets.test_websocket_process import resident
from support.keyed import Premises, bearer, create_key, premises
from support.websocket_programs import answer
from support.websockets import TEXT, frame

from greenroom.transports.base.net.bodies import EACH, LARGE, ReassemblyBuffer

if TYPE_CHECKING:
    from pathlib import Path

    from support.agents import Enter
    from support.https import Guest

    from greenroom.actors import ApiKeyMade

pytestmark = pytest.mark.promise("limits.bodies")

MIB = 1 << 20
BODY = 8 * MIB
UNFINISHED = b" " * (BODY - MIB)
FIT = EACH // len(UNFINISHED)


async def begin_post(here: Premises, key: ApiKeyMade | None = None) -> Guest:
    """Send a request up to a megabyte before its end."""
    guest = await here.guest()
    lines = [
        *("POST /mcp HTTP/1.1", "host: localhost", "content-type: application/json", "accept: */*"),
        f"content-length: {BODY}",
        *(f"{name}: {value}" for name, value in bearer(key).items()),
    ]
    await guest.stream.send_all("\r\n".join([*lines, "", ""]).encode() + UNFINISHED)
    return guest


async def test_bodies_of_one_key_are_limited_together_and_hinder_no_other(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        greedy, modest = await create_key(at, "audit:read"), await create_key(at, "*")
        await here.settled()
        begun = [await begin_post(here, greedy) for _ in range(FIT)]
        await here.settled()
        refused = await (await begin_post(here, greedy)).answer_to_raw()
        assert refused.startswith(b"HTTP/1.1 429 ")
        assert b"retry-after: 1" in refused.lower()
        other = await here.session(modest)
        await other.request("ping", {"x": "x" * MIB})
        assert (await other.answer()).status == 200
        await begun[0].stream.aclose()
        await here.settled()
        again = await begin_post(here, greedy)
        await again.stream.send_all(b" " * MIB)
        assert (await again.answer_to_raw()).startswith(b"HTTP/1.1 400 ")  # it was read to its end


async def test_messages_that_are_not_whole_are_limited_likewise(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        greedy, modest = await create_key(at), await create_key(at)
        await here.settled()
        part = frame(TEXT & 0x0F, b"x" * len(UNFINISHED))
        for _ in range(FIT):
            await (await here.websocket(greedy)).stream.send_all(part)
        await here.settled()
        late = await here.websocket(greedy)
        await late.stream.send_all(part)
        code, sentence = await late.closed()
        assert code == 1013, sentence
        assert "in flight" in sentence
        other = await here.websocket(modest)
        for _ in range(2 * FIT):  # what is whole is no longer counted
            await other.request("ping", {"x": "x" * (4 * MIB)})
            assert "result" in await other.receive()
        assert (await begin_post(here, greedy)) is not None


async def test_bodies_of_all_are_limited_too(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        keys = [await create_key(at) for _ in range(9)]
        await here.settled()
        for key in keys[:8]:
            for _ in range(FIT):
                await begin_post(here, key)
            # What is left of a key's own share.
            rest = await here.websocket(key)
            await rest.stream.send_all(frame(TEXT & 0x0F, b"x" * (EACH - FIT * len(UNFINISHED))))
        await here.settled()
        refused = await (await begin_post(here, keys[8])).answer_to_raw()
        assert refused.startswith(b"HTTP/1.1 503 ")


async def test_the_memory_of_what_was_never_ended_comes_back(tmp_path: Path) -> None:
    async with everywhere(tmp_path) as (here, neighbour, _, port):
        before = resident(here.process.pid)
        head = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: */*\r\n"
        async with AsyncExitStack() as stack:
            for _ in range(30):
                stream = await stack.enter_async_context(await trio.open_tcp_stream("127.0.0.1", port))
                await stream.send_all(head + b"content-length: %d\r\n\r\n" % BODY + UNFINISHED)
            with trio.fail_after(PATIENCE):
                while resident(here.process.pid) - before < 150 * 1024:
                    await answer(neighbour, "list_memory")
        with trio.fail_after(PATIENCE):
            while resident(here.process.pid) - before > 40 * 1024:
                await answer(neighbour, "list_memory")


@pytest.mark.quick
def test_what_comes_in_parts_is_what_was_sent() -> None:
    parts = [bytes([number % 251]) * (LARGE // 7 + number) for number in range(40)]
    gathering = ReassemblyBuffer()
    for _ in range(2):
        for number, part in enumerate(parts, 1):
            gathering.add(part)
            assert len(gathering) == sum(map(len, parts[:number]))
        assert gathering.take() == b"".join(parts)
        assert (len(gathering), gathering.take()) == (0, b"")
