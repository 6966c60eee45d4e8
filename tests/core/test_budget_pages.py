"""Whoever reads a list under a budget, page by page, is given or told of everything in it once."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing
from hypothesis import example, given
from hypothesis import strategies as st
from support.agents import house, json

from greenroom.actors import (
    AddMessage,
    CreateSession,
    GetMessages,
    ListMemories,
    ListMemory,
    ListSessions,
    SetMemory,
    StoreMemory,
)
from greenroom.testing import VirtualClock

if TYPE_CHECKING:
    from greenroom.actors import Agent

pytestmark = pytest.mark.slow

LISTS: dict[str, tuple[Any, str, str]] = {
    "messages": (GetMessages(session_id="s"), "messages", "message_id"),
    "memories": (ListMemories(), "memories", "memory_id"),
    "keys": (ListMemory(), "entries", "key"),
    "sessions": (ListSessions(), "sessions", "session_id"),
}


async def ids(agent: Agent, name: str, **arguments: Any) -> tuple[list[Any], list[Any]]:
    """Return what is given and what is named on all pages of a list."""
    request, container, member = LISTS[name]
    given_ids: list[Any] = []
    named: list[Any] = []
    cursor = None
    while True:
        fields = {field: getattr(request, field) for field in request.__struct_fields__}
        page = await agent.ask(type(request)(**{**fields, **arguments, "cursor": cursor}))
        given_ids += [getattr(each, member) for each in getattr(page, container)]
        if page.over_budget:
            named += [getattr(each, member) for each in page.over_budget]
        if (cursor := page.next_cursor) is None:
            return given_ids, named


@pytest.mark.promise("recall.budget")
@given(
    sizes=st.lists(st.sampled_from([1, 50, 400, 3_000]), max_size=6),
    budget=st.sampled_from([1, 90, 150, 300, 2_000]),
    limit=st.integers(1, 4),
)
@example(sizes=[3_000, 3_000, 3_000, 3_000, 1], budget=150, limit=2)
def test_every_list_gives_or_names_everything_once(sizes: list[int], budget: int, limit: int) -> None:
    async def walk() -> None:
        with tempfile.TemporaryDirectory() as folder:
            async with house(Path(folder), VirtualClock(), embedder="none") as at:
                agent = at.agent("alice")
                await agent.ask(CreateSession(purpose="p", session_id="s"))
                for number, size in enumerate(sizes):
                    at.tick()
                    text = "x" * size
                    await agent.ask(AddMessage(session_id="s", content=text))
                    await agent.ask(StoreMemory(content=text, namespace="agent:alice:deep"))
                    await agent.ask(SetMemory(key=f"{number}{'k' * min(200, size)}", value=json("1")))
                    await agent.ask(CreateSession(purpose="p" * min(500, size), session_id=f"s{number}"))
                for name in LISTS:
                    whole, nothing = await ids(agent, name)
                    kept, named = await ids(agent, name, max_tokens=budget, limit=limit)
                    assert nothing == []
                    assert sorted([*kept, *named]) == sorted(whole), name
                    assert kept == [each for each in whole if each in kept], name

    trio.run(walk, clock=trio.testing.MockClock())
