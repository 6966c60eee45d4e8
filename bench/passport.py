"""A session of 10,000 messages as a passport: how long its export and its restoring on another server take.

In process, durability power, with the checks that a client's request gets. What is exported is read as its
resource and given to the other server as text, as tools do.
"""

from __future__ import annotations

import random
import statistics
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import trio

from bench.harness import Figure, Plan, Report, Table, check
from greenroom.actors import (
    AddMessage,
    Agent,
    ExportSession,
    GetMessages,
    PassportOptions,
    Principal,
    ReadResource,
    RestoreSession,
    StartSession,
    open_greenroom,
)

if TYPE_CHECKING:
    from pathlib import Path

    from greenroom.runtime import RuntimeClient

ROUNDS = 5
WRITERS = 64
WORDS = 60  # of a message
MOST_EXPORT_SECONDS = 1.0
MOST_RESTORE_SECONDS = 2.0


class Times(NamedTuple):
    """Seconds of the rounds, and what they moved; holds of the event loop in milliseconds."""

    exports: list[float]
    sealed: list[float]
    restores: list[float]
    document_bytes: int
    export_hold: float
    restore_hold: float


def run(plan: Plan) -> Report:
    """Measure both ways."""
    messages = plan.size(10_000, 300)
    rounds = plan.size(ROUNDS, 1)
    with plan.folder() as one, plan.folder() as two:
        times = trio.run(_there_and_back, one, two, messages, rounds)
    rows: list[list[str | int | float | None]] = [
        ["export", messages, statistics.median(times.exports), max(times.exports), times.export_hold],
        ["export under a passphrase", messages, statistics.median(times.sealed), max(times.sealed), None],
        ["restore", messages, statistics.median(times.restores), max(times.restores), times.restore_hold],
    ]
    figures = [
        Figure(what="export, s", value=statistics.median(times.exports), most=MOST_EXPORT_SECONDS),
        Figure(what="restore, s", value=statistics.median(times.restores), most=MOST_RESTORE_SECONDS),
    ]
    columns = ["job", "messages", "median s", "longest s", "longest hold of the event loop, ms"]
    title = f"a session as a passport of {times.document_bytes / 1e6:.2f} MB, in process, durability power"
    return Report(tables=[Table(title=title, columns=columns, rows=rows)], figures=figures)


async def _there_and_back(one: Path, two: Path, messages: int, rounds: int) -> Times:
    exports: list[float] = []
    sealed: list[float] = []
    restores: list[float] = []
    size = 0
    async with open_greenroom(one, embedder="none") as here, open_greenroom(two, embedder="none") as there:
        exporter = Agent(here, Principal(agent_id="exporter", user="user"))
        session = await _written(exporter, messages)
        # What only the first of them needs to import is measured by `start`.
        signer = (await exporter.ask(ExportSession(session_id=session))).signer
        importer = _importer(there, signer)
        before = here.statistics().dispatcher.longest_slice_ms
        for _ in range(rounds):
            began = time.perf_counter()
            exported = await exporter.ask(ExportSession(session_id=session))
            exports.append(time.perf_counter() - began)
            check(exported.messages == messages, f"{exported.messages} messages were exported")
            read: Any = await exporter.ask(ReadResource(uri=exported.uri))
            size = len(read.text)
            began = time.perf_counter()
            restored = await importer.ask(RestoreSession(passport=read.text))
            restores.append(time.perf_counter() - began)
            check(restored.messages == messages, f"{restored.messages} messages were restored")
            page = await importer.ask(GetMessages(session_id=restored.session_id, limit=1))
            check(page.total == messages, f"there are {page.total} messages")
        export_hold = max(before, here.statistics().dispatcher.longest_slice_ms)
        restore_hold = there.statistics().dispatcher.longest_slice_ms
        for _ in range(rounds):
            began = time.perf_counter()
            await exporter.ask(ExportSession(session_id=session, passphrase="correct horse"))  # noqa: S106
            sealed.append(time.perf_counter() - began)
    return Times(exports, sealed, restores, size, export_hold, restore_hold)


def _importer(there: RuntimeClient, signer: str) -> Agent:
    options = PassportOptions(trusted=(signer,))
    return Agent(there, Principal(agent_id="importer", user="user"), passports=options)


async def _written(agent: Agent, messages: int) -> str:
    """Start a session with so many messages; return its id."""
    random_words = random.Random(7)
    vocabulary = ["".join(random_words.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(5_000)]
    session = (await agent.ask(StartSession(purpose="to be carried", new=True))).session_id
    assert session is not None

    async def write(start: int) -> None:
        for _ in range(start, messages, WRITERS):
            content = " ".join(random_words.choices(vocabulary, k=WORDS))
            await agent.ask(AddMessage(session_id=session, content=content))

    async with trio.open_nursery() as nursery:
        for start in range(WRITERS):
            nursery.start_soon(write, start)
    return session
