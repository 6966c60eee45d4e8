"""A damaged record of a session costs its message: the others are given, and what is missing is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec import UNSET
from support.agents import begin, house, say
from support.flipped import Record, Sound, chosen, flip, records_of

from greenroom.actors import GetMessages, GetSession, ListSessions, SearchContext
from greenroom.runtime import RecordDamagedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from greenroom.actors import Agent
    from greenroom.testing import VirtualClock

pytestmark = pytest.mark.slow

SAID = {f"lantern number {number} of the harbour" for number in range(6)} | {"lantern for me alone"}
FOREIGN = "lantern of somebody else"
Seen = tuple[set[str], bool]


async def page(agent: Agent) -> Seen:
    answer = await agent.ask(GetMessages(session_id="s", limit=50))
    return {each.content for each in answer.messages}, answer.damaged is not UNSET


async def newest(agent: Agent) -> Seen:
    answer = await agent.ask(GetSession(session_id="s"))
    return {each.content for each in answer.messages}, answer.damaged is not UNSET


async def search(agent: Agent) -> Seen:
    answer = await agent.ask(SearchContext(session_id="s", query="lantern", limit=50))
    return {each.message.content for each in answer.results}, answer.damaged is not UNSET


async def listing(agent: Agent) -> Seen:
    answer = await agent.ask(ListSessions())
    found = SAID if "s" in {each.session_id for each in answer.sessions} else set()
    return found, answer.damaged is not UNSET


READS: tuple[Callable[[Agent], Awaitable[Seen]], ...] = (page, newest, search, listing)


def _is_head(record: Record) -> bool:
    """Return whether a record says what holds for all of a session, or lists it at all."""
    return record.key == b"session\0s\0uh" or record.key.startswith(b"sessions\0")


async def wrong(agent: Agent, records: list[Record]) -> list[str]:
    found: list[str] = []
    is_head = any(map(_is_head, records))
    for read in READS:
        where = f"{[record.key for record in records]}: {read.__name__}: "
        try:
            contents, is_told = await read(agent)
        except RecordDamagedError as error:
            found += [] if is_head else [f"{where}refused whole: {error}"]
            continue
        if is_told and all(FOREIGN.encode() in record.raw for record in records):
            found.append(f"{where}tells of what is another's")
        if FOREIGN in contents:
            found.append(f"{where}shows what is another's")
        if contents != SAID and not is_told:
            found.append(f"{where}lacks {SAID - contents} without a word")
        if len(SAID - contents) > len(records) and not is_head:
            found.append(f"{where}lacks {SAID - contents}")
    return found


@pytest.mark.promise("store.entries")
@pytest.mark.parametrize("damage", ["value", "key", "neighbours"])
async def test_no_single_record_costs_more_than_its_message(
    tmp_path: Path, clock: VirtualClock, damage: str
) -> None:
    folder = tmp_path / "one"
    async with house(folder, clock) as at:
        alice = await begin(at)
        await say(alice, "s", *sorted(SAID - {"lantern for me alone"}))
        await say(alice, "s", "lantern for me alone", visibility="private")
        await say(at.agent("other"), "s", FOREIGN, visibility="private")
        name = alice.principal.agent_id
    sound = Sound(folder)
    found: list[str] = []
    for records in chosen(records_of(folder, tmp_path), damage, damage):
        sound.bring_back()
        if damage == "key":  # found at the start: who looks for a key that is not there is told no more
            flip(folder, *records, in_key=True)
        async with house(folder, clock) as at:
            if damage != "key":
                flip(folder, *records)
            for _ in range(2):
                found += await wrong(at.agent(name, "planner"), records)
            if at.runtime.statistics().actors.set_aside:
                found.append(f"{records}: set aside")
    assert not found, "\n".join(found)


@pytest.mark.quick
@pytest.mark.promise("store.entries")
async def test_a_session_with_a_damaged_message_is_written_on(tmp_path: Path, clock: VirtualClock) -> None:
    folder = tmp_path / "one"
    async with house(folder, clock) as at:
        alice = await begin(at)
        await say(alice, "s", "first", "second")
        await at.runtime.verify()  # now the rows lie in their tables
        first = next(each for each in records_of(folder, tmp_path) if b"first" in each.raw)
        flip(folder, first)
        for number in range(6):
            await say(alice, "s", f"more {number}")
            answer = await alice.ask(GetMessages(session_id="s"))
            assert answer.messages[0].content == "second"
            assert answer.damaged is not UNSET
            assert "message_id" in answer.damaged.entries[0]
