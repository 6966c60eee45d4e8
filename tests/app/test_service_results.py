"""What the services return: dictionaries that JSON has, with attributes as Python has them."""

from __future__ import annotations

import copy
import datetime as dt
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.agents import begin, refused, wire
from support.agents import json as raw

from greenroom.actors import (
    AddMessage,
    Database,
    Event,
    GetSession,
    Principal,
    SearchService,
    ServiceResult,
    Session,
    SessionService,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.agents import Enter

pytestmark = pytest.mark.promise("service.by-key")

ROOT = Path(__file__).parents[2]
CALL: dict[str, Any] = {
    "event_type": "tool_call",
    "actor": "agent:finder",
    "content": {"for": ["toads", 1.5, None]},
}


async def everything(database: Database) -> AsyncIterator[ServiceResult]:
    """Yield a result of each method that returns some."""
    sessions, memory = database.sessions, database.memory
    await sessions.create_session("s", "an app", "ada", initial_state={"n": 10**30})
    yield await sessions.append_event("s", CALL)
    yield await sessions.append_event("s", {**CALL, "timestamp": dt.datetime(2026, 1, 2, tzinfo=dt.UTC)})
    session = await sessions.get_session("s")
    assert session is not None
    yield session
    for event in await sessions.get_events("s"):
        yield event
    popped = await sessions.pop_event("s")
    assert popped is not None
    yield popped
    place = ("user:ada:tastes", "drink")
    await memory.add_memory(*place, {"is": "tea"}, "semantic", "ada", "t1", metadata={"from": {"a": 1}})
    await memory.update_memory(*place, {"is": "coffee"}, "bob", "t2")
    read = await memory.get_memory(*place)
    assert read is not None
    yield read
    for version in await memory.list_versions(*place):
        yield version
    for found in await memory.search_memories("user:ada"):
        yield found
    yield await memory.page_memories("user:ada", limit=1)
    yield await database.remember("Toads like ponds.", user="ada", tags=["toads"])
    for match in await database.search("toads", user="ada"):
        yield match
    search = SearchService(database, Principal(agent_id="app", user="ada"))
    yield await search.search_memories("toads", include_debug=True)
    yield await search.search_memories("coffee", mode="hybrid")


def plain(value: Any) -> Any:
    """Return a value with plain dictionaries in the place of results, however deep."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, list) else value


def pickled(result: Any) -> Any:
    return pickle.loads(pickle.dumps(result))  # noqa: S301  our own


@pytest.fixture
async def results(tmp_path: Path) -> list[ServiceResult]:
    async with Database(tmp_path, embedder="none") as database:
        return [result async for result in everything(database)]


async def test_every_result_is_what_json_says_of_it(results: list[ServiceResult]) -> None:
    assert {type(result) for result in results} == set(ServiceResult.__subclasses__())
    for result in results:
        kind = type(result)
        text = json.dumps(result)
        read = json.loads(text)
        assert read == dict(result) == plain(result) == wire(result)
        assert list(read) == list(result) == [*kind.__annotations__]
        assert json.loads(json.dumps(result, indent=1, sort_keys=True)) == read
        assert kind(**read) == result
        assert repr(kind(**read)) == repr(result)


async def test_a_time_is_text_by_key_and_a_time_as_an_attribute(results: list[ServiceResult]) -> None:
    times = 0
    for result in results:
        for name, by_key in result.items():
            by_attribute = getattr(result, name)
            if isinstance(by_attribute, dt.datetime):
                times += 1
                assert by_attribute.tzinfo is dt.UTC
                assert by_key == wire(by_attribute)
            else:
                assert by_attribute is by_key
    assert times > 10


async def test_a_result_is_copied_and_pickled_whole(results: list[ServiceResult]) -> None:
    for result in results:
        for same in (copy.copy(result), copy.deepcopy(result), pickled(result)):
            assert (type(same), same, same is result) == (type(result), result, False)
        assert type(result.copy()) is type(result | {}) is type({**result}) is dict
    [session] = [each for each in results if isinstance(each, Session)]
    deep = copy.deepcopy(session)
    deep.state["n"] = 1
    assert session.state["n"] == 10**30
    assert all(type(event) is Event for event in (*deep.events, *pickled(deep).events))
    again = Session(**json.loads(json.dumps(session)))
    assert [event.timestamp for event in again.events] == [event.timestamp for event in session.events]


async def test_a_result_cannot_be_changed(results: list[ServiceResult]) -> None:
    for result in results:
        before = dict(result)
        name = next(iter(result))
        changes: list[tuple[str, list[Any]]] = [
            ("__setitem__", [name, 1]),
            ("__delitem__", [name]),
            ("__ior__", [{"a": 1}]),
            ("update", [{"a": 1}]),
            ("setdefault", [name, 1]),
            ("pop", [name]),
            ("popitem", []),
            ("clear", []),
        ]
        for change, arguments in changes:
            with pytest.raises(TypeError, match=f"{type(result).__name__}: it cannot be changed"):
                getattr(result, change)(*arguments)
        for attribute in (name, "made_up"):
            with pytest.raises(AttributeError, match="cannot be changed"):
                setattr(result, attribute, 1)
        with pytest.raises(AttributeError, match="cannot be changed"):
            delattr(result, name)
        assert dict(result) == before


@pytest.mark.quick
def test_an_event_is_built_as_before() -> None:
    build: Any = Event  # so that calls may be wrong
    first, second = Event(**CALL), Event(**CALL)
    assert first.event_id != second.event_id
    assert (first.shown, first.timestamp, first.is_final_response, first.visibility) == (
        None,
        None,
        False,
        "public",
    )
    assert repr(Event(**CALL, event_id="e")).startswith(
        "Event(event_type='tool_call', actor='agent:finder', "
    )
    with pytest.raises(TypeError, match="Event: missing a required argument: 'content'"):
        build(event_type="message", actor="user")
    with pytest.raises(TypeError, match="Event: got an unexpected keyword argument 'contents'"):
        build(**CALL, contents={})
    with pytest.raises(TypeError, match="positional"):
        build(*["message"])


class Elsewhere(dt.datetime):
    """A time of another library, as those that freeze the clock for a test make them."""


@pytest.mark.parametrize(
    "given",
    [
        "2026-01-02T01:04:05.678901Z",
        "2026-01-02T03:04:05.678901+02:00",
        "2026-01-02T01:04:05.678901",
        dt.datetime(2026, 1, 2, 1, 4, 5, 678901),  # noqa: DTZ001  a time without a zone is UTC
        dt.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=dt.timezone(dt.timedelta(hours=2))),
        dt.datetime(2026, 1, 2, 1, 57, 33, 678901, tzinfo=dt.timezone(dt.timedelta(seconds=3208))),
        Elsewhere(2026, 1, 2, 1, 4, 5, 678901, tzinfo=dt.UTC),
    ],
)
async def test_a_time_is_the_same_however_it_is_given(enter: Enter, given: Any) -> None:
    event = Event(**CALL, event_id="e", timestamp=given)
    assert event["timestamp"] == "2026-01-02T01:04:05.678901Z"
    assert event.timestamp == dt.datetime(2026, 1, 2, 1, 4, 5, 678901, tzinfo=dt.UTC)
    async with enter() as at:
        service = SessionService(at.runtime)
        await service.create_session("s", "an app", "ada")
        appended = await service.append_event("s", event)
        assert appended == event == Event(**json.loads(json.dumps(appended)))
        await service.append_events("s", [Event(**json.loads(json.dumps(appended))), dict(appended)])
        assert await service.get_events("s") == [event]


@pytest.mark.parametrize("given", ["yesterday", "", 20260102, 1.5, ["2026-01-02"], "0001-01-01T00:00+02:00"])
def test_what_is_no_time_is_refused_with_what_is(given: Any) -> None:
    with refused("VALIDATION_ERROR", field="timestamp") as caught:
        Event(**CALL, timestamp=given)
    assert "2026-01-31T12:00:00Z" in str(caught.value)


async def test_a_time_reads_as_in_the_answer_of_a_tool(enter: Enter) -> None:
    async with enter() as at:
        alice = await begin(at)
        session = await SessionService(at.runtime).get_session("s")
        assert session is not None
        told = wire(await alice.ask(GetSession(session_id="s")))["session"]
        assert (session["created_at"], session["updated_at"]) == (told["created_at"], told["updated_at"])


async def test_the_largest_integer_that_is_kept_is_an_int_that_json_takes(enter: Enter) -> None:
    largest = int(sys.float_info.max)
    async with enter() as at:
        alice = await begin(at)
        service = SessionService(at.runtime)
        await alice.ask(AddMessage(session_id="s", content="much", metadata=raw(f'{{"n": {largest}}}')))
        await service.append_event("s", {**CALL, "content": {"n": -largest}}, {"n": largest})
        session = await service.get_session("s")
        assert session is not None
        assert json.loads(json.dumps(session)) == session
        assert session.events[0].content["metadata"]["n"] == session.state["n"] == largest
        with refused("SERIALIZATION_ERROR"):
            await service.set_state("s", "n", 10 * largest)


PROGRAM = """\
from datetime import datetime
from typing import Any, assert_type

from greenroom.actors import Event, Session

event = Event(event_type="message", actor="user", content={"text": "hi"})
assert_type(event.timestamp, datetime | None)
assert_type(event.content, dict[str, Any])
event.actor = "system"  # wrong
Event(event_type="message", actor="user")  # wrong
Event(event_type="message", actor="user", content={}, text="hi")  # wrong
Event(event_type="talk", actor="user", content={})  # wrong
Event("message", "user", {})  # wrong


def newest(session: Session) -> Event:
    assert_type(session["events"], Any)
    return session.events[-1]
"""


@pytest.mark.slow
def test_mypy_knows_the_fields(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--no-pretty", str(program)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    wrong = [number for number, line in enumerate(PROGRAM.splitlines(), 1) if "# wrong" in line]
    errors = [int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error: " in line]
    assert errors == wrong, done.stdout + done.stderr
