"""Several `greenroom serve` on one folder, each with a client of its own at its pipes."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from harness import ServerProcess, server_process
from support.commands import run_on_store

from greenroom.testing import MODERN_META
from greenroom.transports.ops.control.client import ControlSocketError, NoOwnerError, Stats, call

Answer = dict[str, Any]
UPDATED = "notifications/resources/updated"


class ToolClient:
    """An AI tool: its server process, and what it asks and hears there.

    Attributes:
        notices: The notifications that came and were not looked at yet.
    """

    def __init__(self, server: ServerProcess, name: str) -> None:
        self.server = server
        self.client = server.client
        self.name = name
        self.notices: list[Answer] = []
        self._answers: dict[int, Answer] = {}

    @property
    def process(self) -> trio.Process:
        return self.server.process

    async def shake_hands(self, *, modern: bool) -> None:
        if modern:
            info = {"name": self.name, "version": "1"}
            self.client.meta = MODERN_META | {"io.modelcontextprotocol/clientInfo": info}
        else:
            await self.client.initialize(self.name)

    async def send(self, tool: str, **arguments: Any) -> int:
        return await self.client.send_call(tool, arguments)

    async def answer(self, number: int) -> Answer:
        """Return the whole answer to a request."""
        while number not in self._answers:
            await self._more()
        return self._answers.pop(number)

    def has_answer(self, number: int) -> bool:
        """Return whether the answer to a request has come, and nobody has taken it."""
        return number in self._answers

    async def result(self, number: int) -> Answer:
        """Return what a tool answered."""
        result = (await self.answer(number))["result"]
        found: Answer = json.loads(result["content"][0]["text"])
        return found

    async def call(self, tool: str, **arguments: Any) -> Answer:
        return await self.result(await self.send(tool, **arguments))

    async def request(self, method: str, **params: Any) -> Answer:
        return await self.answer(await self.client.send_request(method, params))

    async def watch(self, uri: str) -> None:
        """Subscribe to a resource in the way of its era."""
        if self.client.meta:
            await self.client.send_request(
                "subscriptions/listen", {"notifications": {"resourceSubscriptions": [uri]}}
            )
            await self.notice("notifications/subscriptions/acknowledged")
        else:
            assert "result" in await self.request("resources/subscribe", uri=uri)

    async def notice(self, method: str = UPDATED) -> Answer:
        """Return the next notification, which is this one."""
        while not self.notices:
            await self._more()
        notice = self.notices.pop(0)
        assert notice["method"] == method, notice
        return notice

    async def contents(self, session: str) -> list[str]:
        """Return the messages of a session in order."""
        found: list[str] = []
        cursor: Answer = {}
        while True:
            page = await self.call("get_messages", session_id=session, limit=1000, **cursor)
            found += [message["content"] for message in page["messages"]]
            if page["next_cursor"] is None:
                return found
            cursor = {"cursor": page["next_cursor"]}

    async def kill(self) -> None:
        self.process.kill()
        await self.process.wait()

    async def end(self, how: str) -> int:
        """End it in one of several ways; return the exit code."""
        if how == "end of input":
            await self.client.end_input()
        else:
            self.process.send_signal(signal.Signals[how])
        return await self.process.wait()

    async def _more(self) -> None:
        line = await self.client.receive_line()
        assert line, self.server.errors()
        message: Answer = json.loads(line)
        if "id" in message:
            assert message["id"] not in self._answers, "it is answered twice"
            self._answers[message["id"]] = message
        else:
            self.notices.append(message)


@asynccontextmanager
async def tool_client(home: Path, name: str, *flags: str, modern: bool = False) -> AsyncIterator[ToolClient]:
    """Run a server on the store in `home`, ready for calls of the agent `name`."""
    async with server_process(home, *flags) as server:
        client = ToolClient(server, name)
        try:
            await client.shake_hands(modern=modern)
            yield client
        finally:
            if server.process.returncode is None:
                server.process.send_signal(signal.SIGCONT)


@asynccontextmanager
async def tool_clients(home: Path, *names: str, modern: str = "") -> AsyncIterator[list[ToolClient]]:
    """Run a server for each agent, one after the other, so that the first owns the folder."""
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(tool_client(home, name, modern=name == modern)) for name in names
        ]


async def relay_statistics(store: Path) -> Answer:
    """Return what the owner says of those who share the folder, as soon as there is one that answers."""
    while True:
        try:
            answer = await trio.to_thread.run_sync(call, store, Stats())
        except (NoOwnerError, ControlSocketError):
            await trio.sleep(0.01)
        else:
            relay: Answer = json.loads(answer)["relay"]
            return relay


async def until_owner(home: Path, *processes: ToolClient) -> ToolClient:
    """Return which of the processes owns the folder, once the others are attached to it."""
    while True:
        relay = await relay_statistics(home / "store")
        pids = {each.process.pid: each for each in processes}
        if relay["owner_pid"] in pids and {relay["owner_pid"], *relay["attached_pids"]} == set(pids):
            return pids[relay["owner_pid"]]
        await trio.sleep(0.01)


def stats_text(home: Path) -> str:
    """Return what `greenroom stats` prints."""
    return run_on_store(home, "stats").stdout
