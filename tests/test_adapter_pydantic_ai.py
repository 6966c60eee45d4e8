"""Pydantic AI agents whose conversations and memories are in Greenroom."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from pydantic_ai import Agent, RunContext
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict, InMemoryConversationStore
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from support.adapters import CHECKS, Case, Check, database

from greenroom.actors import Database, GetMessages, Principal, ServiceError
from greenroom.adapters.pydantic_ai import GreenroomConversations, memory_toolset
from greenroom.runtime import Address

HELPER = Principal(agent_id="helper", user="alice")


def answering(texts: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    return ModelResponse(parts=[TextPart(f"answer {len(texts)}")])


AGENT = Agent(FunctionModel(answering))


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


async def read(opened: Database) -> list[str]:
    conversation = await GreenroomConversations(opened, HELPER).load("talk")
    return [] if conversation is None else prompts(conversation)


@pytest.mark.promise("adapters.pydantic-ai-contract")
@pytest.mark.parametrize("check", CHECKS)
def test_contract(check: Check, tmp_path: Path) -> None:
    check(Case(write, read), tmp_path)


def run(home: Path, main: Callable[[Database], Awaitable[None]]) -> None:
    async def opened() -> None:
        async with database(home) as open_database:
            await main(open_database)

    asyncio.run(opened())
