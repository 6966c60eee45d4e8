"""A door of the tests' own: tools that answer, wait, fail or say much, as they are told."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import inf
from typing import Any

import msgspec
import outcome
import trio

from greenroom.actors.core.auth.tool_profiles import SchemaForm
from greenroom.transports import SubscriberPort, Tool


class Note(msgspec.Struct, frozen=True):
    """The arguments of every tool here."""

    text: str = ""


class Noted(msgspec.Struct, frozen=True):
    """The answer of every tool here."""

    text: str


class NoteTool(Tool, frozen=True, kw_only=True):
    """A tool of this test."""

    def parse(self, arguments: bytes) -> Any:
        return self.name, msgspec.json.decode(arguments, type=Note)

    def listing(self, schemas: SchemaForm = "plain") -> dict[str, Any]:  # noqa: ARG002
        return {"name": self.name, "inputSchema": {"type": "object"}}


def tool(name: str, *, weight: int = 0) -> NoteTool:
    return NoteTool(name=name, title="", description="", weight=weight)


NOTES = {each.name: each for each in [tool("echo"), tool("hold"), tool("fail"), tool("big", weight=1)]}


class Desk:
    """A door whose answers wait until they are let go, and which fails as it is told."""

    scopes = frozenset({"*"})

    def check_scope(self, request: type[Any], arguments: bytes = b"") -> None:
        """Open everything."""

    def __init__(self) -> None:
        self.agents: list[str] = []
        self.accepted: list[str] = []
        self.cancelled: list[str] = []
        self.released = trio.Event()
        self.error: Exception | None = None
        self.big_text = "x" * 50_000

    def open(self, agent: str) -> Desk:
        self.agents.append(agent)
        return self

    def close(self) -> None:
        """Do nothing: nothing is held."""

    def subscriber(self, window: float) -> SubscriberPort:
        raise AssertionError(f"nobody subscribes here, for {window} s or at all")

    async def ask(
        self, request: Any, *, checked: bool = False, on_accepted: Callable[[], None] | None = None
    ) -> Noted:
        assert checked
        kind, note = request
        if kind == "fail":
            assert self.error is not None
            raise self.error
        for _ in range(random.randrange(3)):  # noqa: S311  (the order must not depend on luck)
            await trio.lowlevel.checkpoint()
        self.accepted.append(note.text)
        assert on_accepted is not None
        on_accepted()
        if kind == "hold":
            try:
                await self.released.wait()
            except trio.Cancelled:
                self.cancelled.append(note.text)
                raise
        return Noted(self.big_text if kind == "big" else note.text)

    def post(
        self,
        request: Any,
        done: Callable[[Any], None],
        in_task: Callable[[Callable[[], Any]], None],  # noqa: ARG002  (nothing needs one)
        *,
        on_accepted: Callable[[], None] | None = None,
        deadline: float = inf,
    ) -> Posted:
        """Answer as `ask` does, in a task of the tests' own."""
        scope = trio.CancelScope(deadline=deadline)

        async def ask() -> None:
            with scope:
                result = await outcome.acapture(self.ask, request, checked=True, on_accepted=on_accepted)
                done(result)

        trio.lowlevel.spawn_system_task(ask)
        return Posted(scope)


class Posted:
    """A request under way at a desk."""

    def __init__(self, scope: trio.CancelScope) -> None:
        self._scope = scope

    def cancel(self) -> None:
        self._scope.cancel()
