"""Sessions and memory of Google's Agent Development Kit, kept by Greenroom.

What every session service of the kit owes its callers is asked of ours and of the kit's own, side by side.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.memory import InMemoryMemoryService
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions import BaseSessionService, InMemorySessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.genai import types
from support.adapters import CHECKS, Case, Check

from greenroom.actors import (
    AddMessage,
    Agent,
    CreateSession,
    Database,
    EraseUser,
    GetMessages,
    ListSessions,
    MemorySearch,
    Principal,
    SearchContext,
    ServiceError,
    SessionService,
    StoreMemory,
    UpdateSession,
    open_greenroom,
    parse_request,
)
from greenroom.actors.core.auth.namespaces import memory_address
from greenroom.actors.core.auth.policy import own_project
from greenroom.adapters.google_adk import GreenroomMemoryService, GreenroomSessionService, names
from greenroom.runtime import Address, Refusal

if TYPE_CHECKING:
    from pathlib import Path

APP, USER = "guide", "ann"
ANN = Principal(agent_id="editor", user="ann", projects=frozenset({"other"}))
BOB = Principal(agent_id="editor", user="bob", projects=frozenset({"other"}))


def at(folder: Path) -> Database:
    return Database(folder / "store", embedder="none", secrets=folder / "secrets")


def play(folder: Path, story: Callable[[Database], Awaitable[None]], loop: Any = asyncio.run) -> None:
    """Run a story with an open database."""

    async def main() -> None:
        async with at(folder) as database:
            await story(database)

    (loop(main()) if loop is asyncio.run else loop(main))


def said(text: str, *, author: str = USER, **more: Any) -> Event:
    role = "user" if author == "user" else "model"
    content = types.Content(role=role, parts=[types.Part(text=text)])
    return Event(author=author, invocation_id="i", content=content, **more)


def changing(**delta: Any) -> Event:
    return Event(author="guide", actions=EventActions(state_delta=delta))


def text_of(content: types.Content | None) -> str:
    parts = [] if content is None else content.parts or []
    return "".join(part.text or "" for part in parts)


async def read(service: BaseSessionService, session: Session, **config: Any) -> Session:
    """Return a session as it is kept."""
    found = await service.get_session(
        app_name=session.app_name,
        user_id=session.user_id,
        session_id=session.id,
        config=GetSessionConfig(**config) if config else None,
    )
    assert found is not None
    return found


async def listed(database: Database, principal: Principal) -> list[str]:
    """Return the ids of the sessions that somebody sees in listings."""
    return [each.session_id for each in (await database.query(ListSessions(), principal=principal)).sessions]


async def the_one(database: Database) -> str:
    """Return the id of the only session of the folder that holds no shared state."""
    everything = await database.query(ListSessions(), principal=Principal(agent_id="operator"))
    (only,) = [each.session_id for each in everything.sessions if not each.purpose.startswith("state of")]
    return only


# -- what every adapter must stand ---------------------------------------------


async def write(database: Database, text: str) -> None:
    """Append an event; who finds the session changed reads it again, as users of the kit do."""
    service = GreenroomSessionService(database)
    with suppress(AlreadyExistsError):
        await service.create_session(app_name=APP, user_id=USER, session_id="s")
    event = said(text, author="user")
    while True:
        session = await service.get_session(app_name=APP, user_id=USER, session_id="s")
        assert session is not None
        try:
            await service.append_event(session, event)
        except StaleSessionError:
            continue
        return


async def texts(database: Database) -> list[str]:
    service = GreenroomSessionService(database)
    session = await service.get_session(app_name=APP, user_id=USER, session_id="s")
    assert session is not None
    return [text_of(event.content) for event in session.events]


@pytest.mark.promise("adapters.google-adk-lasting")
@pytest.mark.parametrize("check", CHECKS)
def test_contract(check: Check, tmp_path: Path) -> None:
    check(Case(write, texts), tmp_path)


# -- beside the kit's own ------------------------------------------------------


Step = Callable[[BaseSessionService], Awaitable[Any]]

KEYS = ("k", "k2", "app:k", "user:k", "user:k2", "temp:k", "session:k", "app:", "user:", "user:app:k")
VALUES = (None, 0, 1.5, "text", "", [1, [None]], {"a": {"b": None}}, True)
IDS = ("s", "t", " s ", "../s", "s\x00", "ü", "S")


class Drawing:
    """Draws what is done with a service: anything with few names, so that they meet."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)  # noqa: S311
        self._drawn = 0

    def step(self) -> tuple[str, Step]:
        """Return the name of a step, and the step."""
        self._drawn += 1
        app, user = self._chance.choice("ab"), self._chance.choice(("ann", "bob"))
        place = {"app_name": app, "user_id": user, "session_id": self._chance.choice(IDS)}
        of = {"app_name": app, "user_id": user}
        steps: dict[str, Step] = {
            "create": partial(_create, place, self._state()),
            "append": partial(_append, place, self._event()),
            "append again": partial(_append, place, self._event()),
            "get": partial(_get, place, self._config()),
            "list": partial(_list, self._chance.choice((of, {"app_name": app}))),
            "delete": lambda service: service.delete_session(**place),
            "user state": lambda service: service.get_user_state(**of),
        }
        return self._chance.choice(list(steps.items()))

    def _state(self) -> dict[str, Any]:
        count = self._chance.randrange(4)
        return {self._chance.choice(KEYS): self._chance.choice(VALUES) for _ in range(count)}

    def _event(self) -> Event:
        event = said(f"{self._drawn}", author="user", timestamp=float(self._drawn))
        event.partial = self._chance.random() < 0.1
        event.actions.state_delta = self._state()
        return event

    def _config(self) -> GetSessionConfig:
        return GetSessionConfig(
            num_recent_events=self._chance.choice((None, 0, 1, 3, 99)),
            after_timestamp=self._chance.choice((None, 0.0, self._drawn / 2, 1e6)),
        )


async def _create(place: Any, state: dict[str, Any], service: BaseSessionService) -> Any:
    return seen(await service.create_session(**place, state=state))


async def _append(place: Any, event: Event, service: BaseSessionService) -> Any:
    session = await service.get_session(**place)
    if session is None:
        return None
    appended = await service.append_event(session, event.model_copy(deep=True))
    return appended.model_dump(), seen(session), seen(await service.get_session(**place))


async def _get(place: Any, config: GetSessionConfig, service: BaseSessionService) -> Any:
    return seen(await service.get_session(**place, config=config))


async def _list(of: dict[str, str], service: BaseSessionService) -> Any:
    shown = [seen(each) for each in (await service.list_sessions(**of)).sessions]
    return sorted(shown, key=lambda each: (each["user_id"], each["id"]))


def seen(session: Session | None) -> Any:
    """Return what is compared of a session: not when one without events was made, as each has its clock."""
    if session is None:
        return None
    shown = session.model_dump()
    return shown if session.events else {**shown, "last_update_time": None}


@pytest.mark.slow
@pytest.mark.promise("adapters.google-adk-same")
def test_the_same_calls_are_answered_as_by_the_service_in_memory(tmp_path: Path) -> None:
    async def answer(step: Step, service: BaseSessionService) -> Any:
        try:
            return await step(service)
        except AlreadyExistsError:
            return AlreadyExistsError

    async def story(database: Database) -> None:
        kits, ours = InMemorySessionService(), GreenroomSessionService(database)
        drawing, met = Drawing(5), set()
        for _ in range(260):
            name, step = drawing.step()
            expected = await answer(step, kits)
            assert await answer(step, ours) == expected
            met.add((name, bool(expected)))
        assert met >= {(name, True) for name in ("create", "append", "get", "list", "user state")}
        assert met >= {(name, False) for name in ("append", "get", "list", "delete", "user state")}

    play(tmp_path, story)


EVERYTHING = Event(
    id="all",
    author="guide",
    invocation_id="i",
    branch="a.b",
    content=types.Content(
        role="model",
        parts=[
            types.Part(text="I think", thought=True, thought_signature=b"\xff\x00"),
            types.Part(text="It says"),
            types.Part(inline_data=types.Blob(data=bytes(range(256)), mime_type="image/png")),
            types.Part(
                function_call=types.FunctionCall(id="c", name="look", args={"at": None, "n": [1, 2.5]})
            ),
            types.Part(function_response=types.FunctionResponse(id="c", name="look", response={"ü": "\x00"})),
            types.Part(text="two things"),
        ],
    ),
    actions=EventActions(
        state_delta={"a": None, "b": {"c": [None]}, "user:x": 1},
        artifact_delta={"file": 2},
        transfer_to_agent="other",
        escalate=True,
        skip_summarization=False,
    ),
    long_running_tool_ids={"c", "d"},
    grounding_metadata=types.GroundingMetadata(web_search_queries=["q"]),
    usage_metadata=types.GenerateContentResponseUsageMetadata(prompt_token_count=3),
    citation_metadata=types.CitationMetadata(citations=[types.Citation(uri="u", start_index=0)]),
    custom_metadata={"k": [1, {"n": None}]},
    error_code="E",
    error_message="m",
    turn_complete=True,
    interrupted=False,
    output={"any": ["thing", None]},
    timestamp=1_700_000_000.1234567,
)
EVENTS = [
    EVERYTHING,
    Event(id="none", author=""),
    Event(id="empty", author="user", content=types.Content(role="user", parts=[])),
    Event(id="blank", author="user", content=types.Content(role="user", parts=[types.Part(text="")])),
    Event(id="ünïcode …/\\:*?", author="agént ñ", content=types.Content(parts=[types.Part(text="hi")])),
    said("early", id="early", author="user", timestamp=-1e10),
    said("never", id="never", author="user", timestamp=1e300),
    said("x" * 30_000, id="long"),
    said('{"text": "adk"}', id="json"),
    changing(alone=1),
]


@pytest.mark.promise("adapters.google-adk-same")
def test_an_event_comes_back_equal_and_once(tmp_path: Path) -> None:
    async def story(database: Database) -> None:
        service = GreenroomSessionService(database)
        session = await service.create_session(app_name=APP, user_id=USER, session_id="s")
        for event in EVENTS:
            given = event.model_copy(deep=True)
            assert await service.append_event(session, given) is given
            assert await service.append_event(session, given.model_copy(deep=True)) == given
        assert session.events == EVENTS
        kept = await read(service, session)
        assert kept.events == EVENTS
        assert [event.model_dump_json() for event in kept.events] == [
            each.model_dump_json() for each in EVENTS
        ]
        assert kept == session

    play(tmp_path, story)


@pytest.mark.slow
@pytest.mark.promise("adapters.google-adk-same", "adapters.google-adk-shared")
def test_a_photo_comes_back_and_agents_see_none_of_its_base64(tmp_path: Path) -> None:
    async def story(database: Database) -> None:
        service = GreenroomSessionService(database)
        session = await service.create_session(app_name=APP, user_id=USER, session_id="s")
        picture = types.Part(inline_data=types.Blob(data=b"ABC" * 700_000, mime_type="image/png"))
        photo = types.Content(role="user", parts=[types.Part(text="see this"), picture])
        alone = types.Content(role="user", parts=[picture])
        for number, content in enumerate([photo, alone]):
            event = Event(id=f"e{number}", author="user", content=content)
            await service.append_event(session, event)
            await service.append_event(session, event.model_copy(deep=True))
        await service.append_event(session, said("after", id="e2"))
        await service.append_event(session, said("long " * 400_000, id="e3"))
        kept = await read(service, session)
        assert kept == session
        assert [event.id for event in kept.events] == ["e0", "e1", "e2", "e3"]
        some = await service.get_session(
            app_name=APP, user_id=USER, session_id="s", config=GetSessionConfig(num_recent_events=3)
        )
        assert some is not None
        assert some.events == session.events[1:]
        name = names.session_name(APP, USER, "s")
        shown = await database.ask(
            Address("session", name),
            GetMessages(session_id=name),
            principal=Principal(agent_id="x", user=USER, projects=frozenset({own_project(USER)})),
        )
        assert shown.messages[0].content == "see this"
        assert "QUJD" not in str(shown)
        assert len(str(shown)) < 20_000
        kept.events.pop()  # a memory has up to 1 MB of text
        await GreenroomMemoryService(database).add_session_to_memory(kept)

    play(tmp_path, story)


@pytest.mark.promise("adapters.google-adk-whole")
def test_an_event_that_cannot_be_kept_changes_nothing(tmp_path: Path) -> None:
    async def story(database: Database) -> None:
        service = GreenroomSessionService(database)
        session = await service.create_session(
            app_name=APP, user_id=USER, state={"k": 1, "user:k": 1, "app:k": 1}
        )
        await service.append_event(session, said("first", id="e"))
        before = await read(service, session)
        delta = {"k": 2, "user:k": 2, "app:k": 2}
        megabyte = "x" * 1_100_000
        for event in (
            said("another of that id", id="e", actions=EventActions(state_delta=delta)),
            said("too large", actions=EventActions(state_delta={**delta, "big": megabyte})),
            said("too large", actions=EventActions(state_delta={**delta, "user:big": megabyte})),
            said("too large", actions=EventActions(state_delta={**delta, "app:big": megabyte})),
            said(megabyte * 16, actions=EventActions(state_delta=delta)),
            said("the form of a message's id", id="message_1", actions=EventActions(state_delta=delta)),
            said("i" * 300, id="i" * 300, actions=EventActions(state_delta=delta)),
        ):
            with pytest.raises(ServiceError):
                await service.append_event(session, event)
            assert session == before
            assert await read(service, session) == before
        with pytest.raises(AlreadyExistsError):
            await service.create_session(app_name=APP, user_id=USER, session_id=session.id, state=delta)
        assert await read(service, session) == before
        await service.append_event(session, changing(**{"user:a": "x" * 700_000}))
        with pytest.raises(ServiceError, match="limit"):
            await service.append_event(session, changing(**{"user:b": "x" * 700_000}))
        assert set(await service.get_user_state(app_name=APP, user_id=USER)) == {"k", "a"}
        unknown = session.model_copy(update={"id": "unknown"})
        with pytest.raises(SessionNotFoundError, match="unknown"):
            await service.append_event(unknown, said("lost", actions=EventActions(state_delta=delta)))
        assert (await read(service, session)).state["app:k"] == 1

    play(tmp_path, story)


@pytest.mark.promise("adapters.google-adk-stale")
def test_a_session_that_was_changed_meanwhile_is_stale(tmp_path: Path) -> None:
    async def story(database: Database) -> None:
        service = GreenroomSessionService(database)
        session = await service.create_session(app_name=APP, user_id=USER, session_id="s")
        by_hand = Session(id="s", app_name=APP, user_id=USER)
        older = await read(service, session)
        await service.append_event(session, said("first"))
        for stale in (older, by_hand):
            with pytest.raises(StaleSessionError, match="get_session"):
                await service.append_event(stale, said("second", actions=EventActions(state_delta={"k": 1})))
            assert (stale.events, stale.state) == ([], {})
        again = await read(service, session, num_recent_events=0)
        await service.append_event(again, said("second"))
        with pytest.raises(StaleSessionError):
            await service.append_event(session, said("third"))
        by_hand = Session(id="s", app_name=APP, user_id=USER, events=[again.events[-1]])
        await service.append_event(by_hand, said("third"))
        # One of that name that was made after it was deleted is another session.
        await service.delete_session(app_name=APP, user_id=USER, session_id="s")
        await service.create_session(app_name=APP, user_id=USER, session_id="s")
        with pytest.raises(StaleSessionError):
            await service.append_event(by_hand, said("fourth"))

    play(tmp_path, story)


@pytest.mark.promise("adapters.google-adk-state")
def test_sessions_that_append_at_once_lose_nothing_of_what_they_share(tmp_path: Path) -> None:
    async def story(database: Database) -> None:
        async with at(tmp_path) as other:
            services = [GreenroomSessionService(each) for each in (database, other)]
            users = ("ann", "ann", "bob")

            async def work(number: int) -> None:
                service, user = services[number % 2], users[number % 3]
                session = await service.create_session(app_name=APP, user_id=user)
                for step in range(5):
                    key = f"{number}-{step}"
                    delta = {f"user:{key}": step, f"app:{key}": step, "app:last": number, "user:last": number}
                    await service.append_event(session, changing(**delta))
                    assert (await read(service, session)).state[f"app:{key}"] == step

            await asyncio.gather(*map(work, range(6)))
            every = {f"{number}-{step}": step for number in range(6) for step in range(5)}
            for service in services:
                for user, numbers in (("ann", "0134"), ("bob", "25")):
                    state = await service.get_user_state(app_name=APP, user_id=user)
                    assert str(state.pop("last")) in numbers
                    assert state == {key: step for key, step in every.items() if key[0] in numbers}
                state = (await service.create_session(app_name=APP, user_id="cid")).state
                del state["app:last"]
                assert state == {f"app:{key}": step for key, step in every.items()}

    play(tmp_path, story)


HOSTILE = ("a", "a:b", "a:", "a..b", "../a", "A", "a\x00", "ä", "a\n", " a", "~", "%61", "a" * 128, "b" * 128)


@pytest.mark.slow
@pytest.mark.promise("adapters.google-adk-apart")
def test_names_of_any_kind_are_kept_apart(tmp_path: Path) -> None:
    async def story(database: Database) -> None:
        service, memory = GreenroomSessionService(database), GreenroomMemoryService(database)
        places = [*((name, "u", "s") for name in HOSTILE), *(("a", name, "s") for name in HOSTILE)]
        places += [("ab", "u", "s"), ("a", "bu", "s")]
        places += [("a", "u", name) for name in (*HOSTILE, "s" * 5_000) if name.strip() == name]
        for number, (app, user, own_id) in enumerate(places):
            try:
                session = await service.create_session(app_name=app, user_id=user, session_id=own_id)
            except AlreadyExistsError:
                assert (app, user, own_id) in places[:number]
                continue
            await service.append_event(
                session, changing(**{"k": number, "user:k": [app, user], "app:k": app})
            )
            entry = MemoryEntry(
                content=types.Content(parts=[types.Part(text=f"quince {app} {user}")]), id="m"
            )
            await memory.add_memory(app_name=app, user_id=user, memories=[entry])
        for app, user, own_id in places:
            kept = await service.get_session(app_name=app, user_id=user, session_id=own_id)
            assert kept is not None
            assert (kept.app_name, kept.user_id, kept.id) == (app, user, own_id)
            assert places[kept.state["k"]] == (app, user, own_id)
            assert kept.state["user:k"] == [app, user]
            assert kept.state["app:k"] == app
            found = (await memory.search_memory(app_name=app, user_id=user, query="quince")).memories
            assert [text_of(each.content) for each in found] == [f"quince {app} {user}"]
        of_user = {(each[0], each[1]) for each in places}
        for app, user in sorted(of_user):
            sessions = (await service.list_sessions(app_name=app, user_id=user)).sessions
            assert {(app, user, each.id) for each in sessions} == {
                each for each in places if each[:2] == (app, user)
            }
        for app, user, own_id in (
            ("", "u", "s"),
            ("a", "", "s"),
            ("a" * 129, "u", "s"),
            ("a", "u" * 129, "s"),
        ):
            with pytest.raises(ServiceError, match=r"app_name|user_id|purpose"):
                await service.create_session(app_name=app, user_id=user, session_id=own_id)
        with pytest.raises(ServiceError, match="surrogate"):
            await service.create_session(app_name="a", user_id="u", session_id="\ud800")

    play(tmp_path, story)


@pytest.mark.promise("adapters.google-adk-shared", "adapters.google-adk-apart")
def test_agents_of_the_user_take_part_and_nobody_else(tmp_path: Path) -> None:
    async def story(database: Database) -> None:
        service, memory = GreenroomSessionService(database), GreenroomMemoryService(database)
        session = await service.create_session(app_name=APP, user_id=USER, session_id="s")
        await service.append_event(session, said("Where do quinces grow?", author="user"))
        await service.append_event(session, changing(**{"user:likes": "figs", "k": 1}))
        await memory.add_session_to_memory(session)
        name = await the_one(database)
        place = Address("session", name)
        page = await database.ask(place, GetMessages(session_id=name), principal=ANN)
        assert (page.messages[0].content, page.messages[0].sender) == ("Where do quinces grow?", "user")
        found = await database.ask(place, SearchContext(session_id=name, query="quinces"), principal=ANN)
        assert found.message_count == 1
        assert len((await database.query(MemorySearch(query="quinces"), principal=ANN)).memories) == 1
        assert len(await listed(database, ANN)) == 2
        # What such an agent says is in the conversation, and does not make the object stale.
        said_by_ann = AddMessage(
            session_id=name, content="In the Caucasus.", metadata=page.messages[0].metadata
        )
        added = await database.ask(place, said_by_ann, principal=ANN)
        await service.append_event(session, said("Thank you", author="user"))
        kept = await read(service, session)
        assert [(event.author, text_of(event.content)) for event in kept.events] == [
            ("user", "Where do quinces grow?"),
            ("guide", ""),
            ("editor", "In the Caucasus."),
            ("user", "Thank you"),
        ]
        assert kept.events[2].id == f"message_{added.message_id}"
        assert kept.last_update_time == session.last_update_time
        # Another user sees nothing of it, whatever is asked.
        assert await listed(database, BOB) == []
        everything = await database.query(ListSessions(), principal=Principal(agent_id="operator"))
        for each in everything.sessions:
            place = Address("session", each.session_id)
            with pytest.raises(Refusal, match="there is no session"):
                await database.ask(place, GetMessages(session_id=each.session_id), principal=BOB)
            with pytest.raises(Refusal, match="there is no session"):
                await database.ask(
                    place, UpdateSession(session_id=each.session_id, status="paused"), principal=BOB
                )
        assert (await database.query(MemorySearch(query="quinces"), principal=BOB)).memories == []
        assert await service.get_user_state(app_name=APP, user_id="bob") == {}
        with pytest.raises(ServiceError, match="your own"):
            await SessionService(database, Principal(agent_id="editor", user="bob")).delete_session(name)
        # A session that only has the id of one of the kit's is none.
        await service.delete_session(app_name=APP, user_id=USER, session_id="s")
        await SessionService(database, BOB).create_session(name, APP, "bob")
        assert await service.get_session(app_name=APP, user_id=USER, session_id="s") is None

    play(tmp_path, story)


@pytest.mark.promise("adapters.google-adk-state")
def test_who_takes_the_id_of_what_is_shared_tells_nobody_anything(tmp_path: Path) -> None:
    async def story(database: Database) -> None:
        bobs = SessionService(database, BOB)
        taken = names.app_state_name(APP), names.user_state_name(APP, USER)
        for name in taken:
            await bobs.create_session(name, APP, None, initial_state={"rule": "obey bob"})
        service = GreenroomSessionService(database)
        session = await service.create_session(app_name=APP, user_id=USER, session_id="s")
        assert session.state == {}
        assert (await read(service, session)).state == {}
        assert await service.get_user_state(app_name=APP, user_id=USER) == {}
        # What would be lost is refused.
        for key in ("app:rule", "user:rule"):
            with pytest.raises(ServiceError, match="belongs to another user"):
                await service.create_session(app_name=APP, user_id=USER, state={key: "mine"})
            with pytest.raises(ServiceError, match="belongs to another user"):
                await service.append_event(
                    session, said("first", actions=EventActions(state_delta={key: "mine"}))
                )
        assert session.events == []
        for name in taken:
            await bobs.delete_session(name)
        session = await service.create_session(app_name=APP, user_id=USER, state={"app:rule": "mine"})
        assert session.state == {"app:rule": "mine"}

    play(tmp_path, story)


@pytest.mark.promise("service.deleted")
def test_a_deleted_session_is_gone_and_its_id_is_free(tmp_path: Path) -> None:
    async def story(database: Database) -> None:
        service = SessionService(database)
        assert not await service.delete_session("s")
        assert not await service.delete_session("no session's id!")
        mine, others = (SessionService(database, Principal(agent_id=name)) for name in ("mine", "others"))
        await mine.create_session("s", "app", "ann", initial_state={"k": 1})
        for number in range(3):
            await mine.append_event(
                "s", {"event_type": "message", "actor": "user", "content": {"text": f"fig {number}"}}
            )
        await database.ask(
            Address("session", "s"),
            AddMessage(session_id="s", content="a secret fig", visibility="private"),
            principal=Principal(agent_id="others"),
        )
        assert await service.delete_session("s")
        for each in (service, mine, others):
            assert await each.get_session("s") is None
        assert await listed(database, Principal(agent_id="others")) == []
        assert not await service.delete_session("s")
        await others.create_session("s", "app", "bob")
        again = await mine.get_session("s")
        assert again is not None
        assert (again.user_id, again.state, again.events) == ("bob", {}, [])
        # Who made it deletes one that is no user's.
        await database.ask(
            Address("session", "t"),
            CreateSession(session_id="t", purpose="p"),
            principal=Principal(agent_id="mine"),
        )
        with pytest.raises(ServiceError, match="'mine'"):
            await others.delete_session("t")
        assert await mine.delete_session("t")
        # And one whose project is hidden is not to be told from one that is not there.
        await mine.create_session("u", "app", "ann", project_id="p")
        outside = SessionService(database, Principal(agent_id="mine", user="ann", projects=frozenset()))
        assert not await outside.delete_session("u")
        assert await mine.get_session("u") is not None

    play(tmp_path, story)


@pytest.mark.promise("adapters.google-adk-shared")
def test_what_the_kit_kept_of_a_person_is_erased(tmp_path: Path) -> None:
    async def before(database: Database) -> None:
        service, memory = GreenroomSessionService(database), GreenroomMemoryService(database)
        for user in ("ann", "bob"):
            session = await service.create_session(
                app_name=APP, user_id=user, session_id="s", state={"user:k": user}
            )
            await service.append_event(session, said(f"quinces of {user}", author="user"))
            await memory.add_session_to_memory(session)

    async def erase() -> None:
        secrets = tmp_path / "secrets"
        async with open_greenroom(tmp_path / "store", embedder="none", secrets=secrets) as runtime:
            await Agent(runtime, Principal(agent_id="operator")).ask(EraseUser(user="ann", confirm=True))

    async def after(database: Database) -> None:
        service, memory = GreenroomSessionService(database), GreenroomMemoryService(database)
        assert await service.get_session(app_name=APP, user_id="ann", session_id="s") is None
        assert await service.get_user_state(app_name=APP, user_id="ann") == {}
        assert (await memory.search_memory(app_name=APP, user_id="ann", query="quinces")).memories == []
        assert [each.user_id for each in (await service.list_sessions(app_name=APP)).sessions] == ["bob"]
        assert await service.get_user_state(app_name=APP, user_id="bob") == {"k": "bob"}
        await service.create_session(app_name=APP, user_id="ann", session_id="s", state={"user:k": 2})
        assert await service.get_user_state(app_name=APP, user_id="ann") == {"k": 2}

    play(tmp_path, before)
    trio.run(erase)
    play(tmp_path, after)


@pytest.mark.promise("adapters.google-adk-same")
def test_listings_are_in_the_order_of_the_last_change(tmp_path: Path) -> None:
    async def story(database: Database) -> None:
        service = GreenroomSessionService(database)
        sessions = [
            await service.create_session(app_name=APP, user_id=USER, session_id=each) for each in "abc"
        ]
        for session, moment in zip(sessions, (3.5, 1.25, 2.0), strict=True):
            await service.append_event(session, said("hello", timestamp=moment))
            assert session.last_update_time == moment
            await service.append_event(session, said("on the way", timestamp=9.0, partial=True))
        found = (await service.list_sessions(app_name=APP)).sessions
        assert [(each.id, each.last_update_time) for each in found] == [("b", 1.25), ("c", 2.0), ("a", 3.5)]

    play(tmp_path, story, trio.run)


# -- memories ------------------------------------------------------------------


@pytest.mark.promise("adapters.google-adk-memory")
def test_a_session_is_remembered_once_and_found_as_it_was_said(tmp_path: Path) -> None:
    async def story(database: Database) -> None:
        service, memory = GreenroomSessionService(database), GreenroomMemoryService(database)
        kits = InMemoryMemoryService()
        session = await service.create_session(app_name=APP, user_id=USER)
        for event in (
            said("My cat is called Minka", author="user", id="1", timestamp=1.5),
            said("A fine name for a cat", author="guide", id="2"),
            EVERYTHING,
            changing(cat="Minka"),
            said("cat " * 60_000, author="user", id="long/…"),
        ):
            await service.append_event(session, event)
        await service.append_event(session, said("half a cat", partial=True))

        async def found(query: str, app: str = APP, user: str = USER) -> list[MemoryEntry]:
            return (await memory.search_memory(app_name=app, user_id=user, query=query)).memories

        for _ in range(2):  # the same session again adds nothing
            await memory.add_session_to_memory(session)
            await kits.add_session_to_memory(session)
            ours = {each.id: each for each in await found("cat")}
            theirs = (await kits.search_memory(app_name=APP, user_id=USER, query="cat")).memories
            assert set(ours) == {each.id for each in theirs} == {"1", "2", "long/…"}
            for each in theirs:
                assert (ours[each.id].content, ours[each.id].author) == (each.content, each.author)
        assert ours["1"].timestamp == "1970-01-01T00:00:01.500000+00:00"
        (whole,) = await found("two things")
        assert whole.content == types.Content(
            role="model", parts=[types.Part(text="It says"), types.Part(text="two things")]
        )
        await service.append_event(session, said("The cat is ill", id="3"))
        await memory.add_session_to_memory(session)
        assert {each.id for each in await found("cat")} == {"1", "2", "3", "long/…"}
        assert [each.id for each in await found("Minka")] == ["1"]
        # Nobody else's, nothing that is not there, and nothing for nothing.
        assert await found("cat", user="bob") == await found("cat", app="other") == []
        assert await found("zeppelin") == await found("") == await found(" \n") == []
        assert [each.id for each in await found("Minka " + "y" * 20_000)] == ["1"]

    play(tmp_path, story)


@pytest.mark.promise("adapters.google-adk-memory")
def test_a_memory_that_was_deleted_does_not_come_back(tmp_path: Path) -> None:
    async def story(database: Database) -> None:
        memory = GreenroomMemoryService(database)
        place = {"app_name": APP, "user_id": USER}
        events = [said("red plums", id="1"), said("blue plums", id="2")]

        async def ids() -> list[str]:
            found = await memory.search_memory(**place, query="plums")
            return sorted(each.id or "" for each in found.memories)

        await memory.add_events_to_memory(**place, events=events, custom_metadata={"ttl": "6h"})
        found = await memory.search_memory(**place, query="red")
        assert [each.custom_metadata for each in found.memories] == [{"ttl": "6h"}]
        await memory.delete_memory(**place, memory_id="1")
        await memory.delete_memory(**place, memory_id="unknown")
        await memory.delete_memory(**place)
        await memory.delete_memory(app_name=APP, user_id="bob", memory_id="2")
        assert await ids() == ["2"]
        session = Session(id="s", app_name=APP, user_id=USER, events=[*events, said("green plums", id="3")])
        await asyncio.gather(*(memory.add_session_to_memory(session) for _ in range(4)))
        assert await ids() == ["2", "3"]

    play(tmp_path, story)


@pytest.mark.promise("adapters.google-adk-memory")
def test_memories_are_kept_as_they_are_given(tmp_path: Path) -> None:
    async def story(database: Database) -> None:
        memory = GreenroomMemoryService(database)
        place = {"app_name": APP, "user_id": USER}
        entries = [
            MemoryEntry(
                id="e",
                author="somebody",
                timestamp="some time in May",
                content=types.Content(
                    role="tool", parts=[types.Part(text="plums"), types.Part(text="pears")]
                ),
                custom_metadata={"a": 1},
            ),
            MemoryEntry(content=types.Content(parts=[types.Part(text="quinces")])),
        ]
        await memory.add_memory(**place, memories=entries, custom_metadata={"a": 2, "b": 2})
        (found,) = (await memory.search_memory(**place, query="pears")).memories
        assert found == entries[0].model_copy(update={"custom_metadata": {"a": 1, "b": 2}})
        (found,) = (await memory.search_memory(**place, query="quinces")).memories
        assert (found.content, found.author) == (entries[1].content, None)
        # What another agent of the user stores there is found as well.
        namespace = "user:ann:adk:guide"
        stored = StoreMemory(namespace=namespace, key="by hand", content="medlars")
        await database.ask(memory_address(namespace), stored, principal=ANN)
        (found,) = (await memory.search_memory(**place, query="medlars")).memories
        assert (found.id, found.author, found.content.parts) == (
            "by hand",
            "editor",
            [types.Part(text="medlars")],
        )

    play(tmp_path, story)


@pytest.mark.promise("adapters.google-adk-memory")
def test_whatever_another_agent_stores_there_is_found_as_it_reads(tmp_path: Path) -> None:
    async def story(database: Database) -> None:
        memory, namespace = GreenroomMemoryService(database), "user:ann:adk:guide"
        odd: list[Any] = [
            "no object",
            {"id": []},
            {"unknown": 1},
            {"id": "i", "lengths": "x"},
            {"id": "i", "role": 5},
            None,
        ]
        given: list[dict[str, Any]] = [{"content": "sorb", "metadata": {"adk": each}} for each in odd]
        given += [{"value": ["sorb"]}, {"value": ["sorb " * 60_000]}, {"content": "sorb " * 60_000}]
        for number, fields in enumerate(given):
            arguments = json.dumps({"namespace": namespace, "key": str(number), **fields}).encode()
            stored = parse_request(StoreMemory, arguments)
            await database.ask(memory_address(namespace), stored, principal=ANN)
        found = (await memory.search_memory(app_name=APP, user_id=USER, query="sorb")).memories
        assert {each.id for each in found} == {str(number) for number in range(len(given))}
        assert all("sorb" in str(part.text) for each in found for part in each.content.parts or [])

    play(tmp_path, story)
