"""Agents at work in a runtime with sessions and memory, on virtual time."""

from __future__ import annotations

import datetime as dt
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import msgspec
import pytest

from greenroom.actors import (
    AddMessage,
    Agent,
    AuditRow,
    CreateSession,
    GetMemory,
    GetMessages,
    ListMemory,
    Principal,
    SetMemory,
    open_greenroom,
)
from greenroom.runtime import IndexReader, InlineCommitter, Procedure, Refusal, RuntimeOptions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from greenroom.runtime import RuntimeClient
    from greenroom.testing import VirtualClock

LONG_AGO = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
FAR_AHEAD = dt.datetime(2100, 1, 1, tzinfo=dt.UTC)

FAST = RuntimeOptions(durability="process")
"""These tests are about answers; that an answer is on disk is shown elsewhere."""


class Enter(Protocol):
    """`open_greenroom` on the test's folder, with an inline committer and a virtual clock."""

    def __call__(self, **options: Any) -> AbstractAsyncContextManager[House]: ...


class House:
    """A runtime and those who work in it.

    Attributes:
        clock: Its wall clock; move it with `tick`.
    """

    def __init__(self, runtime: RuntimeClient, clock: VirtualClock) -> None:
        self.runtime = runtime
        self.clock = clock

    def agent(self, agent_id: str, agent_type: str | None = None, **identity: Any) -> Agent:
        return Agent(self.runtime, Principal(agent_id=agent_id, agent_type=agent_type, **identity))

    def tick(self, seconds: float = 1.0) -> None:
        self.clock.jump(round(seconds * 1_000_000))


@asynccontextmanager
async def house(folder: Path, clock: VirtualClock, **options: Any) -> AsyncIterator[House]:
    settings: dict[str, Any] = {
        "clock": clock,
        "committer": InlineCommitter(),
        "options": FAST,
        "embedder": "none",
    } | options
    async with open_greenroom(folder, **settings) as runtime:
        yield House(runtime, clock)


def json(text: str) -> msgspec.Raw:
    return msgspec.Raw(text.encode())


def wire(reply: Any) -> Any:
    """Return what a client would parse from a reply."""
    return msgspec.json.decode(msgspec.json.encode(reply))


@contextmanager
def refused(code: str, **details: Any) -> Iterator[pytest.ExceptionInfo[Refusal]]:
    """Expect a refusal with this code and, among others, these details."""
    with pytest.raises(Refusal) as caught:
        yield caught
    refusal = caught.value
    assert (refusal.code, {**refusal.details, **details}) == (code, refusal.details)


async def say(agent: Agent, session_id: str, *contents: str, **options: Any) -> list[int]:
    """Add messages; return their ids."""
    return [
        (await agent.ask(AddMessage(session_id=session_id, content=content, **options))).message_id
        for content in contents
    ]


async def begin(at: House, **arguments: Any) -> Agent:
    """Return alice, a planner, after she has created the session ``s``."""
    alice = at.agent("alice", "planner")
    await alice.ask(CreateSession(purpose="p", session_id="s", **arguments))
    return alice


async def contents(agent: Agent, **arguments: Any) -> list[str]:
    """Return what an agent reads in the session ``s``."""
    page = await agent.ask(GetMessages(session_id="s", **arguments))
    return [message.content for message in page.messages]


async def keep(agent: Agent, key: str, value: str = "1", **arguments: Any) -> int:
    """Set a memory; return its version."""
    return (await agent.ask(SetMemory(key=key, value=json(value), **arguments))).version


async def value_of(agent: Agent, key: str, **arguments: Any) -> str:
    """Return a memory's JSON."""
    return bytes((await agent.ask(GetMemory(key=key, **arguments))).value).decode()


async def keys(agent: Agent, **arguments: Any) -> list[str]:
    """Return the keys of a listing."""
    return [entry.key for entry in (await agent.ask(ListMemory(**arguments))).entries]


def moment(microseconds: int) -> dt.datetime:
    """Return a time of the runtime's clock as replies have it."""
    return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=microseconds)


class AuditTrail(Procedure[list[AuditRow]], frozen=True, kw_only=True):
    """The audit records, oldest first."""

    runs = "snapshot"
    flushes_journals: ClassVar[bool] = True

    def run(self, reader: IndexReader) -> list[AuditRow]:
        return [
            msgspec.structs.replace(entry.value, at=entry.time)
            for entry in reader.entries("audit", AuditRow)
            for _ in range(entry.times)
        ]
