"""The processes that `residency` starts: `fill` makes sessions, `touch` opens many of them again."""

from __future__ import annotations

import statistics
import sys
import time
from functools import partial
from itertools import islice
from pathlib import Path

import msgspec
import trio

import greenroom.transports.ops.cli.commands.serve  # noqa: F401  a server has all of this loaded
from bench.harness import check, percentile
from bench.servers import Memory, memory_of
from greenroom.actors import Agent, CreateSession, GetSession, Principal, open_greenroom
from greenroom.runtime import RuntimeOptions

IN_FLIGHT = 512
READERS = 64
ONE_BY_ONE = 1_000
STRIDE = 611_953  # a prime, so that no session comes twice
AGENT = Principal(agent_id="maker")


class Filled(msgspec.Struct, frozen=True):
    """What `fill` prints: sessions made a second, and the file's size."""

    rate: float
    file_bytes: int


class Touched(msgspec.Struct, frozen=True):
    """What `touch` prints."""

    idle: Memory
    after: Memory
    median_ms: float
    percentile_ms: float
    rate: float
    resident: int


def session_of(number: int) -> str:
    """Return the id of a session."""
    return f"session-{number:07}"


def purpose_of(number: int) -> str:
    """Return the purpose of a session, by which an answer is known to be the right one's."""
    return f"the purpose of session number {number}"


def chosen(number: int, sessions: int) -> int:
    """Return which session is touched as the one with this number: each once, and all over the store."""
    return number * STRIDE % sessions


async def fill(data: Path, sessions: int) -> Filled:
    """Make sessions as a client would, many at a time."""
    numbers = iter(range(sessions))
    async with open_greenroom(data, options=RuntimeOptions(durability="process")) as runtime:
        agent = Agent(runtime, AGENT)

        async def make() -> None:
            for number in numbers:
                session_id = session_of(number)
                made = await agent.ask(CreateSession(session_id=session_id, purpose=purpose_of(number)))
                check(made.session_id == session_id, f"{made} answers the making of {session_id}")

        began = time.perf_counter()
        async with trio.open_nursery() as nursery:
            for _ in range(IN_FLIGHT):
                nursery.start_soon(make)
        elapsed = time.perf_counter() - began
        return Filled(sessions / elapsed, runtime.statistics().store.file_bytes)


async def touch(data: Path, sessions: int, touches: int) -> Touched:
    """Read sessions that are not in memory, and measure what that leaves there."""
    order = (chosen(number, sessions) for number in range(1, touches + 1))  # no list that takes memory
    one_by_one = min(ONE_BY_ONE, touches // 2)
    times = []
    async with open_greenroom(data) as runtime:
        agent = Agent(runtime, AGENT)

        async def read(number: int) -> None:
            session_id = session_of(number)
            answer = await agent.ask(GetSession(session_id=session_id))
            check(
                answer.session.purpose == purpose_of(number), f"{answer} answers the reading of {session_id}"
            )

        await read(0)
        idle = memory_of("self")
        for number in islice(order, one_by_one):
            began = time.perf_counter()
            await read(number)
            times.append((time.perf_counter() - began) * 1e3)

        async def read_on() -> None:
            for number in order:
                await read(number)

        began = time.perf_counter()
        async with trio.open_nursery() as nursery:
            for _ in range(READERS):
                nursery.start_soon(read_on)
        rate = (touches - one_by_one) / (time.perf_counter() - began)
        after = memory_of("self")
        resident = runtime.statistics().actors.resident
    return Touched(idle, after, statistics.median(times), percentile(times, 99), rate, resident)


def main() -> None:
    """Do what the command line says and print the result as JSON."""
    verb, data, *numbers = sys.argv[1:]
    do = partial(fill if verb == "fill" else touch, Path(data), *map(int, numbers))
    sys.stdout.buffer.write(msgspec.json.encode(trio.run(do)))


if __name__ == "__main__":
    main()
