"""Events that are too large for a message: whole for the service, a short text for agents, all or nothing."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from support.agents import FAST
from support.committers import crash_at, crashing
from support.passports import begun as begun_by
from support.passports import member, text_of, two

from greenroom.actors import (
    Agent,
    EraseUser,
    Event,
    ExportSession,
    GetMessages,
    Principal,
    ReadResource,
    ReadTranscript,
    RestoreSession,
    SearchContext,
    ServiceError,
    SessionService,
    open_greenroom,
)
from greenroom.actors.sessions.requests.requests import GetNewestEvents
from greenroom.runtime import ACTORS, Address, InlineCommitter, Store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from support.passports import Opens

    from greenroom.runtime import SharedRuntime

pytestmark = [pytest.mark.slow, pytest.mark.promise("service.large-events")]

MB = 1 << 20
ADA = Principal(agent_id="desk", user="ada")


def photo(name: str, size: int = 2 * MB) -> Event:
    """Return an event with a picture, and the words that stand for it."""
    return Event(
        event_type="message",
        actor="user",
        content={"text": f"see {name}", "picture": (f"{name}==" * size)[:size], "deep": [{"n": 1.5}, None]},
        shown={"text": f"see {name}"},
        event_id=name,
    )


def small(name: str) -> Event:
    return Event(event_type="message", actor="user", content={"text": name}, event_id=name)


@asynccontextmanager
async def opened(folder: Path, **options: Any) -> AsyncIterator[SharedRuntime]:
    given = {"options": FAST, "committer": InlineCommitter(), "embedder": "none", **options}
    async with open_greenroom(folder, **given) as runtime:
        yield runtime


async def begun(runtime: SharedRuntime) -> SessionService:
    service = SessionService(runtime, ADA)
    await service.create_session("s", "an app", "ada")
    return service


def kept(events: list[Event]) -> list[tuple[str, dict[str, Any]]]:
    return [(event.event_id, event.content) for event in events]


def parts_in(folder: Path) -> int:
    """Return how many records of a store that nobody uses are as large as parts are."""
    store = Store(folder)
    try:
        return sum(len(payload) > 10_000 for _, payload in store.scan(ACTORS, b""))
    finally:
        store.close()


@pytest.mark.parametrize("options", [{}, {"encryption_key": bytes(range(32))}])
async def test_it_comes_back_whole_also_after_a_start(tmp_path: Path, options: dict[str, Any]) -> None:
    below = Event(**{**dict(photo("e", MB - 200)), "event_type": "action"})  # as it is, in its message
    events = [small("a"), photo("b"), photo("c", 7 * MB + 1), small("d"), below]
    async with opened(tmp_path, **options) as runtime:
        service = await begun(runtime)
        await service.append_events("s", events[:-1])
        returned = await service.append_event("s", events[-1], {"seen": 1})
        assert kept([returned]) == kept(events[-1:])
        assert kept(await service.get_events("s")) == kept(events)
    async with opened(tmp_path, **options) as runtime:
        service = SessionService(runtime, ADA)
        assert kept(await service.get_events("s")) == kept(events)
        session = await service.get_session("s")
        assert session is not None
        assert kept(session.events) == kept(events)
        for limit in range(1, 6):
            assert kept(await service.get_events("s", limit)) == kept(events[-limit:])


async def test_a_process_that_is_attached_appends_reads_and_removes_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as owner, opened(tmp_path) as attached:
        assert (owner.role, attached.role) == ("owner", "attached")
        service = await begun(attached)
        events = [small("a"), photo("b"), photo("c", 7 * MB), photo("d", 8 * MB)]
        await service.append_events("s", events[:2])
        for event in events[2:]:
            await service.append_event("s", event)
        assert kept(await service.get_events("s")) == kept(events)
        assert kept(await SessionService(owner, ADA).get_events("s", 2)) == kept(events[-2:])
        removed = await service.pop_event("s")
        assert removed is not None
        assert kept([removed]) == kept(events[-1:])


async def test_an_encrypted_store_shows_neither_the_content_nor_who_may_see_it(tmp_path: Path) -> None:
    async with opened(tmp_path, encryption_key=bytes(range(32)), secrets=tmp_path) as runtime:
        await begun(runtime)
        private = Event(**{**dict(photo("zebra")), "visibility": "private"})
        await SessionService(runtime, Principal(agent_id="okapi", user="ada")).append_event("s", private)
    stored = (tmp_path / "greenroom.mdb").read_bytes()
    assert b"zebra" not in stored
    assert b"okapi" not in stored


@pytest.mark.quick
async def test_agents_read_and_find_the_words_that_stand_for_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as runtime:
        service, agent = await begun(runtime), Agent(runtime, ADA)
        await service.append_events("s", [photo("zebra"), small("a quagga")])
        page = await agent.ask(GetMessages(session_id="s"))
        assert [message.content for message in page.messages] == ["see zebra", "a quagga"]
        found = await agent.ask(SearchContext(session_id="s", query="zebra"))
        assert "==" not in str(found)
        assert "see zebra" in str(found)


async def test_agents_get_as_many_messages_as_if_the_contents_were_small(tmp_path: Path) -> None:
    async with opened(tmp_path) as runtime:
        service, agent = await begun(runtime), Agent(runtime, ADA)
        for number in range(6):
            await service.append_event("s", photo(f"zebra {number}", 3 * MB))
        found = await agent.ask(SearchContext(session_id="s", query="zebra"))
        assert len(found.results) == 6
        page = await agent.ask(GetMessages(session_id="s"))
        assert len(page.messages) == 6
        transcript = await agent.ask(ReadTranscript(session_id="s"))
        assert (len(transcript.messages), transcript.has_older) == (6, False)
        read: Any = await agent.ask(ReadResource(uri="greenroom://conversation/s"))
        assert len(read.recent) == 6
        newest = GetNewestEvents(session_id="s", before_id=None, limit=6)
        events = await runtime.ask(Address("session", "s"), newest, principal=ADA)
        assert len(events.events) == 2, "each of these has its content, and they must fit a frame"


async def test_what_is_removed_leaves_no_part(tmp_path: Path) -> None:
    async with opened(tmp_path / "one") as runtime:
        service = await begun(runtime)
        await service.append_events("s", [photo("a"), photo("b"), small("c"), photo("d")])
        removed = await service.pop_event("s")
        assert removed is not None
        assert kept([removed]) == kept([photo("d")])
        assert kept(await service.get_events("s")) == kept([photo("a"), photo("b"), small("c")])
    assert parts_in(tmp_path / "one") == 16
    async with opened(tmp_path / "one") as runtime:
        assert await SessionService(runtime, ADA).clear_events("s") == 3
    assert parts_in(tmp_path / "one") == 0


@pytest.mark.parametrize("way", ["delete", "erase", "erase from another's"])
async def test_nothing_is_left_of_a_session_that_is_deleted_or_of_a_person_that_is_erased(
    tmp_path: Path, way: str
) -> None:
    async with opened(tmp_path) as runtime:
        service = SessionService(runtime, ADA)
        if way == "erase from another's":
            bob = Principal(agent_id="app", user="bob")
            await SessionService(runtime, bob).create_session("s", "an app", "bob")
        else:
            await begun(runtime)
        await service.append_event("s", Event(**{**dict(photo("a")), "actor": "agent:desk"}))
        if way == "delete":
            assert await service.delete_session("s")
        else:
            await Agent(runtime, Principal(agent_id="root")).ask(EraseUser(user="ada", confirm=True))
    assert parts_in(tmp_path) == 0


@pytest.mark.parametrize("after", [False, True])
async def test_a_crash_leaves_all_of_it_or_nothing(tmp_path: Path, *, after: bool) -> None:
    async with opened(tmp_path) as runtime:
        await begun(runtime)
    with crashing():
        async with opened(tmp_path, committer=crash_at(1, after=after)) as runtime:
            await SessionService(runtime, ADA).append_events("s", [photo("a"), photo("b")])
    async with opened(tmp_path) as runtime:
        service = SessionService(runtime, ADA)
        assert kept(await service.get_events("s")) == (kept([photo("a"), photo("b")]) if after else [])
        await service.append_events("s", [photo("a"), photo("b")])
        assert kept(await service.get_events("s")) == kept([photo("a"), photo("b")])
    assert parts_in(tmp_path) == 16


async def test_two_writers_and_those_who_give_up_leave_whole_events(tmp_path: Path) -> None:
    async with opened(tmp_path) as runtime:
        service = await begun(runtime)

        async def write(number: int) -> None:
            with trio.CancelScope() as scope:
                if number % 3 == 0:
                    scope.deadline = trio.current_time() + 0.001 * number
                await service.append_events("s", [photo(f"{number}a"), small(f"{number}b")])

        async with trio.open_nursery() as nursery:
            for number in range(9):
                nursery.start_soon(write, number)
        events = await service.get_events("s")
        assert len(events) >= 12
        for first, second in zip(events[::2], events[1::2], strict=True):
            name = first.event_id
            assert kept([first, second]) == kept([photo(name), small(f"{name[:-1]}b")])


async def test_a_repeat_changes_nothing_and_another_one_of_its_id_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path) as runtime:
        service = await begun(runtime)
        for _ in range(2):
            await service.append_event("s", photo("a"))
            await service.append_events("s", [photo("a")])
        other = photo("a", 2 * MB + 1)
        for append in (service.append_event("s", other), service.append_events("s", [small("b"), other])):
            with pytest.raises(ServiceError) as refused:
                await append
            assert refused.value.code == "IDEMPOTENCY_CONFLICT"
        assert kept(await service.get_events("s")) == kept([photo("a")])


async def test_what_is_too_large_or_no_json_is_refused_with_the_limit_and_the_size(tmp_path: Path) -> None:
    async with opened(tmp_path) as runtime:
        service = await begun(runtime)
        with pytest.raises(ServiceError, match=r"content has 16,777,2.* limit is 16,777,216 bytes"):
            await service.append_event("s", photo("a", 16 * MB))
        with pytest.raises(ServiceError, match="16,777,216 bytes, and have more"):
            await service.append_events("s", [photo("a", 9 * MB), photo("b", 9 * MB)])
        with pytest.raises(ServiceError, match="limit is 1,048,576"):
            await service.append_event("s", Event(**{**dict(photo("a")), "shown": None}))
        with pytest.raises(ServiceError, match="limit is 10,000"):
            await service.append_event("s", Event(**{**dict(photo("a")), "shown": {"text": "x" * 10_001}}))
        for content in ({"n": float("nan"), "x": "x" * MB}, {"half": "\ud83d" + "x" * MB}, ["x" * 2 * MB]):
            with pytest.raises(ServiceError):
                await service.append_event("s", Event(**{**dict(photo("a")), "content": content}))
        assert await service.get_events("s") == []
    assert parts_in(tmp_path) == 0


async def test_a_passport_carries_the_words_that_stand_for_it(open_at: Opens) -> None:
    async with two(open_at) as (here, there, signer):
        claude = member(here.runtime)
        session = await begun_by(claude, "first")
        await SessionService(here.runtime, claude.principal).append_event(session, photo("zebra"))
        text = await text_of(claude, await claude.ask(ExportSession()))
        assert "zebra==zebra" not in text
        arrived = member(there.runtime, trusted=(signer,))
        await arrived.ask(RestoreSession(passport=text, tool_id="cursor"))
        events = await SessionService(there.runtime, arrived.principal).get_events(session)
        assert events[-1].content == {"text": "see zebra"}
