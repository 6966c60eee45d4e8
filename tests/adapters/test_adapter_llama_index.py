"""LlamaIndex's memory with a block whose memories are in Greenroom."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, MessageRole, TextBlock
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import MockLLM
from llama_index.core.memory import Memory
from sqlalchemy import NullPool
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from support.adapters import CHECKS, Case, Check, database

from greenroom.actors import Database, MemorySearch, Principal
from greenroom.adapters.llama_index import GreenroomMemoryBlock
from greenroom.runtime import Refusal

ALICE = Principal(agent_id="helper", user="alice")


def block(opened: Database, principal: Principal = ALICE, max_tokens: int = 1_000) -> GreenroomMemoryBlock:
    return GreenroomMemoryBlock(database=opened, principal=principal, max_tokens=max_tokens)


async def put(opened: Database, *messages: ChatMessage, chat: str = "chat") -> None:
    await block(opened).aput(list(messages), from_short_term_memory=True, session_id=chat)


async def recalled(given: GreenroomMemoryBlock, *messages: ChatMessage) -> list[str]:
    """Return what the block puts into the context, without the day before each memory."""
    content = await given.aget(list(messages), session_id="another chat")
    return [found.text.partition("] ")[2] for found in content if isinstance(found, TextBlock)]


@asynccontextmanager
async def chats() -> AsyncIterator[Callable[..., Memory]]:
    """Yield what makes memories with a short-term memory of their own; LlamaIndex leaves it open."""
    engines: list[AsyncEngine] = []

    def made(session_id: str, given: GreenroomMemoryBlock, limit: int = 30_000) -> Memory:
        engines.append(create_async_engine("sqlite+aiosqlite:///:memory:"))
        return Memory.from_defaults(
            session_id=session_id,
            memory_blocks=[given],
            async_engine=engines[-1],
            token_limit=limit,
            token_flush_size=limit // 4,
        )

    try:
        yield made
    finally:
        for engine in engines:
            await engine.dispose()


async def write(opened: Database, text: str) -> None:
    await put(opened, ChatMessage(text))


async def read(opened: Database) -> list[str]:
    found = await opened.memory.search_memories("user:alice", limit=100)
    return [memory.value["content"].removeprefix("user: ") for memory in found]


@pytest.mark.promise("adapters.llama-index-contract")
@pytest.mark.parametrize("check", CHECKS)
def test_contract(check: Check, tmp_path: Path) -> None:
    check(Case(write, read), tmp_path)


def run(home: Path, main: Callable[[Database], Awaitable[None]]) -> None:
    async def opened() -> None:
        async with database(home) as open_database:
            await main(open_database)

    asyncio.run(opened())


@pytest.mark.slow
@pytest.mark.promise("adapters.llama-index-flushed")
def test_what_leaves_a_chat_is_found_in_another_one(tmp_path: Path) -> None:
    facts = [
        "My sister Nora keeps bees on the roof.",
        "The bicycle needs a new chain before Sunday.",
        "Our flat is painted in a terrible green.",
    ]

    async def main(opened: Database) -> None:
        async with chats() as new:
            first = new("first", block(opened), 40)
            engine = SimpleChatEngine.from_defaults(llm=MockLLM(), memory=first)
            for fact in facts:
                await engine.achat(fact)
            kept = await read(opened)
            assert len(kept) == len(set(kept))
            assert facts[0] in kept
            active = [message.content for message in await first.aget_all()]
            assert set(facts) <= {*kept, *active}

            second = new("second", block(opened))
            await second.aput(ChatMessage("Who keeps bees?"))
            system, question = await second.aget()
            assert question.content == "Who keeps bees?"
            assert system.role == MessageRole.SYSTEM
            assert facts[0] in str(system.content)

        bobs = block(opened, Principal(agent_id="helper", user="bob"))
        assert await recalled(bobs, ChatMessage("Who keeps bees?")) == []

    run(tmp_path, main)


@pytest.mark.promise("adapters.llama-index-flushed")
def test_a_repeated_flush_doubles_nothing_and_only_texts_are_kept(tmp_path: Path) -> None:
    flushed = [
        ChatMessage("yes"),
        ChatMessage("yes", role="assistant"),
        ChatMessage(" \n", role="assistant"),
        ChatMessage(role="user", blocks=[ImageBlock(url="file:///x.png")]),
        ChatMessage("{}", role="tool", additional_kwargs={"tool_call_id": "1"}),
        ChatMessage("\x00 \u00fc \U0001f600"),
    ]

    async def main(opened: Database) -> None:
        for chat in ("chat", "chat", "x" * 1_000):
            await put(opened, *flushed, chat=chat)
            await asyncio.gather(put(opened, *flushed, chat=chat), put(opened, *flushed, chat=chat))
        kept = await read(opened)
        found = await opened.memory.search_memories("user:alice", limit=100)
        assert {memory.version for memory in found} == {1}
        assert sorted(kept) == sorted(2 * ["yes", "assistant: yes", "tool: {}", "\x00 \u00fc \U0001f600"])
        with pytest.raises(Refusal, match="content"):
            await put(opened, ChatMessage("before"), ChatMessage("x" * 2_000_000))
        assert "before" in await read(opened)
        with pytest.raises(Refusal, match="lone surrogate"):
            await put(opened, ChatMessage("\ud800"))

    run(tmp_path, main)


@pytest.mark.promise("adapters.llama-index-budget")
def test_what_is_recalled_fits_the_budget_and_the_least_helpful_goes_first(tmp_path: Path) -> None:
    async def main(opened: Database) -> None:
        for number in range(20):
            await put(opened, ChatMessage(f"The heron {'waits ' * number}at the pond, number {number}."))
        question = ChatMessage("Where is the heron?")
        most = await recalled(block(opened, max_tokens=100_000), question)
        less = await recalled(block(opened, max_tokens=200), question)
        assert 0 < len(less) < len(most)
        assert sum(len(text) for text in less) <= 200 * 4
        assert await recalled(block(opened)) == []
        assert await recalled(block(opened), ChatMessage(role="user", blocks=[])) == []
        long_question = ChatMessage("x" * 20_000 + " heron")
        assert await recalled(block(opened), long_question, ChatMessage("no question", role="assistant"))

        given = block(opened)
        content = await given.aget([question])
        assert await given.atruncate(content, 0) == content
        cut = await given.atruncate(content, 1)
        assert cut == content[:-1]
        assert await given.atruncate(content, 100_000) is None
        assert await given.atruncate([], 5) is None
        async with chats() as new:
            tight = new("tight", block(opened), 120)
            await tight.aput(question)
            system, _ = await tight.aget()
        assert sum(text in str(system.content) for text in most) in range(1, len(content))

    run(tmp_path, main)


@pytest.mark.promise("adapters.llama-index-flushed")
def test_clients_find_what_was_flushed_and_the_block_what_clients_stored(tmp_path: Path) -> None:
    async def main(opened: Database) -> None:
        await put(opened, ChatMessage("The kettle is broken."))
        search = MemorySearch(query="kettle", tags=["conversation"])
        found = await opened.query(search, principal=Principal(agent_id="client", user="alice"))
        assert [memory.content for memory in found.memories] == ["user: The kettle is broken."]
        await opened.memory.add_memory("user:alice:home", "tap", {"tap": "drips"}, "semantic", "client", "t")
        assert '{"tap":"drips"}' in await recalled(block(opened), ChatMessage("Does the tap drip?"))

    run(tmp_path, main)


@pytest.mark.promise("adapters.llama-index-flushed")
def test_a_program_without_an_event_loop_has_it_too(tmp_path: Path) -> None:
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/chats.db", poolclass=NullPool)
    with database(tmp_path) as opened:
        memory = Memory.from_defaults(memory_blocks=[block(opened)], token_limit=40, async_engine=engine)
        memory.put_messages([ChatMessage(f"The owl calls {number} times.") for number in range(9)])
        system, *_ = memory.get()
        assert "The owl calls" in str(system.content)
