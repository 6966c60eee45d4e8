"""The session of the OpenAI Agents SDK: what its own sessions do, and what agents see of it by the tools."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio
from agents import Agent as AssistedAgent
from agents import ModelResponse, RunConfig, Runner, Usage, function_tool
from agents.extensions.memory import EncryptedSession
from agents.memory import OpenAIResponsesCompactionSession, Session, SessionSettings, SQLiteSession
from agents.models.interface import Model
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage
from support.adapters import CHECKS, Case, Check, database
from support.agents import FAST, refused

from greenroom.actors import (
    AddMessage,
    Agent,
    Database,
    EraseUser,
    Event,
    GetMessages,
    GetSession,
    ListSessions,
    Principal,
    SearchContext,
    SessionService,
    UpdateSession,
    open_greenroom,
)
from greenroom.adapters.openai_agents import GreenroomSession
from greenroom.runtime import Address, Message

pytestmark = pytest.mark.slow

ADA = Principal(agent_id="desk", user="ada")
BOB = Principal(agent_id="desk", user="bob")
EVE = Principal(agent_id="eve")
MB = 1 << 20


def said(text: str, role: str = "user") -> Any:
    return {"role": role, "content": text}


def replied(*texts: str) -> Any:
    parts = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []} for text in texts]
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": parts}


CALL: Any = {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Oslo"}'}
RESULT: Any = {"type": "function_call_output", "call_id": "c1", "output": "snow"}
THOUGHT: Any = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
IMAGE: Any = {"role": "user", "content": [{"type": "input_image", "image_url": "data:," + "A" * 20_000}]}


async def write(opened: Database, text: str) -> None:
    await GreenroomSession(opened, "talk").add_items([said(text)])


async def read(opened: Database) -> list[str]:
    return [cast("Any", item)["content"] for item in await GreenroomSession(opened, "talk").get_items()]


@pytest.mark.promise("adapters.openai-agents-contract")
@pytest.mark.parametrize("check", CHECKS)
def test_contract(check: Check, tmp_path: Path) -> None:
    check(Case(write, read), tmp_path)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """Open one database for many examples."""
    with Database(tmp_path_factory.mktemp("shared"), embedder="none", options=FAST) as opened:
        yield opened


ITEMS = st.one_of(
    st.builds(
        said, st.text(max_size=5), st.sampled_from(["user", "assistant", "system", "developer", "odd"])
    ),
    st.builds(replied, st.text(max_size=5), st.text(max_size=5)),
    st.builds(replied, st.text(max_size=5)),
    st.sampled_from([CALL, RESULT, THOUGHT, {}, {"text": "a"}, {"text": "a", "metadata": {"item": 1}}]),
    st.dictionaries(
        st.sampled_from(["type", "role", "content", "item", "text"]),
        st.one_of(st.none(), st.text(max_size=3), st.lists(st.one_of(st.integers(), st.just({"text": 1})))),
    ),
)
LIMITS = st.one_of(st.none(), st.integers(-1, 4))
STEPS = st.one_of(
    st.tuples(st.just("add_items"), st.lists(ITEMS, max_size=3)),
    st.tuples(st.just("get_items"), LIMITS),
    st.tuples(st.just("pop_item")),
    st.tuples(st.just("clear_session")),
)
RUNS = iter(range(1 << 30))


@pytest.mark.promise("adapters.openai-agents-session")
@given(steps=st.lists(STEPS, max_size=8), limit=LIMITS)
def test_it_does_what_the_sessions_of_the_sdk_do(
    shared: Database, steps: list[tuple[Any, ...]], limit: int | None
) -> None:
    async def main() -> None:
        settings = SessionSettings(limit=limit)
        ours = GreenroomSession(shared, f"run {next(RUNS)}", session_settings=settings)
        theirs = SQLiteSession("run", session_settings=settings)
        try:
            for name, *arguments in (*steps, ("get_items",), ("get_items", -1)):
                answers = [
                    await getattr(session, name)(*copy.deepcopy(arguments)) for session in (ours, theirs)
                ]
                assert answers[0] == answers[1], (name, arguments)
        finally:
            theirs.close()

    asyncio.run(main())


def run(folder: Path, what: Callable[[Database], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        async with Database(folder, embedder="none", options=FAST, **options) as opened:
            await what(opened)

    asyncio.run(main())


async def tool(opened: Database, request: Message[Any], principal: Principal = EVE) -> Any:
    key = cast("Any", request).session_id
    return await opened.ask(Address("session", key), request, principal=principal)


@pytest.mark.promise("adapters.openai-agents-seen")
def test_other_agents_read_and_search_the_conversation(tmp_path: Path) -> None:
    async def main(opened: Database) -> None:
        session = GreenroomSession(opened, "talk", principal=ADA)
        assert isinstance(session, Session)
        long = "n" * 9_000 + "needle" + "n" * 9_000
        items = [
            said("How is the weather?"), THOUGHT, CALL, RESULT, replied("It snows.", "Stay in."),
            said("Be brief.", "developer"), replied("Yes."), said(long), IMAGE,
        ]  # fmt: skip
        await session.add_items(items)
        assert await session.get_items() == items
        page = (await tool(opened, GetMessages(session_id="talk"))).messages
        seen = [(each.sender, each.message_type, each.content) for each in page]
        assert seen[0] == ("user", "message", "How is the weather?")
        assert [each[:2] for each in seen[1:4]] == [
            ("desk", "reflection"), ("desk", "tool_call"), ("desk", "tool_call")
        ]  # fmt: skip
        assert "Oslo" in seen[2][2]
        assert "snow" in seen[3][2]
        assert seen[4] == ("desk", "message", "It snows.\nStay in.")
        assert seen[5:7] == [("system", "message", "Be brief."), ("desk", "message", "Yes.")]
        assert (seen[7][0], len(seen[7][2]), seen[7][2].count("…")) == ("user", 9_999, 1)
        assert seen[8][:2] == ("user", "action")
        found = await tool(opened, SearchContext(session_id="talk", query="how is the wether"))
        assert "How is the weather?" in [hit.message.content for hit in found.results]
        await tool(opened, AddMessage(session_id="talk", content="May I join?"))
        assert await session.get_items(2) == items[-2:]
        assert await session.pop_item() == IMAGE
        await session.clear_session()
        assert await session.get_items() == []
        left = await tool(opened, GetMessages(session_id="talk"))
        assert [each.content for each in left.messages] == ["May I join?"]
        listed = (await opened.query(ListSessions(), principal=EVE)).sessions
        assert [(each.session_id, each.user_id, each.app_name) for each in listed] == [
            ("talk", "ada", "openai-agents")
        ]

    run(tmp_path, main)


@pytest.mark.promise("adapters.openai-agents-seen")
def test_texts_longer_than_a_store_lets_messages_be_come_back_whole(tmp_path: Path) -> None:
    async def main(opened: Database) -> None:
        session = GreenroomSession(opened, "talk")
        items = [said("x" * 50), said("short"), replied("y" * 90, "z")]
        await session.add_items(items)
        await session.add_items(items)
        assert await session.get_items() == [*items, *items]
        page = (await tool(opened, GetMessages(session_id="talk"))).messages
        assert [len(each.content) for each in page] == [39, 5, 39] * 2

    run(tmp_path, main, content_limit=40)


HOSTILE_IDS = [
    "", " ", ".", "..", "../../etc", "a/b", "a_2fb", "x-a_2fb", "x-", "xx-", "all", "current", "ALL", "a\0b",
    "a\nb", "ünï", "u\u0308ni\u0308", "🐸" * 30, "🐸" * 31, "a" * 128, "a" * 129, "a" * 130, "b:" * 5_000,
    "b:" * 5_001, "user:42", "user_3a42", "x-user_3a42", "'; DROP TABLE sessions; --",
]  # fmt: skip


@pytest.mark.promise("adapters.openai-agents-ids")
def test_any_text_is_a_session_id_and_no_two_are_the_same_session(tmp_path: Path) -> None:
    async def main(opened: Database) -> None:
        sessions = [GreenroomSession(opened, each) for each in HOSTILE_IDS]
        assert len({session.key for session in sessions}) == len(HOSTILE_IDS)
        assert sessions[HOSTILE_IDS.index("user:42")].key == "x-user_3a42"
        for session in sessions:
            await session.add_items([said(session.session_id)])
        for session in sessions:
            assert await session.get_items() == [said(session.session_id)]
            kept = (await tool(opened, GetSession(session_id=session.key))).session
            assert b'"session_id":' in bytes(kept.state)
            state = await SessionService(opened).get_state(session.key, "session_id")
            assert state == session.session_id
        for other in ("\ud800", "a\udfffb", cast("str", 7), cast("str", None)):
            with pytest.raises(ValueError, match="session_id"):
                GreenroomSession(opened, other)

    run(tmp_path, main)


def nested(depth: int) -> Any:
    value: Any = "deep"
    for _ in range(depth):
        value = [value]
    return {"role": "user", "content": value}


@pytest.mark.promise("adapters.openai-agents-all-or-none")
def test_items_that_cannot_be_kept_are_refused_with_the_reason_and_none_of_the_call_is(
    tmp_path: Path,
) -> None:
    async def main(opened: Database) -> None:
        session = GreenroomSession(opened, "talk")
        large = said("x" * (MB - 200))
        await session.add_items([nested(90), large, said("\0\u2028\ufffe\U0001f438")])
        before = await session.get_items()
        assert before == [nested(90), large, said("\0\u2028\ufffe\U0001f438")]
        hostile: list[tuple[Any, str]] = [
            (said("x" * 16 * MB), "16,777,216"),
            ({"type": "function_call_output", "output": "x" * 16 * MB}, "16,777,216"),
            (nested(200), "nests deeper"),
            (nested(100_000), "no value for JSON"),
            (said("half a \ud83d frog"), "lone surrogate"),
            ({"role": "user", "content": ("a", "tuple")}, "tuple"),
            ({"role": "user", "content": float("nan")}, "JSON"),
            ({1: "a key"}, "keys"),
            ({"role": "user", "content": b"bytes"}, "JSON"),
        ]
        for item, why in hostile:
            for items in ([item], [said("before"), item, said("after")]):
                with pytest.raises(ValueError, match=why):
                    await session.add_items(items)
        with pytest.raises(ValueError, match="16,777,216"):
            await session.add_items([large] * 17)
        await session.add_items([])
        assert await session.get_items() == before

    run(tmp_path, main)


@pytest.mark.promise("adapters.openai-agents-session", "adapters.openai-agents-seen")
def test_a_photo_is_an_item_as_any_other_and_agents_see_none_of_its_base64(tmp_path: Path) -> None:
    async def main(opened: Database) -> None:
        session = GreenroomSession(opened, "talk")
        picture = {"type": "input_image", "image_url": "data:image/png;base64," + "QUJD" * MB}
        photo: Any = {"role": "user", "content": [{"type": "input_text", "text": "see this"}, picture]}
        output = {"type": "function_call_output", "call_id": "c1", "output": "QUJD" * MB}
        items: list[Any] = [said("first"), photo, output, said("long " * MB), said("last")]
        await session.add_items(items)
        assert await session.get_items() == items
        for limit in range(1, 6):
            assert await session.get_items(limit) == items[-limit:]
        shown = await opened.ask(
            Address("session", "talk"), GetMessages(session_id="talk"), principal=Principal(agent_id="x")
        )
        assert [message.content for message in shown.messages][:2] == ["first", "see this"]
        assert "QUJD" not in str(shown)
        assert len(str(shown)) < 20_000
        for item in reversed(items):
            assert await session.pop_item() == item
        assert await session.get_items() == []
        await session.add_items([photo])
        await session.clear_session()
        assert await session.get_items() == []

    run(tmp_path, main)


@pytest.mark.promise("adapters.openai-agents-owner")
def test_a_session_of_a_user_is_no_other_users(tmp_path: Path) -> None:
    async def main(opened: Database) -> None:
        hers = GreenroomSession(opened, "talk", principal=ADA)
        await hers.add_items([said("mine")])
        for principal in (BOB, EVE, None):
            other = GreenroomSession(opened, "talk", principal=principal)
            for asking in (other.get_items, other.pop_item, other.clear_session):
                with refused("PERMISSION_DENIED", field="session_id"):
                    await asking()
            with refused("PERMISSION_DENIED"):
                await other.add_items([said("not yours")])
        assert await GreenroomSession(opened, "talk", principal=ADA).get_items() == [said("mine")]
        inside = Principal(agent_id="desk", projects=frozenset({"atlas"}))
        outside = Principal(agent_id="desk", projects=frozenset())
        await GreenroomSession(opened, "plan", principal=inside, project_id="atlas").add_items([said("plan")])
        stranger = GreenroomSession(opened, "plan", principal=outside)
        assert await stranger.get_items() == []
        with refused("KEY_EXISTS"):
            await stranger.add_items([said("me, too")])
        with refused("PERMISSION_DENIED", field="project_id"):
            await GreenroomSession(opened, "new", principal=outside, project_id="atlas").add_items(
                [said("a")]
            )

    run(tmp_path, main)


@pytest.mark.promise("adapters.openai-agents-session")
def test_an_id_that_another_user_took_meanwhile_is_not_written_to(tmp_path: Path) -> None:
    async def main(opened: Database) -> None:
        hers = GreenroomSession(opened, "talk", principal=ADA)
        await hers.add_items([said("mine")])
        await SessionService(opened, ADA).delete_session("talk")
        his = GreenroomSession(opened, "talk", principal=BOB)
        await his.add_items([said("his")])
        for asking in (
            lambda: hers.add_items([said("secret")]),
            hers.get_items,
            hers.pop_item,
            hers.clear_session,
        ):
            with refused("PERMISSION_DENIED", field="session_id"):
                await asking()
        assert await his.get_items() == [said("his")]

    run(tmp_path, main)


@pytest.mark.promise("adapters.openai-agents-session")
def test_a_session_that_ended_takes_nothing_more_and_one_that_was_erased_begins_anew(tmp_path: Path) -> None:
    async def main(opened: Database) -> None:
        session = GreenroomSession(opened, "talk", principal=ADA)
        await session.add_items([said("one")])
        await tool(opened, UpdateSession(session_id="talk", status="terminated"), ADA)
        for asking in (lambda: session.add_items([said("two")]), session.pop_item, session.clear_session):
            with refused("SESSION_CLOSED"):
                await asking()
        assert await session.get_items() == [said("one")]
        other = GreenroomSession(opened, "next", principal=ADA)
        await other.add_items([said("one")])
        await erase(tmp_path, "ada")
        assert await other.get_items() == []
        await other.add_items([said("two")])
        await erase(tmp_path, "ada")
        assert await other.pop_item() is None
        await other.add_items([said("three")])
        await erase(tmp_path, "ada")
        await other.clear_session()
        await other.add_items([said("four")])
        await erase(tmp_path, "ada")
        await other.add_items([said("five")])
        assert await GreenroomSession(opened, "next", principal=ADA).get_items() == [said("five")]

    run(tmp_path, main)


async def erase(folder: Path, user: str) -> None:
    async def erasing() -> None:
        async with open_greenroom(folder, embedder="none", options=FAST) as beside:
            await Agent(beside, Principal(agent_id="admin")).ask(EraseUser(user=user, confirm=True))

    await asyncio.to_thread(trio.run, erasing)


@pytest.mark.promise("adapters.openai-agents-all-or-none")
def test_two_who_pop_and_add_at_once_get_each_item_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with database(tmp_path) as one, database(tmp_path) as other:
            sessions = [GreenroomSession(each, "talk") for each in (one, other)]
            await asyncio.gather(*(each.add_items([said(str(n))]) for n in range(5) for each in sessions))
            await sessions[0].add_items([said("a"), said("b")])
            popped = await asyncio.gather(*(each.pop_item() for _ in range(7) for each in sessions))
            taken = sorted(cast("Any", item)["content"] for item in popped if item is not None)
            assert taken == sorted([*(str(n) for n in range(5) for _ in sessions), "a", "b"])
            assert await sessions[1].get_items() == []

    asyncio.run(main())


@pytest.mark.promise("adapters.openai-agents-all-or-none")
def test_a_cancelled_call_adds_all_its_items_or_none(tmp_path: Path) -> None:
    async def main(opened: Database) -> None:
        session = GreenroomSession(opened, "talk")
        for steps in range(12):
            adding = asyncio.ensure_future(session.add_items([said(f"{steps} {n}") for n in range(3)]))
            for _ in range(steps):
                await asyncio.sleep(0)
            adding.cancel()
            await asyncio.gather(adding, return_exceptions=True)
        kept = [cast("Any", item)["content"] for item in await session.get_items()]
        assert kept == [
            f"{steps} {n}" for steps in sorted({int(k.split()[0]) for k in kept}) for n in range(3)
        ]

    run(tmp_path, main)


@pytest.mark.promise("adapters.openai-agents-session")
def test_the_sdks_sessions_that_wrap_others_wrap_it(tmp_path: Path) -> None:
    async def compact(**asked: Any) -> Any:
        assert len(asked["input"]) == 4
        return SimpleNamespace(output=[{"type": "compaction", "id": "c", "encrypted_content": "gAAA"}])

    async def main(opened: Database) -> None:
        plain = GreenroomSession(opened, "secret")
        sealed = EncryptedSession("secret", cast("Any", plain), "a key of one's own")
        await sealed.add_items([said("hush"), CALL])
        assert await sealed.get_items() == [said("hush"), CALL]
        assert "hush" not in str(await plain.get_items())
        assert await sealed.pop_item() == CALL
        kept = GreenroomSession(opened, "long")
        client = cast("Any", SimpleNamespace(responses=SimpleNamespace(compact=compact)))
        compacting = OpenAIResponsesCompactionSession("long", kept, client=client, compaction_mode="input")
        await compacting.add_items([said("a"), replied("b"), said("c"), replied("d")])
        await compacting.run_compaction({"force": True})
        assert await kept.get_items() == [{"type": "compaction", "id": "c", "encrypted_content": "gAAA"}]

    run(tmp_path, main)


@pytest.mark.promise("adapters.openai-agents-session")
def test_events_of_other_programs_in_the_session_are_no_items(tmp_path: Path) -> None:
    async def main(opened: Database) -> None:
        service = SessionService(opened)
        await service.create_session("talk", "another app", None)
        event = Event(event_type="message", actor="user", content={"text": "aside"})
        session = GreenroomSession(opened, "talk")
        await service.append_event("talk", event)
        await session.add_items([said("one")])
        await service.append_events("talk", [event, Event(event_type="action", actor="system", content={})])
        assert await session.get_items(5) == [said("one")]
        assert await session.pop_item() == said("one")
        assert await session.pop_item() is None
        assert len(await service.get_events("talk")) == 2

    run(tmp_path, main)


class Script(Model):
    """A model that says its lines, and keeps what it was given."""

    def __init__(self, *lines: Any) -> None:
        self.lines = list(lines)
        self.given: list[tuple[str | None, list[Any]]] = []

    async def get_response(
        self, system_instructions: str | None, input: str | list[Any], *_: Any, **__: Any
    ) -> ModelResponse:
        self.given.append((system_instructions, copy.deepcopy(cast("list[Any]", input))))
        return ModelResponse(output=[self.lines.pop(0)], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


@pytest.mark.promise("adapters.openai-agents-runs")
def test_a_run_remembers_the_one_before_over_a_tool_and_a_handoff(tmp_path: Path) -> None:
    @function_tool
    def weather(city: str) -> str:
        return f"snow in {city}"

    def calls(call_id: str, name: str, arguments: str = "{}") -> ResponseFunctionToolCall:
        return ResponseFunctionToolCall(type="function_call", call_id=call_id, name=name, arguments=arguments)

    script = Script(
        calls("c1", "transfer_to_forecaster"),
        calls("c2", "weather", '{"city": "Oslo"}'),
        ResponseOutputMessage.model_validate(replied("It snows.")),
        ResponseOutputMessage.model_validate(replied("Oslo.")),
        ResponseOutputMessage.model_validate(replied("Nothing.")),
    )
    forecaster = AssistedAgent(name="forecaster", instructions="forecast", model=script, tools=[weather])
    triage = AssistedAgent(name="triage", instructions="sort", model=script, handoffs=[forecaster])
    settings = RunConfig(tracing_disabled=True)

    async def main(opened: Database) -> None:
        first = await Runner.run(
            triage, "Weather in Oslo?", session=GreenroomSession(opened, "talk"), run_config=settings
        )
        assert first.final_output == "It snows."
        session = GreenroomSession(opened, "talk")
        kept = cast("list[Any]", await session.get_items())
        assert kept == first.to_input_list()
        assert [item.get("type", "message") for item in kept] == [
            "message", "function_call", "function_call_output", "function_call", "function_call_output",
            "message",
        ]  # fmt: skip
        assert kept[4]["output"] == "snow in Oslo"
        second = await Runner.run(forecaster, "Which city?", session=session, run_config=settings)
        assert second.final_output == "Oslo."
        assert script.given[-1] == ("forecast", [*kept, said("Which city?")])
        short = RunConfig(tracing_disabled=True, session_settings=SessionSettings(limit=1))
        await Runner.run(forecaster, "And now?", session=session, run_config=short)
        assert script.given[-1][1] == [replied("Oslo."), said("And now?")]
        assert [instructions for instructions, _ in script.given] == ["sort", *["forecast"] * 4]
        assert len(await session.get_items()) == 10

    run(tmp_path, main)
