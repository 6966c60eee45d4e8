"""A tool that does, over whatever transport, what its argument says step by step: for tests of streams."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio
from conformance.sdk_side import SdkSide
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp_types import CallToolRequestParams, CallToolResult, TextContent
from support.desk import NOTES, Desk, NoteTool
from support.https import Guest, Place, place

SCRIPT = NoteTool(name="script", title="", description="")
TOOLS = {**NOTES, "script": SCRIPT}
META = {"progressToken": "p"}

Context = ServerRequestContext[Any, Any]


class Stage:
    """Where scripts are played.

    A script's words: ``say`` reports progress, with a number as often as it says; ``close`` closes
    the stream; ``wait`` waits until `released` is set; ``ask`` asks the client's user something;
    ``pause`` takes a second; ``much`` reports progress with 64 KiB of words.

    Attributes:
        released: Ends waiting.
        waiting: Set once a script waits.
        cancelled: How many scripts were called off.
        called_off: Set once one was.
        answers: What clients answered.
        extend: Lets a server play scripts.
        played: How many scripts came to their end.
    """

    def __init__(self) -> None:
        self.released = trio.Event()
        self.waiting = trio.Event()
        self.called_off = trio.Event()
        self.cancelled = 0
        self.played = 0
        self.answers: list[Any] = []

        server: Server[Any] = Server("stage", version="1")
        server.add_request_handler("tools/call", CallToolRequestParams, self._play)
        self.extend = SdkSide(server, lambda call: call.frame.name == "script").take

    async def _play(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        try:
            for word in str((params.arguments or {})["text"]).split():
                await self._step(context, word)
        except trio.Cancelled:
            self.cancelled += 1
            self.called_off.set()
            raise
        self.played += 1
        return CallToolResult(content=[TextContent(text="played")])

    async def _step(self, context: Context, word: str) -> None:
        verb, _, count = word.partition("-")
        if verb in {"say", "much"}:
            words = "x" * 65_536 if verb == "much" else word
            for number in range(int(count or 1)):
                await context.session.report_progress(number, message=words)
        elif verb == "close":
            if context.close_sse_stream is not None:
                await context.close_sse_stream()
        elif verb == "wait":
            self.waiting.set()
            await self.released.wait()
        elif verb == "pause":
            await trio.sleep(float(count or 1))
        else:
            assert verb == "ask", word
            schema: Any = {"type": "object", "properties": {"a": {"type": "string"}}}
            said = await context.session.elicit_form("?", schema, context.request_id)
            self.answers.append(said.content)


async def script(guest: Guest, words: str, *, modern: bool = False, **headers: str | None) -> int:
    """Call the tool that does what these words say."""
    params = {"name": "script", "arguments": {"text": words}, "_meta": META}
    if modern:
        return await guest.modern("tools/call", params, **headers)
    return await guest.request("tools/call", params, **headers)


@asynccontextmanager
async def stage(**options: Any) -> AsyncIterator[tuple[Stage, Place]]:
    """Serve the tool that plays scripts."""
    acts = Stage()
    async with place(Desk(), tools=TOOLS, extend=acts.extend, **options) as here:
        yield acts, here
        acts.released.set()
