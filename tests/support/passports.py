"""Passports in tests: sessions that are exported, and documents that are forged."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any

from greenroom.actors import (
    AddMessage,
    Agent,
    GetMessages,
    PassportOptions,
    Principal,
    ReadResource,
    StartSession,
)
from greenroom.actors.app.client.context import ClientContext
from greenroom.actors.sessions.passports import envelope
from greenroom.actors.sessions.passports.export import collect
from greenroom.actors.sessions.passports.signing import Signers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.agents import House

    from greenroom.actors import SessionExported
    from greenroom.actors.sessions.passports.packing import PassportPayload
    from greenroom.runtime import RuntimeClient

HOME = "/home/user/greenroom"

Opens = Callable[..., AbstractAsyncContextManager["House"]]
"""Opens the server of this name."""


def derive_with(letter: str) -> Callable[[str], bytes]:
    """Return what derives keys from a server's secret, one server a letter."""
    return lambda purpose: (letter + purpose).encode().ljust(32, b".")[:32]


def signers(letter: str = "a", *trusted: str, shared: bytes | None = None) -> Signers:
    return Signers(derive_with(letter), trusted, shared)


def member(
    runtime: RuntimeClient,
    name: str = "claude-code",
    *,
    trusted: tuple[str, ...] = (),
    shared: bytes | None = None,
    **more: Any,
) -> Agent:
    """Return the agent of a tool, whose server trusts some signers."""
    more.setdefault("user", "user")
    who = Principal(agent_id=name, **more)
    return Agent(runtime, who, client=name, passports=PassportOptions(trusted, shared))


async def begun(agent: Agent, *messages: str, **arguments: Any) -> str:
    """Start a session with these messages; return its id."""
    session_id = (await agent.ask(StartSession(workspace_path=HOME, new=True, **arguments))).session_id
    assert session_id is not None
    for content in messages:
        await agent.ask(AddMessage(session_id=session_id, content=content))
    return session_id


async def text_of(agent: Agent, exported: SessionExported) -> str:
    """Return the document of an export, as its resource."""
    read: Any = await agent.ask(ReadResource(uri=exported.uri))
    text: str = read.text
    return text


async def seen(runtime: RuntimeClient, principal: Principal, session_id: str) -> PassportPayload:
    """Return all of a session that somebody sees."""
    _, content = await collect(ClientContext(runtime, principal), session_id, None, include_memories=True)
    return content


def forged(text: str, signer: Signers, **changes: Any) -> str:
    """Return a passport with other members, signed by somebody."""
    document = json.loads(text) | changes
    body = {name: value for name, value in document.items() if name not in envelope.NOT_SIGNED}
    return envelope.write(body, signer.sign(envelope.canonical(body))).decode()


async def contents(agent: Agent, session_id: str) -> list[str]:
    """Return what an agent reads in a session."""
    page = await agent.ask(GetMessages(session_id=session_id, limit=1000))
    return [message.content for message in page.messages]


def signer_of(here: House) -> str:
    return Signers(here.runtime.derive).name


@asynccontextmanager
async def two(open_at: Opens) -> AsyncIterator[tuple[House, House, str]]:
    """Two servers, of which the second trusts the first."""
    async with open_at("one") as here, open_at("two") as there:
        yield here, there, signer_of(here)
