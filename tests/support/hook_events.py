"""Clients whose hooks ask and tell, without the process that a client starts for it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import msgspec
from support.agents import moment

from greenroom.actors import (
    Agent,
    AnswerHook,
    GivenRead,
    HookAnswer,
    HookEvent,
    Principal,
    StoreMemory,
    TakeHookEvent,
    Turn,
    WhyGiven,
)

if TYPE_CHECKING:
    from support.agents import House

PROJECT = "shop-0a1b2c3d"
FOLDER = "/home/ann/shop"
_IDS = itertools.count(1)


class Client:
    """One user's client in a house: its hooks, and its agent.

    Attributes:
        principal: Who it is.
        agent: The same with tools.
    """

    def __init__(self, at: House, user: str | None = "ann", agent: str = "claude-code", **more: Any) -> None:
        self.at = at
        self.principal = Principal(agent_id=agent, user=user, **more)
        self.agent = Agent(at.runtime, self.principal)

    def event(self, name: str, session: str = "s1", **members: Any) -> HookEvent:
        given: dict[str, Any] = {
            "id": f"{next(_IDS):032x}",
            "client": "claude-code",
            "project": PROJECT,
            "folder": FOLDER,
            "at": moment(self.at.clock.now()),
        }
        return msgspec.convert({**given, "name": name, "session": session, **members}, HookEvent)

    async def answered(self, event: HookEvent, **options: Any) -> HookAnswer:
        return await self.at.runtime.query(AnswerHook(event=event, **options), principal=self.principal)

    async def asks(self, prompt: str, session: str = "s1", **members: Any) -> str:
        """Return what is given for a prompt."""
        return (await self.answered(self.event("user-prompt", session, prompt=prompt, **members))).context

    async def starts(self, session: str = "s1", reason: str = "startup", **options: Any) -> str:
        """Return what a session starts with."""
        return (await self.answered(self.event("session-start", session, reason=reason), **options)).context

    async def tells(self, name: str, *turns: Turn, session: str = "s1", **members: Any) -> HookEvent:
        """Tell what was said; return the event, which may be told again."""
        event = self.event(name, session, turns=list(turns), **members)
        await self.tells_again(event)
        return event

    async def tells_again(self, event: HookEvent) -> None:
        await self.at.runtime.query(TakeHookEvent(event=event), principal=self.principal)

    async def knows(self, content: str, **members: Any) -> str:
        """Store a memory; return its id."""
        return (await self.agent.ask(StoreMemory(content=content, **members))).memory_id

    async def given(self, **asked: Any) -> GivenRead:
        return await self.at.runtime.query(WhyGiven(**asked), principal=self.principal)


OTHERS = (
    "Invoices are numbered by year and quarter",
    "The mascot of the company is a grey heron",
    "Releases are cut on Thursday from the branch called stable",
    "The colour of the button is teal",
    "Backups are kept for ninety days",
)


async def fill(client: Client) -> None:
    """Store memories that are not asked for."""
    for text in OTHERS:
        await client.knows(text)


def user(text: str, **more: Any) -> Turn:
    return Turn(role="user", text=text, **more)


def model(text: str, **more: Any) -> Turn:
    return Turn(role="assistant", text=text, **more)


def call(tool: str, **more: Any) -> Turn:
    return Turn(role="tool", tool=tool, **more)
