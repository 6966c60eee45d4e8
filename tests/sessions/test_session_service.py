"""The session service: what it promises an embedding program, and what agents see of its events."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
from support.agents import FAR_AHEAD, LONG_AGO, begin, contents, json, moment, refused, say

from greenroom.actors import (
    AddMessage,
    CreateSession,
    Event,
    GetMessages,
    ListSessions,
    Principal,
    SearchContext,
    ServiceError,
    Session,
    SessionService,
)
from greenroom.runtime import GreenroomError, InlineCommitter, StorageFullError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from support.agents import Enter, House

    from greenroom.runtime import Store, WriteBatch

pytestmark = pytest.mark.slow


def event(text: str = "hello", **fields: Any) -> Event:
    return Event(**{"event_type": "message", "actor": "user", "content": {"text": text}} | fields)


async def opened(at: House, **arguments: Any) -> SessionService:
    """Return a service after it has created the session ``s``."""
    service = SessionService(at.runtime)
    await service.create_session("s", "an app", "ada", **arguments)
    return service


async def read(service: SessionService, session_id: str = "s") -> Session:
    session = await service.get_session(session_id)
    assert session is not None
    return session


@pytest.mark.quick
@pytest.mark.promise("service.session")
async def test_a_session_comes_back_with_all_its_fields_events_and_state(enter: Enter) -> None:
    async with enter() as at:
        service = await opened(at, project_id="atlas", initial_state={"user:name": "Ada", "n": 10**30})
        began = at.clock.now()
        at.tick()
        said = dt.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=dt.timezone(dt.timedelta(hours=2)))
        given = event(
            event_id="e1",
            event_type="tool_call",
            actor="agent:planner",
            content={"z": [1.5, None, {"ключ": "\N{FROG FACE}"}], "a": 10**30, "": True},
            timestamp=said,
            is_final_response=True,
        )
        appended = await service.append_event("s", given, {"app:seen": [1]})
        assert appended == given
        later = at.clock.now()
        await service.append_event("s", {"event_type": "message", "actor": "user", "content": {"text": "hi"}})
    async with enter() as at:
        session = await read(SessionService(at.runtime))
        first, second = session.events
        assert first == given
        assert list(first.content) == ["z", "a", ""]
        assert (second.event_type, second.actor, second.content) == ("message", "user", {"text": "hi"})
        assert (second.timestamp, second.is_final_response) == (moment(later), False)
        assert second.event_id not in {"", "e1"}
        assert Session(**{**session, "events": []}) == Session(
            session_id="s",
            app_name="an app",
            user_id="ada",
            project_id="atlas",
            purpose="an app",
            status="active",
            created_at=moment(began),
            created_by="app",
            updated_at=moment(later),
            terminated_at=None,
            metadata={},
            state={"user:name": "Ada", "n": 10**30, "app:seen": [1]},
            events=[],
        )
        assert await SessionService(at.runtime).get_session("elsewhere") is None
        assert await SessionService(at.runtime).get_session("no id at all") is None


@pytest.mark.promise("service.by-key")
async def test_results_are_read_by_key_and_by_attribute(enter: Enter) -> None:
    async with enter() as at:
        service = await opened(at)
        appended = await service.append_event("s", event("hi"))
        session = await read(service)
        assert session["status"] == session.status == "active"
        assert session["events"][0]["content"]["text"] == "hi"
        assert dict(session["events"][0]) == dict(appended) == {name: appended[name] for name in appended}
        assert ("actor" in appended, "nothing" in appended) == (True, False)
        assert (appended.get("actor"), appended.get("nothing"), appended.get("nothing", 1)) == (
            "user",
            None,
            1,
        )
        for wrong in ("nothing", "__class__", "keys"):
            with pytest.raises(KeyError, match=wrong):
                appended[wrong]


@pytest.mark.promise("service.one-log")
async def test_events_are_messages_for_agents(enter: Enter) -> None:
    async with enter() as at:
        service = await opened(at)
        bob = at.agent("bob")
        await service.append_event("s", event("Where are the frogs?"))
        at.tick()
        await service.append_event("s", event(content={"text": "ponds", "metadata": {"source": "atlas"}}))
        at.tick()
        call = event(event_type="tool_call", actor="agent:finder", content={"tool": "grep", "for": "toads"})
        await service.append_event("s", call)
        at.tick()
        older = dt.datetime(2000, 1, 1)  # noqa: DTZ001  a time without a zone is the point: it is UTC
        appended = await service.append_event("s", event("older", timestamp=older, actor="system"))
        assert appended.timestamp == LONG_AGO
        messages = (await bob.ask(GetMessages(session_id="s"))).messages
        assert [
            (message.sender, message.message_type, message.content, bytes(message.metadata))
            for message in messages
        ] == [
            ("user", "message", "Where are the frogs?", b"{}"),
            ("user", "message", "ponds", b'{"source":"atlas"}'),
            ("finder", "tool_call", '{"tool":"grep","for":"toads"}', b"{}"),
            ("system", "message", "older", b"{}"),
        ]
        assert all(message.timestamp > LONG_AGO for message in messages)
        for word, found in [("frogs", 0), ("toads", 2), ("atlas", 1)]:
            hits = (await bob.ask(SearchContext(session_id="s", query=word))).results
            assert [hit.message.message_id for hit in hits] == [messages[found].message_id]


@pytest.mark.quick
@pytest.mark.promise("service.one-log")
async def test_a_message_is_an_event_for_the_service(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)
        service = SessionService(at.runtime)
        [plain] = await say(alice, "s", "plain")
        at.tick()
        [hidden] = await say(alice, "s", "hidden", visibility="private")
        at.tick()
        added = await alice.ask(
            AddMessage(
                session_id="s",
                content="rich",
                message_type="plan",
                metadata=json('{"x":1, "digits": ' + "9" * 300 + "}"),
                parent_message_id=plain,
            )
        )
        await say(alice, "s", "answer to the hidden one", parent_message_id=hidden)
        first, second, third = (await read(service)).events
        assert first.event_id == f"message_{plain}"
        assert (first.event_type, first.actor, first.content) == (
            "message",
            "agent:alice",
            {"text": "plain"},
        )
        assert not first.is_final_response
        assert second.timestamp == added.timestamp
        digits = second.content["metadata"].pop("digits")
        assert str(digits) == "9" * 300
        assert second.content == {
            "text": "rich",
            "metadata": {"x": 1},
            "message_type": "plan",
            "parent_message_id": plain,
        }
        assert third.content == {"text": "answer to the hidden one"}

        at.tick()
        assert await service.append_event("s", first) == first
        for made_up in (f"message_{hidden}", "message_5", f"message_0{plain}", "message_" + "9" * 200):
            with refused("VALIDATION_ERROR", field="event_id"):
                await service.append_event("s", event(event_id=made_up))
        assert len((await read(service)).events) == 3


CONTENTS: list[dict[str, Any]] = [
    {},
    {"text": ""},
    {"text": "a"},
    {"text": 'a\u0000\u2028"\\'},
    {"text": None},
    {"text": ["a"]},
    {"text": "a", "role": "model"},
    {"text": "a", "metadata": {}},
    {"text": "a", "metadata": None},
    {"text": "a", "metadata": [1]},
    {"text": "a", "metadata": {"k": {"k": 1}}},
    {"metadata": {"k": 1}, "text": "a"},
    {"parts": [{"text": "a"}], "n": -0.0, "big": 2**70, "e": 1e22},
]


@pytest.mark.quick
@pytest.mark.promise("service.event-content")
@pytest.mark.parametrize("content", CONTENTS)
async def test_any_object_of_json_comes_back_as_it_was(enter: Enter, content: dict[str, Any]) -> None:
    async with enter() as at:
        service = await opened(at)
        await service.append_event("s", event(content=content))
        [found] = (await read(service)).events
        assert repr(found.content) == repr(content)
        assert all(await contents(at.agent("bob")))


@pytest.mark.promise("service.event-content")
@pytest.mark.parametrize(
    "content",
    [
        {"a": float("nan")},
        {"a": float("inf")},
        {"a": (1, 2)},
        {1: "a"},
        {"a": {None: 1}},
        {"a": {1, 2}},
        {"a": b"bytes"},
        {"a": dt.datetime(2026, 1, 1, tzinfo=dt.UTC)},
        {"a": "\ud800"},
        {"a": 10**5_000},
    ],
)
async def test_what_json_cannot_hold_is_refused(enter: Enter, content: Any) -> None:
    deep: Any = 1
    for _ in range(20_000):
        deep = [deep]
    async with enter() as at:
        service = await opened(at)
        for unfit in (content, {"deep": deep}):
            with refused("SERIALIZATION_ERROR"):
                await service.append_event("s", event(content=unfit))
            with refused("SERIALIZATION_ERROR"):
                await service.append_event("s", event(), unfit)
            with refused("SERIALIZATION_ERROR"):
                await service.set_state("s", "k", unfit)
        assert (await read(service)).events == []


@pytest.mark.promise("service.value-errors")
async def test_every_no_is_a_value_error_that_changes_nothing(enter: Enter) -> None:
    async with enter() as at:
        service = await opened(at, initial_state={"k": 1})
        await service.append_event("s", event(event_id="first"))
        before = await read(service)
        fine: dict[str, Any] = {"event_type": "message", "actor": "user", "content": {"text": "x"}}
        wrong: list[tuple[str, Callable[[], Awaitable[Any]]]] = [
            ("KEY_EXISTS", lambda: service.create_session("s", "app", "ada")),
            ("VALIDATION_ERROR", lambda: service.create_session("a b", "app", "ada")),
            ("VALIDATION_ERROR", lambda: service.create_session("all", "app", "ada")),
            ("VALIDATION_ERROR", lambda: service.create_session("t", "", "ada")),
            ("SESSION_NOT_FOUND", lambda: service.append_event("nowhere", event())),
            ("SESSION_NOT_FOUND", lambda: service.update_status("nowhere", "active")),
            ("SESSION_NOT_FOUND", lambda: service.set_state("nowhere", "k", 1)),
            ("VALIDATION_ERROR", lambda: service.update_status("s", "open")),
            ("VALIDATION_ERROR", lambda: service.update_status("s", "created")),
            ("VALIDATION_ERROR", lambda: service.update_status("s", "archived")),
            *(
                ("VALIDATION_ERROR", lambda bad=bad: service.append_event("s", fine | bad))
                for bad in [
                    {"event_type": "thought"},
                    {"actor": "ada"},
                    {"actor": "agent:"},
                    {"actor": "agent:a b"},
                    {"actor": None},
                    {"content": None},
                    {"content": "text"},
                    {"content": {"text": "x" * 10_001}},
                    {"event_type": "action", "content": {"text": "x" * 1_048_576}},
                    {"event_id": ""},
                    {"event_id": "x" * 256},
                    {"event_id": 5},
                    {"timestamp": "yesterday"},
                    {"timestamp": 1_700_000_000},
                    {"timestamp": dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=14)))},
                    {"timestamp": "0001-01-01T00:00:00+12:00"},
                    {"is_final_response": 1},
                    {"visibility": "secret"},
                    {"session_id": "s"},
                    {"author": "ada"},
                ]
            ),
            *(
                (
                    "VALIDATION_ERROR",
                    lambda missing=missing: service.append_event("s", without(fine, missing)),
                )
                for missing in fine
            ),
            ("VALIDATION_ERROR", lambda: service.append_event("s", event(), {"k": "x" * 1_048_577})),
            ("VALIDATION_ERROR", lambda: service.set_state("s", "k", "x" * 1_048_577)),
        ]
        for code, attempt in wrong:
            with pytest.raises(ValueError) as caught:  # noqa: PT011  the code says which
                await attempt()
            assert isinstance(caught.value, ServiceError)
            assert isinstance(caught.value, GreenroomError)
            assert (caught.value.code, bool(str(caught.value))) == (code, True)
        assert await read(service) == before


def without(fields: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key != name}


@pytest.mark.promise("service.event-content")
async def test_only_a_message_obeys_the_limit_of_messages(enter: Enter) -> None:
    async with enter(content_limit=20) as at:
        service = await opened(at)
        await service.append_event("s", event("x" * 20))
        with refused("VALIDATION_ERROR", field="content", limit=20, size=21):
            await service.append_event("s", event("x" * 21))
        await service.append_event("s", event("x" * 21, event_type="reflection"))
        assert await contents(at.agent("bob")) == ["x" * 20, "x" * 21]


@pytest.mark.quick
@pytest.mark.promise("service.atomic-append")
async def test_an_event_and_its_state_are_one_commit(enter: Enter) -> None:
    refuse = False

    def sometimes(store: Store, works: Sequence[WriteBatch]) -> None:
        for work in works:
            work.error = StorageFullError("no room") if refuse else None
        store.commit(works)

    async with enter(committer=InlineCommitter(sometimes)) as at:
        service = await opened(at, initial_state={"kept": 1})
        commits = at.runtime.statistics().store.commits
        await service.append_event("s", event(event_id="a"), {"n": 1, "temp:x": [1]})
        assert at.runtime.statistics().store.commits == commits + 1
        before = await read(service)
        refuse = True
        with pytest.raises(StorageFullError):
            await service.append_event("s", event(event_id="b"), {"n": 2})
        with refused("VALIDATION_ERROR", field="state_delta"):
            await service.append_event("s", event(event_id="b"), {"n": 2, "big": "x" * 1_048_570})
        refuse = False
        assert await read(service) == before
        assert before.state == {"kept": 1, "n": 1, "temp:x": [1]}
        await service.append_event("s", event(event_id="b"), {"n": 2})
        assert (await read(service)).state["n"] == 2


@pytest.mark.promise("service.event-once")
async def test_a_repeat_of_an_event_changes_nothing(enter: Enter) -> None:
    async with enter() as at:
        service = await opened(at)
        first = await service.append_event("s", event(event_id="a"), {"n": 1})
        at.tick()
        assert await service.append_event("s", event(event_id="a"), {"n": 2, "m": 2}) == first
        await service.update_status("s", "terminated")
    async with enter() as at:
        service = SessionService(at.runtime)
        assert await service.append_event("s", event(event_id="a"), {"n": 3}) == first
        session = await read(service)
        assert (session.events, session.state) == ([first], {"n": 1})
        with refused("SESSION_CLOSED"):
            await service.append_event("s", event(event_id="b"))
        await service.create_session("t", "app", "ada")
        await service.append_event("t", event(event_id="a"))
        assert len((await read(service, "t")).events) == 1


@pytest.mark.quick
@pytest.mark.promise("service.event-once")
async def test_of_many_who_append_one_event_at_once_one_does(enter: Enter) -> None:
    async with enter() as at:
        service = await opened(at)
        got: list[Event] = []

        async def append(number: int) -> None:
            got.append(await service.append_event("s", event(event_id="a"), {"n": number}))

        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(append, number)
        session = await read(service)
        assert got == session.events * 20
        assert session.state["n"] in range(20)


@pytest.mark.promise("service.event-once")
async def test_another_event_under_a_known_id_is_refused_and_changes_nothing(enter: Enter) -> None:
    async with enter() as at:
        service = await opened(at)
        call = {"tool": "find", "arguments": {"n": 1, "deep": [True, 2.5]}}
        first = await service.append_event(
            "s", event(event_id="a", event_type="tool_call", content=call, timestamp=LONG_AGO)
        )
        said = await say(at.agent("bob"), "s", "a message")
        before = await read(service)
        same = {"event_id": "a", "event_type": "tool_call", "actor": "user"}
        for other in (
            {"content": {"tool": "find"}},
            {"content": {"tool": "find", "arguments": {"n": True, "deep": [True, 2.5]}}},
            {"content": {"tool": "find", "arguments": {"n": 1.0, "deep": [True, 2.5]}}},
            {"content": {"text": "find"}},
            {"event_type": "action"},
            {"actor": "system"},
            {"is_final_response": True},
            {"visibility": "private"},
        ):
            with refused("IDEMPOTENCY_CONFLICT", session_id="s", event_id="a") as caught:
                await service.append_event("s", same | {"content": call} | other, {"n": 1})
            assert isinstance(caught.value, ServiceError)
            assert "'a'" in caught.value.sentence
        with refused("IDEMPOTENCY_CONFLICT", event_id=f"message_{said[0]}"):
            await service.append_event("s", event("other", event_id=f"message_{said[0]}"))
        assert await read(service) == before

        turned = {"arguments": {"deep": [True, 2.5], "n": 1}, "tool": "find"}
        for time in (LONG_AGO, None, FAR_AHEAD):
            again = await service.append_event("s", same | {"content": turned, "timestamp": time})
            assert again == first, "the order of keys and the time of the try do not count"
        await service.update_status("s", "terminated")
        with refused("IDEMPOTENCY_CONFLICT"):
            await service.append_event("s", event("other", event_id="a"))
        assert (await read(service)).events == before.events


@pytest.mark.quick
@pytest.mark.promise("service.state")
async def test_state_belongs_to_its_session_and_temporary_keys_end_with_it(enter: Enter) -> None:
    async with enter() as at:
        service = await opened(at, initial_state={"temp:a": 1, "user:a": 1})
        await service.create_session("t", "an app", "ada")
        values = {"session:k": 1, "user:k": "1", "app:k": None, "project:k": {"a": [1]}, "temp:k": 5, "k": ""}
        for key, value in values.items():
            await service.set_state("s", key, value)
        assert {key: await service.get_state("s", key) for key in values} == values
        assert [await service.get_state("t", key) for key in values] == [None] * 6
        assert await service.get_state("s", "missing") is None
        assert await service.get_state("nowhere", "k") is None
        assert await service.get_state("no id at all", "k") is None
        await service.set_state("s", "k", {"new": 1})
        assert await service.get_state("s", "k") == {"new": 1}
        await service.update_status("s", "paused")
        assert await service.get_state("s", "temp:k") == 5
        await service.update_status("s", "terminated")
        assert (await read(service)).state == {
            "user:a": 1,
            "session:k": 1,
            "user:k": "1",
            "app:k": None,
            "project:k": {"a": [1]},
            "k": {"new": 1},
        }
        with refused("SESSION_CLOSED"):
            await service.set_state("s", "temp:k", 6)


@pytest.mark.quick
@pytest.mark.promise("service.status", "sessions.statuses")
async def test_the_first_message_activates_and_the_end_comes_once(enter: Enter) -> None:
    async with enter() as at:
        service, bob = await opened(at), at.agent("bob")

        async def statuses() -> set[str]:
            [listed] = (await bob.ask(ListSessions())).sessions
            return {(await read(service)).status, listed.status}

        await service.append_event("s", event(event_type="action"))
        assert await statuses() == {"created"}
        await service.append_event("s", event(visibility="private"))
        [listed] = (await bob.ask(ListSessions())).sessions
        assert ((await read(service)).status, listed.status) == ("active", "created")
        await service.append_event("s", event())
        assert await statuses() == {"active"}
        for status in ("paused", "active", "active", "paused"):
            await service.update_status("s", status)
            assert await statuses() == {status}
        at.tick()
        await service.update_status("s", "terminated")
        ended = (await read(service)).terminated_at
        assert ended == moment(at.clock.now())
        at.tick()
        for impossible in ("active", "paused", "created"):
            with refused("VALIDATION_ERROR", field="status"):
                await service.update_status("s", impossible)
        await service.update_status("s", "terminated")
        assert (await read(service)).terminated_at == ended
        await service.update_status("s", "archived")
        await service.update_status("s", "archived")
    async with enter() as at:
        session = await read(SessionService(at.runtime))
        assert (session.status, session.terminated_at) == ("archived", ended)


@pytest.mark.quick
@pytest.mark.promise("service.principal")
async def test_the_service_sees_what_its_principal_may_see(enter: Enter) -> None:
    async with enter() as at:
        alice = SessionService(
            at.runtime, Principal(agent_id="alice", agent_type="writer", projects=frozenset({"p"}))
        )
        bob = SessionService(at.runtime, Principal(agent_id="bob", agent_type="writer"))
        carol = SessionService(at.runtime, Principal(agent_id="carol", projects=frozenset()))
        await alice.create_session("s", "app", "ada", project_id="p")
        for visibility in ("public", "private", "agent_only"):
            await alice.append_event("s", event(visibility, event_id=visibility, visibility=visibility))
        assert [each.event_id for each in (await read(alice)).events] == ["public", "private", "agent_only"]
        assert [each.visibility for each in (await read(bob)).events] == ["public", "agent_only"]
        assert await carol.get_session("s") is None
        with refused("SESSION_NOT_FOUND"):
            await carol.append_event("s", event(event_id="public"))

        # What bob does not see does not stand in his way, and tells him nothing.
        own = await bob.append_event("s", event("bob's", event_id="private"))
        assert own.content == {"text": "bob's"}
        theirs = event("agent_only", event_id="agent_only", visibility="agent_only")
        assert (await bob.append_event("s", theirs)).visibility == "agent_only"
        with refused("IDEMPOTENCY_CONFLICT"):
            await bob.append_event("s", event("bob's", event_id="agent_only"))
        assert len((await read(bob)).events) == 3
        assert await at.agent("alice").ask(CreateSession(purpose="another"))


@pytest.mark.quick
@pytest.mark.promise("service.deleted")
async def test_a_deleted_session_is_gone_for_everybody_and_its_id_is_free(enter: Enter) -> None:
    async with enter() as at:
        one, other = (SessionService(at.runtime, Principal(agent_id=name)) for name in ("one", "other"))
        await one.create_session("s", "an app", "ada")
        await one.append_event("s", event())
        assert await one.delete_session("s")
        assert await one.get_session("s") is await other.get_session("s") is None
        assert not await other.delete_session("s")
        await other.create_session("s", "an app", "bob")
        assert (await read(one)).events == []
        with pytest.raises(ServiceError, match="must be your own"):
            await SessionService(at.runtime, Principal(agent_id="one", user="ada")).delete_session("s")


@pytest.mark.promise("service.long-sessions", "sessions.bounded-writes")
async def test_an_event_costs_the_same_however_long_the_session_is(enter: Enter) -> None:
    written: list[tuple[int, int]] = []

    def weigh(store: Store, works: Sequence[WriteBatch]) -> None:
        ops = [op for work in works for op in work.ops]
        written.append((len(ops), sum(len(key) + len(payload or b"") for _, key, payload in ops)))
        store.commit(works)

    async with enter(committer=InlineCommitter(weigh)) as at:
        service = await opened(at, initial_state={"long": "x" * 50_000})
        written.clear()
        for number in range(500):
            at.tick(0.01)
            await service.append_event("s", event(f"event {number:05}"), {"at": f"{number:05}"})
        assert len(written) == 500
        assert {ops for ops, _ in written[1:]} == {written[1][0]}
        assert max(size for _, size in written) < 3_000
        assert max(size for _, size in written[300:]) - max(size for _, size in written[:100]) < 40


@pytest.mark.promise("service.long-sessions", "runtime.fair")
async def test_a_long_session_is_read_in_slices_and_as_of_one_moment(enter: Enter) -> None:
    async with enter() as at:
        service = await opened(at)
        for number in range(1_500):
            at.tick(0.01)
            await service.append_event("s", event(str(number)), {"n": number})
        got: list[Session] = []
        turns = 0

        async def fetch() -> None:
            got.append(await read(service))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(fetch)
            while not got:
                await service.append_event("s", event("meanwhile"), {"n": -1})
                turns += 1
        assert turns > 3
        [session] = got
        texts = [each.content["text"] for each in session.events]
        assert texts[:1_500] == [str(number) for number in range(1_500)]
        assert set(texts[1_500:]) <= {"meanwhile"}
        assert len(texts) < 1_500 + turns
        assert (session.state["n"] == -1) == (len(texts) > 1_500)


@pytest.mark.quick
@pytest.mark.promise("service.older-stores", "store.versions")
async def test_a_store_from_before_there_were_events_is_read(enter: Enter) -> None:
    stripped: set[str] = set()

    def as_it_was(payload: bytes | None) -> bytes | None:
        """Take the fields away that records did not have then, which the newest ones have at their ends."""
        if payload is None:
            return None
        record = msgspec.msgpack.decode(payload)
        match record:
            case [str(), int(), str(), _, bytes(), str(), None, None, False]:
                stripped.add("message")
                return msgspec.msgpack.encode(record[:-3])
            case [str(), str(), str(), int(), int(), int(), 0]:
                stripped.add("tally")
                return msgspec.msgpack.encode(record[:-1])
            case ["session", str(), [int(), int(), 0] as activity]:
                stripped.add("activity")
                return msgspec.msgpack.encode([*record[:2], activity[:-1]])
        return payload

    def write_as_before(store: Store, works: Sequence[WriteBatch]) -> None:
        for work in works:
            work.ops = [(table, key, as_it_was(payload)) for table, key, payload in work.ops]
        store.commit(works)

    async with enter(committer=InlineCommitter(write_as_before)) as at:
        alice = await begin(at)
        [first] = await say(alice, "s", "old", metadata=json('{"a":1}'))
    assert stripped == {"message", "tally", "activity"}
    async with enter() as at:
        service = SessionService(at.runtime)
        session = await read(service)
        assert session.status == "active"
        assert [(each.event_id, each.content) for each in session.events] == [
            (f"message_{first}", {"text": "old", "metadata": {"a": 1}})
        ]
        await service.append_event("s", event("new"))
        assert await contents(at.agent("bob")) == ["old", "new"]
        [listed] = (await at.agent("bob").ask(ListSessions())).sessions
        assert (listed.status, listed.message_count) == ("active", 2)
