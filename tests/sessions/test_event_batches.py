"""Events of a session appended several at once, read from the end, and removed for good."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from support.agents import FAST, AuditTrail, contents, refused
from support.embedding import WAITS, Settled

from greenroom.actors import (
    AddMessage,
    Agent,
    Event,
    GetMessages,
    GetSession,
    ListSessions,
    Principal,
    SearchBySender,
    SearchContext,
    ServiceError,
    SessionService,
    open_greenroom,
)

if TYPE_CHECKING:
    from pathlib import Path

    from support.agents import Enter, House

pytestmark = pytest.mark.slow

MB = 1 << 20
WHO = Principal(agent_id="alice", agent_type="planner")


def event(text: str, event_id: str, **fields: Any) -> Event:
    given = {"event_type": "message", "actor": "user", "content": {"text": text}, "event_id": event_id}
    return Event(**given | fields)


def numbered(*numbers: int, prefix: str = "e") -> list[Event]:
    return [event(f"text {number}", f"{prefix}{number}") for number in numbers]


async def opened(at: House, *events: Event) -> SessionService:
    """Return a service after it has created the session ``s`` with these events."""
    service = SessionService(at.runtime, WHO)
    await service.create_session("s", "an app", None)
    await service.append_events("s", events)
    return service


async def ids(service: SessionService, limit: int | None = None, prefix: str = "") -> list[str]:
    return [each.event_id for each in await service.get_events("s", limit, prefix)]


@pytest.mark.quick
@pytest.mark.promise("service.several")
async def test_events_are_appended_all_or_none_and_a_repeat_of_them_adds_none(enter: Enter) -> None:
    async with enter() as at:
        service = await opened(at)
        await service.append_events("s", numbered(1, 2, 3))
        await service.append_events("s", numbered(1, 2, 3))
        await service.append_events("s", numbered(3, 4))
        await service.append_events("s", [])
        whole = ["e1", "e2", "e3", "e4"]
        assert await ids(service) == whole
        bad: list[tuple[str, list[Event]]] = [
            ("IDEMPOTENCY_CONFLICT", [*numbered(5, 6), event("another", "e1")]),
            ("IDEMPOTENCY_CONFLICT", [*numbered(5, 6), event("another", "e5")]),
            ("VALIDATION_ERROR", [*numbered(5), event("x" * 10_001, "long")]),
            ("VALIDATION_ERROR", [*numbered(5), event("x", "big", content={"blob": "x" * MB})]),
            ("VALIDATION_ERROR", [event("", f"b{n}", content={"blob": "x" * (MB - 99)}) for n in range(17)]),
            ("VALIDATION_ERROR", [*numbered(5), event("x", "message_7")]),
            ("SERIALIZATION_ERROR", [*numbered(5), event("\ud800", "lone")]),
        ]
        for code, events in bad:
            with refused(code):
                await service.append_events("s", events)
        assert await ids(service) == whole
        assert [each.content for each in await service.get_events("s", 2)] == [
            {"text": "text 3"},
            {"text": "text 4"},
        ]
        with refused("SESSION_NOT_FOUND"):
            await service.append_events("t", numbered(1))
        await service.update_status("s", "terminated")
        await service.append_events("s", numbered(1, 4))  # they are there
        with refused("SESSION_CLOSED"):
            await service.append_events("s", numbered(4, 5))


@pytest.mark.quick
@pytest.mark.promise("service.newest")
async def test_the_newest_events_are_read_in_order_whatever_lies_between_and_however_large_they_are(
    enter: Enter,
) -> None:
    async with enter() as at:
        service = await opened(at, *(event(str(n), f"a{n}") for n in range(1_100)))
        large = [event("", f"b{n}", event_type="action", content={"blob": "x" * (MB - 99)}) for n in range(9)]
        await service.append_events("s", large)
        await at.agent("bob").ask(AddMessage(session_id="s", content="in between"))
        await SessionService(at.runtime, Principal(agent_id="eve")).append_events(
            "s", [event("aside", "a-hidden", visibility="private")]
        )
        everything = [*(f"a{n}" for n in range(1_100)), *(f"b{n}" for n in range(9))]
        assert (await ids(service))[:-1] == everything
        assert next(each.event_id for each in await service.get_events("s", 1)).startswith("message_")
        for limit in (1, 9, 499, 500, 501, 1_000, 1_001, 1_100, 5_000):
            assert await ids(service, limit, "a") == everything[:1_100][-limit:]
        assert await ids(service, 9, "b") == everything[-9:]
        assert await ids(service, 3, "b") == everything[-3:]
        assert await ids(service, None, "none such") == []
        for limit in (0, -1):
            with refused("VALIDATION_ERROR", field="limit"):
                await service.get_events("s", limit)


async def figures(at: House, who: str = "alice") -> dict[str, Any]:
    """Return what an agent is told of the session ``s`` by counts, lists and searches."""
    agent = at.agent(who, "planner")
    [listed] = (await agent.ask(ListSessions())).sessions
    read = await agent.ask(GetSession(session_id="s"))
    page = await agent.ask(GetMessages(session_id="s", limit=1))
    found = await agent.ask(SearchContext(session_id="s", query="text", recent_hours=None, limit=100))
    said = await agent.ask(SearchBySender(session_id="s", sender="user"))
    assert listed.message_count == read.statistics.message_count == page.total == len(await contents(agent))
    assert listed.status == read.session.status
    assert listed.last_activity == read.statistics.last_activity
    return {
        "count": page.total,
        "status": listed.status,
        "agents": read.statistics.unique_agents,
        "found": sorted(hit.message.content for hit in found.results),
        "scanned": found.scanned,
        "said": [message.content for message in said.messages],
        "truncated": said.truncated,
    }


@pytest.mark.promise("service.removed")
async def test_what_is_removed_is_in_no_list_count_search_or_page_nor_after_a_start(enter: Enter) -> None:
    one_left = {
        "count": 1,
        "status": "active",
        "agents": 1,
        "found": ["text 1"],
        "scanned": 1,
        "said": ["text 1"],
        "truncated": False,
    }
    async with enter() as at:
        service = await opened(
            at, *numbered(1, 2), event("", "call", event_type="tool_call", content={"a": 1})
        )
        await service.append_events("s", [event("a reply", "reply", actor="agent:alice")])
        before = await figures(at)
        assert (before["count"], before["agents"], before["scanned"]) == (4, 2, 4)
        page = await at.agent("bob").ask(GetMessages(session_id="s", limit=1))
        newest = (await at.agent("bob").ask(GetMessages(session_id="s"))).messages[-1].message_id
        popped = [await service.pop_event("s") for _ in range(3)]
        assert [each.event_id for each in popped if each] == ["reply", "call", "e2"]
        assert popped[1] is not None
        assert popped[1].content == {"a": 1}
        assert await figures(at) == one_left
        rest = await at.agent("bob").ask(GetMessages(session_id="s", cursor=page.next_cursor))
        assert (rest.messages, rest.next_cursor) == ([], None)
        at.tick()
        await service.append_events("s", numbered(3))
        later = await at.agent("bob").ask(GetMessages(session_id="s", since_id=newest))
        assert [message.content for message in later.messages] == ["text 3"]
        assert await service.pop_event("s") is not None
        await service.append_events("s", numbered(2))  # its id is free again
        assert await service.pop_event("s") is not None
    async with enter() as at:
        assert await figures(at) == one_left
        service = SessionService(at.runtime, WHO)
        assert await service.clear_events("s") == 1
        assert await service.clear_events("s") == 0
        assert await service.pop_event("s") is None
        nothing = await figures(at)
        assert nothing == one_left | {
            "count": 0, "status": "created", "agents": 0, "found": [], "scanned": 0, "said": []
        }  # fmt: skip
        at.tick()
        await service.append_events("s", numbered(1))
        assert await figures(at) == one_left
    async with enter() as at:
        assert await figures(at) == one_left
        told = [row for row in await at.runtime.query(AuditTrail()) if row.action == "remove_events"]
        assert len(told) == 6
        assert b"text" not in msgspec.json.encode(told)


@pytest.mark.quick
@pytest.mark.promise("service.removed")
async def test_nothing_is_removed_that_is_not_asked_for_hidden_or_of_a_session_that_ended(
    enter: Enter,
) -> None:
    async with enter() as at:
        service = await opened(at, *numbered(1), *numbered(1, 2, prefix="other"))
        await at.agent("bob").ask(AddMessage(session_id="s", content="bob's"))
        eve = SessionService(at.runtime, Principal(agent_id="eve"))
        await eve.append_events("s", [event("aside", "e9", visibility="private")])
        popped = await service.pop_event("s", "e")
        assert popped is not None
        assert popped.event_id == "e1"
        assert await service.pop_event("s", "e") is None
        assert await service.clear_events("s", "other") == 2
        assert await contents(at.agent("bob")) == ["bob's"]
        assert await service.clear_events("s") == 1
        assert [each.event_id for each in await eve.get_events("s")] == ["e9"]
        assert (await figures(at, "eve"))["count"] == 1
        stranger = SessionService(at.runtime, Principal(agent_id="eve", projects=frozenset()))
        await service.create_session("kept", "app", None, project_id="atlas")
        await service.append_events("kept", numbered(1))
        for asked in (stranger.pop_event, stranger.clear_events, stranger.get_events):
            with refused("SESSION_NOT_FOUND"):
                await asked("kept")
        await service.update_status("kept", "terminated")
        for asked in (service.pop_event, service.clear_events):
            with pytest.raises(ServiceError, match="terminated"):
                await asked("kept")
        assert len(await service.get_events("kept")) == 1


@pytest.mark.promise("service.removed")
async def test_what_is_removed_while_it_is_embedded_holds_up_no_other(
    folder: Path,
) -> None:
    model = "python:support.meanings:Meanings"
    async with open_greenroom(folder, embedder=model, queries=WAITS, options=FAST) as runtime:
        bob, service = Agent(runtime, Principal(agent_id="bob")), SessionService(runtime)
        await service.create_session("s", "an app", None)
        await service.append_events("s", numbered(1, 2, 3))
        search = SearchContext(session_id="s", query="text", fuzzy_threshold=0)
        assert (await bob.ask(search)).partial
        await service.pop_event("s")
        await bob.ask(search)  # the embedder may have begun before it, or not
        await runtime.query(Settled())
        found = await bob.ask(search)
        assert sorted(hit.message.content for hit in found.results) == ["text 1", "text 2"]
        assert not found.partial
        await service.clear_events("s")
        await service.append_events("s", numbered(4))
        assert (await bob.ask(search)).partial
        await runtime.query(Settled())
        found = await bob.ask(search)
        assert [hit.message.content for hit in found.results] == ["text 4"]
        assert not found.partial
