"""What encryption at rest costs: the same work on a store in the clear and on an encrypted one.

Agents add messages, each when its last is acknowledged (``process``: the disk is left out, whose fsync
would hide everything else), and then pages of messages are read and compared. Then the store in the clear
is rewritten into an encrypted one, which must say the same.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import trio

from bench.harness import Figure, Plan, Report, Table, check, medians, take_turns
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


def content(session: int, number: int) -> str:
    """Return what a message says: 300 characters."""
    return f"{session} {number} ".ljust(300, "words of a message ")


async def write(runtime: SharedRuntime, each: int) -> float:
    """Return how many messages a second are acknowledged, of several callers with a session of their own."""

    async def call(number: int) -> None:
        agent = Agent(runtime, Principal(agent_id=f"agent-{number}"))
        for position in range(each):
            await agent.ask(AddMessage(session_id=f"session-{number}", content=content(number, position)))

    for number in range(CALLERS):
        agent = Agent(runtime, Principal(agent_id=f"agent-{number}"))
        await agent.ask(CreateSession(session_id=f"session-{number}", purpose="bench"))
    began = time.perf_counter()
    async with trio.open_nursery() as nursery:
        for number in range(CALLERS):
            nursery.start_soon(call, number)
    return CALLERS * each / (time.perf_counter() - began)


async def read(runtime: SharedRuntime, each: int, rounds: int) -> float:
    """Return how many messages a second are read in pages, and check every one of them."""
    count = 0
    began = time.perf_counter()
    for _ in range(rounds):
        for number in range(CALLERS):
            agent = Agent(runtime, Principal(agent_id=f"agent-{number}"))
            page = await agent.ask(GetMessages(session_id=f"session-{number}", limit=PAGE))
            wanted = [content(number, position) for position in range(min(PAGE, each))]
            check([message.content for message in page.messages] == wanted, "a page is another one")
            count += len(wanted)
    return count / (time.perf_counter() - began)


async def work(folder: Path, kind: str, each: int, rounds: int) -> tuple[float, float]:
    """Return the rates of writing and of reading."""
    options = RuntimeOptions(durability="process")
    async with open_greenroom(folder, embedder="none", options=options, encryption=KINDS[kind]) as runtime:
        written = await write(runtime, each)
    async with open_greenroom(folder, embedder="none", options=options, encryption=KINDS[kind]) as runtime:
        return written, await read(runtime, each, rounds)


def run(plan: Plan) -> Report:
    """Compare the two."""
    each, rounds = plan.size((50, 10), (5, 1))
    reads: dict[str, list[float]] = {kind: [] for kind in KINDS}
    sizes: dict[str, int] = {}

    def once(kind: str) -> float:
        with plan.folder() as folder:
            written, found = trio.run(work, folder / "data", kind, each, rounds)
            reads[kind].append(found)
            sizes[kind] = (folder / "data" / "greenroom.mdb").stat().st_size
        return written

    rates = medians(take_turns({kind: partial(once, kind) for kind in KINDS}, plan.size(7, 1)))
    rows: list[list[str | int | float]] = []
    figures = []
    found = medians(reads)
    for what, by_kind in (("messages written", rates), ("messages read in pages", found)):
        clear, encrypted = by_kind["clear"], by_kind["encrypted"]
        more = 1e6 / encrypted - 1e6 / clear
        rows.append([what, clear, encrypted, more, encrypted / clear])
        figures.append(Figure(what=f"{what}, encrypted to clear", value=encrypted / clear, least=0.7))
    size = sizes["encrypted"] / sizes["clear"]
    speed = _rewriting(plan, each)
    columns = ["what", "clear /s", "encrypted /s", "µs more for each", "ratio"]
    tables = [
        Table(title="the same work", columns=columns, rows=rows),
        Table(
            title="the file",
            columns=["bytes, clear", "bytes, encrypted", "ratio", "rows rewritten /s"],
            rows=[[sizes["clear"], sizes["encrypted"], size, speed]],
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
