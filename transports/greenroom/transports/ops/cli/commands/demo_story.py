"""The story of `greenroom demo`, act by act."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final
from urllib.parse import urlsplit

import trio
from mcp import Client
from mcp_types import Implementation, TextContent

from greenroom.transports.ops.cli.support.step_printer import StepPrinter
from greenroom.transports.sockets.websocket.client import websocket_client

QUIET: Final = 0.25  # this many seconds without a notification prove that none comes: over two windows
WINDOW: Final = 0.12  # after this many seconds, a change is notified at once again
ROUNDS: Final = 5
BURST: Final = 100
KILL_AFTER: Final = 40
EXPIRES_IN: Final = 1  # seconds; the minimum

_PLAN: Final = "The deployment schedule: staging on Thursday, production on Friday at noon."
_PRIVATE: Final = "Between me and myself: I doubt that Friday."
_TYPO: Final = "deployent shedule"


class ToolRefusedError(Exception):
    """The server refused a request."""

    def __init__(self, tool: str, code: str, sentence: str) -> None:
        super().__init__(f"{tool} was refused: {code}: {sentence}")
        self.code = code


@dataclass
class Ear:
    """The state of a subscription: whether it was notified since the last `forget`."""

    heard: trio.Event = field(default_factory=trio.Event)

    def forget(self) -> None:
        """Forget the notifications so far."""
        self.heard = trio.Event()


@dataclass
class Member:
    """A connected agent, through the client that any program may use."""

    client: Client

    async def ask(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its reply."""
        result = await self.client.call_tool(tool, arguments)
        content = result.content[0]
        assert isinstance(content, TextContent), "tools answer with text"
        answer: dict[str, Any] = json.loads(content.text)
        if result.is_error:
            raise ToolRefusedError(tool, answer["code"], answer["error"])
        return answer

    async def refusal(self, tool: str, **arguments: Any) -> str:
        """Return the code of a tool's refusal, or its reply instead."""
        try:
            return f"the answer {await self.ask(tool, **arguments)}"
        except ToolRefusedError as error:
            return error.code

    async def say(self, session_id: str, content: str, **more: Any) -> Any:
        """Add a message and return its id."""
        return (await self.ask("add_message", session_id=session_id, content=content, **more))["message_id"]

    async def messages(self, session_id: str) -> list[dict[str, Any]]:
        """Return all messages that this agent sees."""
        return list((await self.ask("get_messages", session_id=session_id, limit=1000))["messages"])

    async def contents(self, session_id: str) -> list[str]:
        """Return the content of all messages that this agent sees."""
        return [message["content"] for message in await self.messages(session_id)]

    async def search_session(self, session_id: str, query: str) -> list[dict[str, Any]]:
        """Search a session; return the results, best first."""
        return list((await self.ask("search_context", session_id=session_id, query=query))["results"])

    @asynccontextmanager
    async def hearing(self, uri: str) -> AsyncIterator[Ear]:
        """Subscribe to a resource during the block."""
        async with (
            self.client.listen(resource_subscriptions=[uri]) as changes,
            trio.open_nursery() as nursery,
        ):
            ear = Ear()

            async def hear() -> None:
                async for _ in changes:
                    ear.heard.set()

            nursery.start_soon(hear)
            yield ear
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def member(url: str, name: str) -> AsyncIterator[Member]:
    """Connect an agent; it reconnects automatically."""
    us = Implementation(name=name, version="1")
    async with Client(websocket_client(url, agent=name), client_info=us, cache=None) as client:
        yield Member(client)


async def story(
    printer: StepPrinter, start: Callable[[str], Awaitable[object]], url: str, server: trio.Process
) -> None:
    """Play all acts on a running server; `start` starts another one at HOST:PORT."""
    async with member(url, "planner") as planner, member(url, "coder") as coder:
        session = await _share(printer, planner, coder)
        async with coder.hearing(f"session://{session}") as ear:
            scene = _Scene(printer, planner, coder, session, ear)
            expires_at = await scene.remember()
            await scene.notify()
            await scene.keep_private()
            await scene.search()
            await scene.expire(expires_at)
            await scene.crash(server, lambda: start(urlsplit(url).netloc))


async def _share(printer: StepPrinter, planner: Member, coder: Member) -> str:
    printer.step("Two agents, planner and coder, share a session over WebSocket")
    session: str = (await planner.ask("create_session", purpose="Release 2"))["session_id"]
    await planner.say(session, _PLAN)
    await coder.say(session, "I will write the release notes.")
    seen = [await agent.contents(session) for agent in (planner, coder)]
    for message in await coder.messages(session):
        printer.quote(message["sender"], message["content"])
    printer.check("both agents see the same two messages", seen[0] == seen[1] and len(seen[0]) == 2, seen)  # noqa: PLR2004
    return session


@dataclass(frozen=True)
class _Scene:
    """The agents and their session; each method is an act."""

    printer: StepPrinter
    planner: Member
    coder: Member
    session: str
    ear: Ear

    async def remember(self) -> dt.datetime:
        """Show that a memory belongs to its agent only; return when one expires."""
        self.printer.step(f"planner keeps two memories, one of them for {EXPIRES_IN} second")
        await self.planner.ask("set_memory", key="who-decides", value={"name": "Ada"})
        stored = await self.planner.ask(
            "set_memory", key="code-word", value="swordfish", expires_in=EXPIRES_IN
        )
        read = await self.planner.ask("get_memory", key="code-word")
        self.printer.check("planner reads what it stored", read["value"] == "swordfish", read)
        refused = await self.coder.refusal("get_memory", key="code-word")
        self.printer.check("for coder there is no such memory", refused == "MEMORY_NOT_FOUND", refused)
        return dt.datetime.fromisoformat(stored["expires_at"])

    async def notify(self) -> None:
        """Show that a subscriber is notified."""
        self.printer.step("coder subscribes to the session and is notified when it changes")
        answered, notified = [], []
        for number in range(ROUNDS):
            self.ear.forget()
            sent = trio.current_time()
            await self.planner.say(self.session, f"Progress report {number + 1}.")
            answered.append(trio.current_time() - sent)
            await self.ear.heard.wait()
            notified.append(trio.current_time() - sent)
            await trio.sleep(WINDOW)
        self.printer.check(f"coder was notified of each of {ROUNDS} messages", len(notified) == ROUNDS)
        self.printer.tell(
            f"from sending to the notification {_ms(median(notified))} (fastest {_ms(min(notified))}); "
            f"the answer, with the message on disk, took {_ms(median(answered))}"
        )

    async def keep_private(self) -> None:
        """Show that only the author sees a private message."""
        self.printer.step("planner writes a private message")
        self.ear.forget()
        await self.planner.say(self.session, _PRIVATE, visibility="private")
        self.printer.quote("planner", _PRIVATE)
        own, others = [await agent.contents(self.session) for agent in (self.planner, self.coder)]
        self.printer.check(
            f"planner sees {len(own)} messages, the private one among them", _PRIVATE in own, own
        )
        self.printer.check(f"coder sees {len(others)}: all but that one", others == own[:-1], others)
        found = await self.coder.search_session(self.session, "doubt that Friday")
        contents = [hit["message"]["content"] for hit in found]
        self.printer.check("coder's search does not find it", _PRIVATE not in contents, contents)
        with trio.move_on_after(QUIET) as quiet:
            await self.ear.heard.wait()
        self.printer.check("coder was not even woken by it", quiet.cancelled_caught, "a notification")

    async def search(self) -> None:
        """Show that a search tolerates typing errors."""
        self.printer.step(f"coder searches for {_TYPO!r}, typing errors and all")
        found = await self.coder.search_session(self.session, _TYPO)
        for hit in found[:1]:
            self.printer.quote(f"score {hit['score']:g}", hit["message"]["content"])
        best = found[0]["message"]["content"] if found else "nothing"
        self.printer.check("the plan is found all the same", best == _PLAN, best)

    async def expire(self, expires_at: dt.datetime) -> None:
        """Show that an expired memory is gone."""
        self.printer.step(f"The memory's {EXPIRES_IN} second is over")
        left = (expires_at - dt.datetime.now(dt.UTC)).total_seconds()
        with self.printer.waiting("time passes"):
            await trio.sleep(max(0.0, left) + 0.002)
        refused = await self.planner.refusal("get_memory", key="code-word")
        self.printer.check("it is gone from the moment on", refused == "MEMORY_NOT_FOUND", refused)
        listed = [entry["key"] for entry in (await self.planner.ask("list_memory"))["entries"]]
        self.printer.check("the other one is still listed", listed == ["who-decides"], listed)

    async def crash(self, server: trio.Process, restart: Callable[[], Awaitable[object]]) -> None:
        """Show that a killed server loses nothing."""
        self.printer.step(
            f"Both write {BURST} messages at once, and the server is killed meanwhile (SIGKILL)"
        )
        before = await self.planner.contents(self.session)
        answered: dict[str, int] = {}
        enough = trio.Event()

        async def write(author: Member, content: str) -> None:
            # With an idempotency key the client may resend it if the connection breaks before the reply.
            answered[content] = await author.say(self.session, content, idempotency_key=content)
            if len(answered) == KILL_AFTER:
                enough.set()

        async with trio.open_nursery() as writers:
            for number in range(BURST):
                author = self.coder if number % 2 else self.planner
                writers.start_soon(write, author, f"Step {number + 1} is done.")
            await enough.wait()
            server.kill()
            await server.wait()
            killed, kept = trio.current_time(), dict(answered)
            self.printer.tell(f"when it died it had answered {len(kept)} of {BURST}")
            with self.printer.waiting("it starts again"):
                await restart()
        self.printer.tell(
            f"it was started again on the same folder; {trio.current_time() - killed:.1f} s after its death "
            "both agents had connected again by themselves and had every answer"
        )
        await self.look_after_crash(before, kept, set(answered))

    async def look_after_crash(self, before: list[str], kept: dict[str, int], written: set[str]) -> None:
        """Check that every message is there exactly once."""
        messages = await self.planner.messages(self.session)
        numbers = {message["content"]: message["message_id"] for message in messages}
        contents = Counter(message["content"] for message in messages)
        lost = [content for content, number in kept.items() if numbers.get(content) != number]
        self.printer.check(f"all {len(kept)} messages answered before the kill are there", not lost, lost)
        self.printer.check(
            f"so is everything from before: {len(before)} messages",
            before == list(contents)[: len(before)],
            contents,
        )
        wrong = [content for content in written if contents[content] != 1]
        self.printer.check(
            f"each of the {BURST} is there exactly once", len(written) == BURST and not wrong, wrong
        )
        decides = await self.planner.ask("get_memory", key="who-decides")
        self.printer.check("the memory is there", decides["value"] == {"name": "Ada"}, decides)
        seen = await self.coder.contents(self.session)
        self.printer.check(
            "and the private message is still private", _PRIVATE not in seen and _PRIVATE in contents, seen
        )
        await trio.sleep(WINDOW)
        self.ear.forget()
        await self.planner.say(self.session, "We are back.")
        await self.ear.heard.wait()
        self.printer.check("coder's subscription goes on as if nothing had happened", True)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"
