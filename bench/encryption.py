"""What encryption at rest costs: the same work on a store in the clear and on an encrypted one.

Agents add messages, each when its last is acknowledged (``process``: the disk is left out, whose fsync
would hide everything else), and then pages of messages are read and compared. Then the store in the clear
is rewritten into an encrypted one, which must say the same.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import trio

from bench.harness import Figure, Plan, Report, Table, check, middle, take_turns
from greenroom.actors import (
    AddMessage,
    Agent,
    CreateSession,
    GetMessages,
    Principal,
    encrypt_greenroom,
    open_greenroom,
)
from greenroom.runtime import Encryption, RuntimeOptions

if TYPE_CHECKING:
    from pathlib import Path

    from greenroom.runtime import SharedRuntime

ENCRYPTED = Encryption(lambda: bytes(32), required=True)
KINDS = {"clear": None, "encrypted": ENCRYPTED}
CALLERS = 64
PAGE = 50
_WORDS = "words of a message " * 16


def content(session: int, number: int) -> str:
    """Return what a message says: 300 characters."""
    return f"{session} {number} {_WORDS}"[:300]


class Took(NamedTuple):
    """What a message took, in microseconds."""

    wall: float
    processor: float


class Watch:
    """Begins when it is made."""

    def __init__(self) -> None:
        self._wall, self._processor = time.perf_counter(), time.process_time()

    def each(self, count: int) -> Took:
        """Return what each of ``count`` messages took."""
        wall, processor = time.perf_counter() - self._wall, time.process_time() - self._processor
        return Took(wall / count * 1e6, processor / count * 1e6)


async def write(runtime: SharedRuntime, each: int) -> Took:
    """Return what an acknowledged message takes, of several callers with a session of their own."""

    async def call(number: int) -> None:
        agent = Agent(runtime, Principal(agent_id=f"agent-{number}"))
        for position in range(each):
            await agent.ask(AddMessage(session_id=f"session-{number}", content=content(number, position)))

    for number in range(CALLERS):
        agent = Agent(runtime, Principal(agent_id=f"agent-{number}"))
        await agent.ask(CreateSession(session_id=f"session-{number}", purpose="bench"))
    watch = Watch()
    async with trio.open_nursery() as nursery:
        for number in range(CALLERS):
            nursery.start_soon(call, number)
    return watch.each(CALLERS * each)


async def read(runtime: SharedRuntime, each: int, rounds: int) -> Took:
    """Return what a message takes that is read in pages; every one of them is checked."""
    count = 0
    watch = Watch()
    for _ in range(rounds):
        for number in range(CALLERS):
            agent = Agent(runtime, Principal(agent_id=f"agent-{number}"))
            page = await agent.ask(GetMessages(session_id=f"session-{number}", limit=PAGE))
            wanted = [content(number, position) for position in range(min(PAGE, each))]
            check([message.content for message in page.messages] == wanted, "a page is another one")
            count += len(wanted)
    return watch.each(count)


async def work(folder: Path, kind: str, each: int, rounds: int) -> tuple[Took, Took]:
    """Return what writing and reading takes."""
    options = RuntimeOptions(durability="process")
    async with open_greenroom(folder, embedder="none", options=options, encryption=KINDS[kind]) as runtime:
        written = await write(runtime, each)
    async with open_greenroom(folder, embedder="none", options=options, encryption=KINDS[kind]) as runtime:
        return written, await read(runtime, each, rounds)


def run(plan: Plan) -> Report:
    """Compare the two."""
    each, rounds = plan.size((50, 10), (5, 1))
    sizes: dict[str, int] = {}

    def once(kind: str) -> list[float]:
        with plan.folder() as folder:
            written, found = trio.run(work, folder / "data", kind, each, rounds)
            sizes[kind] = (folder / "data" / "greenroom.mdb").stat().st_size
        return [*written, *found]

    turns = take_turns({kind: partial(once, kind) for kind in KINDS}, plan.size(9, 1))
    clear, encrypted = (middle(turns[kind]) for kind in KINDS)
    rows: list[list[str | int | float]] = []
    figures = []
    for place, what in enumerate(("a message written", "a message read in a page")):
        wall, processor = 2 * place, 2 * place + 1
        more = encrypted[processor] - clear[processor]
        rows.append(
            [what, clear[wall], encrypted[wall], clear[processor], encrypted[processor], more],
        )
        figures.append(Figure(what=f"{what}, µs of processor more", value=more, most=(60, 10)[place]))
    columns = ["what", "clear µs", "encrypted µs", "clear CPU µs", "encrypted CPU µs", "CPU µs more"]
    tables = [
        Table(title="the same work, medians", columns=columns, rows=rows),
        Table(
            title="the file",
            columns=["clear MB", "encrypted MB", "ratio", "rows rewritten /s"],
            rows=[
                [
                    sizes["clear"] / 1e6,
                    sizes["encrypted"] / 1e6,
                    sizes["encrypted"] / sizes["clear"],
                    _rewriting(plan, each),
                ]
            ],
        ),
    ]
    return Report(tables=tables, figures=figures)


def _rewriting(plan: Plan, each: int) -> float:
    with plan.folder() as folder:
        data = folder / "data"
        trio.run(work, data, "clear", each, 1)
        began = time.perf_counter()
        info = encrypt_greenroom(data, ENCRYPTED)
        took = time.perf_counter() - began

        async def compare() -> None:
            async with open_greenroom(data, embedder="none", encryption=ENCRYPTED) as runtime:
                await read(runtime, each, 1)

        trio.run(compare)
        return sum(table.rows for table in info.tables) / took
