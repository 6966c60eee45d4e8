"""Pydantic AI agents whose conversations and memories are in Greenroom."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests, RunContext
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict, ConversationStore, InMemoryConversationStore
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RunUsage
from support.adapters import CHECKS, Case, Check, database

from greenroom.actors import (
    AddMessage,
    Database,
    GetMessages,
    Principal,
    ServiceError,
    SessionService,
    parse_request,
)
from greenroom.adapters.pydantic_ai import GreenroomConversations, memory_toolset
from greenroom.runtime import Address

HELPER = Principal(agent_id="helper", user="alice")


def answering(texts: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    return ModelResponse(parts=[TextPart(f"answer {len(texts)}")])


AGENT = Agent(FunctionModel(answering))


def said(text: str, conversation_id: str = "talk") -> Conversation:
    return Conversation(messages=[ModelRequest.user_text_prompt(text)], conversation_id=conversation_id)


def prompts(conversation: Conversation) -> list[str]:
    return [
        part.content
        for message in conversation.messages
        for part in message.parts
        if isinstance(part, UserPromptPart) and isinstance(part.content, str)
    ]


async def write(opened: Database, text: str) -> None:
    store = GreenroomConversations(opened, HELPER)
    while True:
        conversation = await store.load("talk") or Conversation(conversation_id="talk")
        conversation.messages.append(ModelRequest.user_text_prompt(text))
        try:
            await store.save(conversation)
        except ConversationConflict:
            continue
        return


async def read(opened: Database, conversation_id: str = "talk") -> list[str]:
    conversation = await GreenroomConversations(opened, HELPER).load(conversation_id)
    return [] if conversation is None else prompts(conversation)


@pytest.mark.slow
@pytest.mark.promise("adapters.pydantic-ai-contract")
@pytest.mark.parametrize("check", CHECKS)
def test_contract(check: Check, tmp_path: Path) -> None:
    check(Case(write, read), tmp_path)


def run(home: Path, main: Callable[[Database], Awaitable[None]]) -> None:
    async def opened() -> None:
        async with database(home) as open_database:
            await main(open_database)

    asyncio.run(opened())


IMAGE = BinaryContent(b"\x89PNG", media_type="image/png")
EVERYTHING: list[ModelMessage] = [
    ModelRequest(
        parts=[UserPromptPart(["look \x00 at \U0001f600", IMAGE])],
        instructions="be short",
        run_id="run 1",
        metadata={"ours": [1, None]},
    ),
    ModelResponse(
        parts=[
            ThinkingPart("hm", signature="s"),
            ToolCallPart("add", {"a": 1}, tool_call_id="call 1"),
            ToolCallPart("add", '{"broken', tool_call_id="call 2"),
        ],
        model_name="scripted",
        provider_details={"x": 10**30},
    ),
    ModelRequest(
        parts=[
            ToolReturnPart("add", {"sum": 1.5, "nothing": float("nan")}, tool_call_id="call 1"),
            ToolReturnPart("add", "no JSON", tool_call_id="call 2", outcome="retried"),
        ]
    ),
    ModelResponse(parts=[TextPart("x" * 20_000)]),
    ModelResponse(parts=[]),
]


@pytest.mark.promise("adapters.pydantic-ai-equal")
def test_a_conversation_comes_back_as_it_was_and_clients_can_read_it(tmp_path: Path) -> None:
    as_json = ModelMessagesTypeAdapter.dump_json(EVERYTHING)

    async def main(opened: Database) -> None:
        store = GreenroomConversations(opened, HELPER)
        entries = await store.save(Conversation(messages=[*EVERYTHING], conversation_id="talk"), scope="room")
        loaded = await store.load("talk", scope="room")
        assert loaded is not None
        assert ModelMessagesTypeAdapter.dump_json(loaded.messages) == as_json
        assert loaded.messages[3:] == EVERYTHING[3:]
        read_entries = await store.load_entries("talk")
        assert read_entries is not None
        assert [entry.id for entry in read_entries] == [entry.id for entry in entries]
        assert await store.load_entries("talk", limit=3) == read_entries[2:]
        assert await store.read_entry(str(entries[3].id)) == entries[3]
        assert await store.load("talk", scope="another room") is None
        paused = DeferredToolRequests(approvals=[ToolCallPart("pay", {"sum": 7}, tool_call_id="call 3")])
        loaded.deferred_tool_requests = paused
        loaded.usage = RunUsage(requests=2, details={"odd": 3}, cost=Decimal("0.10"))
        await store.save(loaded)
        again = await store.load("talk")
        assert again is not None
        assert (again, len(again.messages)) == (loaded, len(EVERYTHING))
        assert again.deferred_tool_requests == paused
        session = await opened.sessions.get_session("talk")
        assert session is not None
        assert session.user_id == "alice"

        client = Principal(agent_id="client")
        asked = GetMessages(session_id="talk")
        page = await opened.ask(Address("session", "talk"), asked, principal=client)
        assert [message.sender for message in page.messages] == ["user", *["helper"] * 5]
        assert [message.content[:40] for message in page.messages[:5]] == [
            "look \x00 at \U0001f600\n(binary)",
            'add({"a":1})\nadd({"INVALID_JSON":"{\\"bro',
            'add: {"sum":1.5,"nothing":null}\nadd: {"e',
            "x" * 40,
            "(response)",
        ]

    run(tmp_path, main)


@pytest.mark.slow
@pytest.mark.promise("adapters.pydantic-ai-equal")
def test_it_does_what_the_store_of_the_framework_does(tmp_path: Path) -> None:
    async def told(store: ConversationStore) -> list[object]:
        """Return what a program sees that saves, branches, forks and deletes."""
        seen: list[object] = []
        conversation = Conversation(conversation_id="main")
        for prompt in ("one", "two"):
            result = await AGENT.run(prompt, conversation=conversation)
            seen.append(len(await store.save(result)))
            seen.append(await store.save(result))  # a repeat keeps nothing twice
            conversation = result.conversation
        old = await store.load("main")
        assert old is not None
        branched = await store.branch("main", at=2, expected_revision=old.revision)
        result = await AGENT.run("instead", conversation=branched)
        await store.save(result)
        with pytest.raises(ConversationConflict):
            await store.save(old)
        for at, name in ((3, "fork"), (None, "whole")):
            fork = await store.fork("main", at=at, new_conversation_id=name, scope="forks")
            await store.save(await AGENT.run(f"in {name}", conversation=fork))
        further = await store.fork("fork", new_conversation_id="further")
        await store.save(await AGENT.run("further", conversation=further))
        with pytest.raises(ConversationConflict):
            await store.fork("main", new_conversation_id="fork")
        [left] = (await store.list_conversations())[-1].branches
        back = await store.fork("main", from_entry=str(left), new_conversation_id="back")
        seen.append(prompts(back))
        seen.append([record.conversation_id for record in await store.list_conversations()])
        seen.append(
            [record.conversation_id for record in await store.list_conversations(scope="forks", limit=2)]
        )
        await store.delete("main")
        await store.delete("whole", scope="others")
        await store.delete("never there")
        with pytest.raises(ConversationConflict):
            await store.save(conversation)
        with pytest.raises(UserError):
            await store.fork("main")
        for name in ("main", "fork", "whole", "further", "back"):
            loaded = await store.load(name)
            tail = await store.load(name, limit=2)
            seen.append(None if loaded is None else prompts(loaded))
            seen.append(None if tail is None else prompts(tail))
        await store.save(
            Conversation(messages=[ModelRequest.user_text_prompt("anew")], conversation_id="main")
        )
        anew = await store.load("main")
        assert anew is not None
        seen.append((prompts(anew), anew.usage.requests))
        seen.append((result.conversation.usage.requests, result.conversation.usage.output_tokens))
        with pytest.raises(LookupError):
            await store.read_entry("none")
        return seen

    async def main(opened: Database) -> None:
        assert await told(GreenroomConversations(opened, HELPER)) == await told(InMemoryConversationStore())

    run(tmp_path, main)


@pytest.mark.promise("adapters.pydantic-ai-contract")
def test_of_two_saves_that_follow_one_revision_one_is_kept(tmp_path: Path) -> None:
    async def main(opened: Database) -> None:
        store = GreenroomConversations(opened, HELPER)
        for turn in range(3):  # the first makes the session
            loaded = [await store.load("race") or Conversation(conversation_id="race") for _ in range(4)]
            for number, conversation in enumerate(loaded):
                conversation.messages.append(ModelRequest.user_text_prompt(f"{turn} of {number}"))
            ends = await asyncio.gather(*map(store.save, loaded), return_exceptions=True)
            assert [type(end) for end in ends if isinstance(end, Exception)] == [ConversationConflict] * 3
            kept = await store.load("race")
            assert kept is not None
            assert len(kept.messages) == turn + 1

    run(tmp_path, main)


@pytest.mark.promise("adapters.pydantic-ai-apart")
def test_odd_ids_are_kept_apart(tmp_path: Path) -> None:
    names = [
        "plain",
        "a/b",
        "a b",
        "../x",
        "x" * 129,
        "x" * 130,
        "\u00fc",
        "\n",
        "",
        "pydantic-ai-x",
        ".",
        "\x00",
    ]
    names.append(
        GreenroomConversations.session_of("a/b")
    )  # an id that looks like that of another one's session

    async def main(opened: Database) -> None:
        store = GreenroomConversations(opened, HELPER)
        for name in names:
            await store.save(
                Conversation(messages=[ModelRequest.user_text_prompt(name)], conversation_id=name)
            )
        for name in names:
            loaded = await store.load(name)
            assert loaded is not None
            assert (loaded.conversation_id, prompts(loaded)) == (name, [name])

    run(tmp_path, main)


@pytest.mark.promise("adapters.pydantic-ai-apart")
def test_other_users_and_other_sessions_are_left_alone(tmp_path: Path) -> None:
    async def main(opened: Database) -> None:
        store = GreenroomConversations(opened, HELPER)
        [entry] = await store.save(said("mine", "open"))
        client = Principal(agent_id="client", user="alice")
        forged = {"id": entry.id, "parent": None, "message": {"kind": "request", "parts": []}}
        for metadata in ({"pydantic_ai": forged}, {"pydantic_ai_record": 3}):
            given = {"session_id": "open", "content": "psst", "metadata": metadata}
            message = parse_request(AddMessage, json.dumps(given).encode())
            await opened.ask(Address("session", "open"), message, principal=client)
        assert await read(opened, "open") == ["mine"]

        bobs = GreenroomConversations(opened, Principal(agent_id="helper", user="bob"))
        assert await bobs.load("open") is None
        assert await bobs.list_conversations() == []
        await bobs.delete("open")
        with pytest.raises(LookupError):
            await bobs.read_entry(str(entry.id))
        with pytest.raises(ConversationConflict):
            await bobs.save(said("not mine", "open"))
        await SessionService(opened, client).create_session("notes", "an editor", "alice")
        for theirs in (bobs, store):
            with pytest.raises(ServiceError, match="notes"):
                await theirs.save(said("no notes", "notes"))
        stranger = Principal(agent_id="stranger", user="alice", projects=frozenset({"other"}))
        in_project = GreenroomConversations(opened, HELPER, project_id="atlas")
        await in_project.save(said("secret", "in atlas"))
        assert await GreenroomConversations(opened, stranger).load("in atlas") is None
        assert await read(opened, "open") == ["mine"]
        assert await read(opened, "in atlas") == ["secret"]

    run(tmp_path, main)


@pytest.mark.slow
@pytest.mark.promise("adapters.pydantic-ai-equal")
def test_a_photo_comes_back_and_agents_see_none_of_its_base64(tmp_path: Path) -> None:
    async def main(opened: Database) -> None:
        store = GreenroomConversations(opened, HELPER)
        photo = BinaryContent(data=b"ABC" * 700_000, media_type="image/png")
        asked = ModelRequest(parts=[UserPromptPart(content=["see this", photo])])
        answered = ModelResponse(parts=[TextPart("long " * 400_000)])
        given: list[list[ModelMessage]] = [[asked], [asked, answered, asked]]
        for messages in given:
            conversation = await store.load("album") or Conversation(conversation_id="album")
            conversation.messages[:] = messages
            await store.save(conversation)
            loaded = await store.load("album")
            assert loaded is not None
            dump = ModelMessagesTypeAdapter.dump_json
            assert dump(loaded.messages) == dump(messages)
        session = store.session_of("album")
        shown = await opened.ask(
            Address("session", session), GetMessages(session_id=session), principal=HELPER
        )
        assert shown.messages[0].content.startswith("see this")
        assert "QUJD" not in str(shown)

    run(tmp_path, main)


@pytest.mark.promise("adapters.pydantic-ai-contract")
def test_what_cannot_be_kept_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    async def main(opened: Database) -> None:
        store = GreenroomConversations(opened, HELPER)
        for text, why in (("\ud800", "surrogates"), ("x" * 17_000_000, "16,777,216 bytes")):
            conversation = Conversation(
                messages=[ModelRequest.user_text_prompt("fine"), ModelRequest.user_text_prompt(text)],
                conversation_id="refused",
            )
            with pytest.raises(ValueError, match=why):
                await store.save(conversation)
            assert await store.load("refused") is None
            session = await opened.sessions.get_session("refused")
            assert session is None or session.events == []
        await store.save(
            Conversation(messages=[ModelRequest.user_text_prompt("fine")], conversation_id="refused")
        )

    run(tmp_path, main)


@pytest.mark.promise("adapters.pydantic-ai-equal")
def test_long_texts_are_whole_where_messages_are_to_be_short(tmp_path: Path) -> None:
    async def main() -> None:
        async with Database(tmp_path, embedder="none", content_limit=50) as opened:
            store = GreenroomConversations(opened, HELPER)
            await store.save(said("long " * 100))
            assert await read(opened) == ["long " * 100]
            session = await opened.sessions.get_session("talk")
            assert session is not None
            assert [len(event.content["text"]) for event in session.events] == [50]

    asyncio.run(main())


def returned(messages: list[ModelMessage]) -> list[Any]:
    """Return what tools have answered since the model was asked, or the sentences with which they refused."""
    [*_, last] = messages
    parts = last.parts if isinstance(last, ModelRequest) else []
    return [part.content for part in parts if isinstance(part, ToolReturnPart)]


@pytest.mark.promise("adapters.pydantic-ai-tools")
def test_a_model_keeps_finds_corrects_and_forgets_what_is_of_the_user(tmp_path: Path) -> None:
    answers: list[Any] = []

    def script(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        assert {tool.name for tool in info.function_tools} == {
            "remember",
            "recall",
            "update_memory",
            "forget",
        }
        answers.extend(returned(messages))
        calls: list[tuple[str, dict[str, Any]]] = [
            ("remember", {"content": ""}),
            ("remember", {"content": "Alice takes her tea without sugar."}),
            ("recall", {"query": "How does Alice take tea?", "limit": 500}),
            ("recall", {"query": "tea", "limit": 0}),
            ("update_memory", {"memory_id": "7", "content": "x"}),
            ("update_memory", {"memory_id": "ID", "content": "Alice takes her tea with honey."}),
            ("recall", {"query": "tea"}),
            ("forget", {"memory_id": "ID"}),
            ("forget", {"memory_id": "ID"}),
            ("recall", {"query": "tea"}),
        ]
        if len(answers) == len(calls):
            return ModelResponse(parts=[TextPart("done")])
        name, given = calls[len(answers)]
        if given.get("memory_id") == "ID":
            given["memory_id"] = answers[1].removeprefix("Kept as memory ").removesuffix(".")
        return ModelResponse(parts=[ToolCallPart(name, given)])

    async def main(opened: Database) -> None:
        def of(ctx: RunContext[str]) -> Principal:
            return Principal(agent_id="helper", user=ctx.deps)

        agent = Agent(
            FunctionModel(script), deps_type=str, toolsets=[memory_toolset(opened, of)], retries={"tools": 3}
        )
        await opened.memory.add_memory("user:bob", "tea", {"tea": "milk"}, "semantic", "x", "y")
        await agent.run("hello", deps="alice")
        empty, kept, found, none, unknown, updated, found_again, forgotten, gone, nothing = answers
        assert "content" in empty
        assert kept.startswith("Kept as memory ")
        assert [each["content"] for each in found] == ["Alice takes her tea without sugar."]
        assert "limit" in none
        assert "memory_id" in unknown
        assert updated.endswith("version 2 now.")
        assert [each["content"] for each in found_again] == ["Alice takes her tea with honey."]
        assert forgotten.endswith("is forgotten.")
        assert "no memory" in gone
        assert nothing == []
        [bobs] = await opened.memory.search_memories("user:bob")
        assert bobs.value == {"tea": "milk"}

    run(tmp_path, main)
