"""Conversations of agent frameworks that came by a passport, which leaves large contents out."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from google.adk.events.event import Event
from google.genai import types
from pydantic_ai.conversation import Conversation
from pydantic_ai.messages import BinaryContent, ModelRequest, ModelResponse, TextPart, UserPromptPart
from support.passports import member, text_of, two

from greenroom.actors import ExportSession, ListSessions, Principal, RestoreSession
from greenroom.adapters.google_adk import GreenroomSessionService
from greenroom.adapters.openai_agents import GreenroomSession
from greenroom.adapters.pydantic_ai import GreenroomConversations

if TYPE_CHECKING:
    from support.passports import Opens

    from greenroom.runtime import RuntimeClient

pytestmark = [pytest.mark.slow, pytest.mark.promise("adapters.passports")]

PICTURE = b"\x00\xff" * 800_000
SAID = ["the first", "the last"]
ADA = Principal(agent_id="desk", user="user")


class Framework(NamedTuple):
    """How a framework keeps a conversation: a text, a picture without words, and a text."""

    write: Callable[[Any], Awaitable[object]]
    read: Callable[[Any], Awaitable[list[str]]]
    go_on: Callable[[Any], Awaitable[object]]


def prompt(*parts: Any) -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(list(parts))])


async def write_pydantic(runtime: Any) -> None:
    picture = prompt(BinaryContent(PICTURE, media_type="image/png"))
    messages: list[Any] = [prompt("the first"), picture, ModelResponse(parts=[TextPart("the last")])]
    await GreenroomConversations(runtime, ADA).save(Conversation(messages=messages, conversation_id="talk"))


async def write_pydantic_last(runtime: Any) -> None:
    store = GreenroomConversations(runtime, ADA)
    await store.save(Conversation(messages=[prompt("the first"), prompt("the last")], conversation_id="talk"))
    conversation = await store.load("talk")
    assert conversation is not None
    conversation.messages.append(prompt(BinaryContent(PICTURE, media_type="image/png")))
    await store.save(conversation)


async def read_pydantic(runtime: Any) -> list[str]:
    store = GreenroomConversations(runtime, ADA)
    conversation = await store.load("talk")
    newest = await store.load("talk", limit=1)
    assert conversation is not None
    assert newest is not None
    assert newest.messages == conversation.messages[-1:]
    said: list[Any] = [
        getattr(part, "content", None) for message in conversation.messages for part in message.parts
    ]
    return [each if isinstance(each, str) else each[0] for each in said]


async def go_on_pydantic(runtime: Any) -> None:
    store = GreenroomConversations(runtime, ADA)
    conversation = await store.load("talk")
    assert conversation is not None
    conversation.messages.append(prompt("and on"))
    await store.save(conversation)


def adk(text: str | None) -> Event:
    part = types.Part(text=text) if text else types.Part.from_bytes(data=PICTURE, mime_type="image/png")
    return Event(author="user", content=types.Content(role="user", parts=[part]))


async def write_adk(runtime: Any) -> None:
    service = GreenroomSessionService(runtime)
    session = await service.create_session(app_name="app", user_id="user", session_id="talk")
    for text in ("the first", None, "the last"):
        await service.append_event(session, adk(text))


async def adk_session(runtime: Any) -> Any:
    return await GreenroomSessionService(runtime).get_session(
        app_name="app", user_id="user", session_id="talk"
    )


async def read_adk(runtime: Any) -> list[str]:
    return [event.content.parts[0].text for event in (await adk_session(runtime)).events]


async def go_on_adk(runtime: Any) -> None:
    await GreenroomSessionService(runtime).append_event(await adk_session(runtime), adk("and on"))


async def write_openai(runtime: Any) -> None:
    picture = {"type": "input_image", "image_url": "data:image/png;base64," + "QUJD" * 500_000}
    items: list[Any] = [{"role": "user", "content": text} for text in SAID]
    items.insert(1, {"role": "user", "content": [picture]})
    await GreenroomSession(runtime, "talk", principal=ADA).add_items(items)


async def read_openai(runtime: Any) -> list[str]:
    items: list[Any] = await GreenroomSession(runtime, "talk", principal=ADA).get_items()
    return [item["content"] for item in items]


async def go_on_openai(runtime: Any) -> None:
    item: Any = {"role": "user", "content": "and on"}
    await GreenroomSession(runtime, "talk", principal=ADA).add_items([item])


PYDANTIC = Framework(write_pydantic, read_pydantic, go_on_pydantic)
FRAMEWORKS = {
    "pydantic_ai": PYDANTIC,
    "pydantic_ai, the last": PYDANTIC._replace(write=write_pydantic_last),
    "google_adk": Framework(write_adk, read_adk, go_on_adk),
    "openai_agents": Framework(write_openai, read_openai, go_on_openai),
}


async def carried(here: RuntimeClient, there: RuntimeClient, signer: str) -> None:
    """Carry the one session of a server to another one."""
    who = member(here)
    [session] = (await who.ask(ListSessions())).sessions
    text = await text_of(who, await who.ask(ExportSession(session_id=session.session_id)))
    await member(there, trusted=(signer,)).ask(RestoreSession(passport=text, tool_id="cursor"))


@pytest.mark.parametrize("name", FRAMEWORKS)
async def test_a_picture_that_a_passport_left_out_is_passed_over_with_a_warning(
    open_at: Opens, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    framework = FRAMEWORKS[name]
    caplog.set_level(logging.WARNING, "greenroom.adapters")
    async with two(open_at) as (here, there, signer):
        await framework.write(here.runtime)
        await carried(here.runtime, there.runtime, signer)
        assert await framework.read(there.runtime) == SAID
        assert "came by a passport, which left a" in caplog.text
        await framework.go_on(there.runtime)
        assert await framework.read(there.runtime) == [*SAID, "and on"]
