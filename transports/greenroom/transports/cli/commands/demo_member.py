"""One agent of the demo: a connection of its own, through the client that any program may use."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio
from mcp import Client
from mcp_types import Implementation, TextContent

from greenroom.transports.websocket.client import websocket_client


class ToolRefusedError(Exception):
    """The server refused a request."""

    def __init__(self, tool: str, code: str, sentence: str) -> None:
        super().__init__(f"{tool} was refused: {code}: {sentence}")
        self.code = code


class Member:
    """An agent that is connected.

    Attributes:
        name: Its agent id.
    """

    def __init__(self, name: str, client: Client) -> None:
        self.name = name
        self._client = client

    async def ask(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return what a tool answers.

        Raises:
            ToolRefusedError: The server refused.
        """
        result = await self._client.call_tool(tool, arguments)
        content = result.content[0]
        assert isinstance(content, TextContent), "tools answer with text"
        answer: dict[str, Any] = json.loads(content.text)
        if result.is_error:
            raise ToolRefusedError(tool, answer["code"], answer["error"])
        return answer

    async def refusal(self, tool: str, **arguments: Any) -> str:
        """Return the code with which a tool refuses, or what it answers instead."""
        try:
            return f"the answer {await self.ask(tool, **arguments)}"
        except ToolRefusedError as error:
            return error.code

    async def say(self, session_id: str, content: str, **more: Any) -> int:
        """Add a message and return its id."""
        answer = await self.ask("add_message", session_id=session_id, content=content, **more)
        number: int = answer["message_id"]
        return number

    async def messages(self, session_id: str) -> list[dict[str, Any]]:
        """Return every message that this agent sees."""
        found: list[dict[str, Any]] = (await self.ask("get_messages", session_id=session_id, limit=1000))[
            "messages"
        ]
        return found

    async def contents(self, session_id: str) -> list[str]:
        """Return what every message that this agent sees says."""
        return [message["content"] for message in await self.messages(session_id)]

    async def found(self, session_id: str, query: str) -> list[dict[str, Any]]:
        """Return what a search finds, best first."""
        found: list[dict[str, Any]] = (await self.ask("search_context", session_id=session_id, query=query))[
            "results"
        ]
        return found

    @asynccontextmanager
    async def hearing(self, uri: str) -> AsyncIterator[NotificationLog]:
        """Subscribe to a resource while the block runs."""
        async with (
            self._client.listen(resource_subscriptions=[uri]) as changes,
            trio.open_nursery() as nursery,
        ):
            ear = NotificationLog()

            async def hear() -> None:
                async for _ in changes:
                    ear.notify()

            nursery.start_soon(hear)
            yield ear
            nursery.cancel_scope.cancel()


class NotificationLog:
    """The notifications of one subscription."""

    def __init__(self) -> None:
        self._heard = trio.Event()

    def notify(self) -> None:
        """Note a notification."""
        self._heard.set()

    def forget(self) -> None:
        """Forget the notifications so far."""
        self._heard = trio.Event()

    async def wait(self) -> float:
        """Wait for a notification since the last `forget`; return trio's time then."""
        await self._heard.wait()
        return trio.current_time()

    async def is_quiet(self, seconds: float) -> bool:
        """Return whether nothing was heard since the last `forget`, nor is in so many seconds."""
        with trio.move_on_after(seconds):
            await self._heard.wait()
        return not self._heard.is_set()


@asynccontextmanager
async def member(url: str, name: str) -> AsyncIterator[Member]:
    """Connect an agent; it connects again by itself when its connection breaks."""
    us = Implementation(name=name, version="1")
    async with Client(websocket_client(url, agent=name), client_info=us, cache=None) as client:
        yield Member(name, client)
