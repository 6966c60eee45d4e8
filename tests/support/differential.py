"""One conversation held with our server and with the SDK's, over two stores alike, step by step.

Both run in one trio loop in virtual time. After each step both come to rest, and what they said meanwhile
must be the same, but for what the server makes up: ids of sessions and messages, and cursors. Each such
value gets a name by the order in which it is first seen, so a mix-up is seen, too.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from math import inf
from pathlib import Path
from typing import Any

import msgspec
import trio
from harness import principal
from support import agents
from support.differential_conversations import Burst, Conversation, Step, Wait
from support.differential_deviations import (
    ANY,
    DEVIATIONS,
    NONE,
    Deviation,
    Line,
    coerced,
    deviation_of,
    is_id,
)
from support.differential_reference import Reference, reference, reference_server
from support.differential_requests import CURSOR, FRESH, MEMORY, MESSAGE, SESSION
from support.differential_tools import TOOLS_AND_HOLD
from trio.testing import MockClock, active_thread_count, wait_all_tasks_blocked, wait_all_threads_completed

from greenroom.actors import (
    REQUESTS,
    AddMessage,
    Agent,
    CreateSession,
    DeleteMemory,
    ForgetMemory,
    GetMemory,
    ListVersions,
    RateMemory,
    SetMemory,
    StoreMemory,
    UpdateMemory,
    is_write,
)
from greenroom.runtime import Procedure
from greenroom.testing import McpClient, VirtualClock, mcp_client
from greenroom.transports import Cancellable, SubscriberPort

SDK_SERVER = reference_server(TOOLS_AND_HOLD)
BY_KEY = {DeleteMemory, ForgetMemory, GetMemory, ListVersions, RateMemory, UpdateMemory}
"""They ask several owners where the first one has no such key."""
PACE = 0.01  # seconds between steps
SETTLED = 1.0  # seconds until what is merged with earlier changes has been told


class Holding:
    """An agent's door with one more tool behind it, whose calls stay open for ever."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    @property
    def scopes(self) -> frozenset[str]:
        return self._agent.scopes

    def check_scope(self, request: type[Any], arguments: bytes = b"") -> None:
        self._agent.check_scope(request, arguments)

    def close(self) -> None:
        self._agent.close()

    def subscriber(self, window: float) -> SubscriberPort:
        return self._agent.subscriber(window)

    async def ask(self, request: Any, *, checked: bool = False, on_accepted: Any = None) -> Any:
        if not isinstance(request, tuple):
            return await self._agent.ask(request, checked=checked, on_accepted=on_accepted)
        if on_accepted is not None:
            on_accepted()
        await trio.sleep_forever()
        raise AssertionError("it sleeps")

    def post(
        self,
        request: Any,
        done: Callable[[Any], None],
        in_task: Callable[[Callable[[], Any]], None],
        *,
        on_accepted: Callable[[], None] | None = None,
        deadline: float = inf,
    ) -> Cancellable | None:
        if not isinstance(request, tuple):
            return self._agent.post(request, done, in_task, on_accepted=on_accepted, deadline=deadline)
        if on_accepted is not None:
            on_accepted()
        return Held()


class Held:
    """A call that stays open."""

    def cancel(self) -> None:
        pass


class Names:
    """Names for what a server makes up, by the order in which it is seen."""

    _MADE_UP = re.compile(
        r"session_[A-Za-z0-9]{16}|memory_[0-9a-f]{16}"
        r"|\b[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b[0-9]{15,16}\b"
    )
    _CURSORS = ("cursor", "next_cursor", "nextCursor")

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self.last: dict[str, Any] = {
            CURSOR: "none yet",
            MESSAGE: 1,
            SESSION: "none-yet",
            MEMORY: "00000000-0000-8000-8000-000000000000",
            "@key": "",
        }

    def plain(self, value: Any, member: str = "") -> Any:
        """Return a value of the server with names for what it made up; texts that are JSON are read."""
        if isinstance(value, dict):
            return {self._plain_text(key, ""): self.plain(part, key) for key, part in sorted(value.items())}
        if isinstance(value, list):
            return [self.plain(part) for part in value]
        if isinstance(value, str):
            return self._plain_text(value, member)
        is_made_up = type(value) is int and 10**14 < value < 2**53
        return self._named(MESSAGE, value) if is_made_up else value

    def _plain_text(self, text: str, member: str) -> Any:
        if member == "text" and text[:1] in {"{", "["}:
            return ["read", self.plain(json.loads(text))]
        if member in self._CURSORS:
            return self._named(CURSOR, text)
        return self._MADE_UP.sub(lambda found: self._of_text(found[0]), text)

    def _of_text(self, text: str) -> str:
        for kind, is_one in ((SESSION, text.startswith("session_")), ("@key", text.startswith("memory_"))):
            if is_one:
                return self._named(kind, text)
        return self._named(MEMORY, text) if "-" in text else self._named(MESSAGE, int(text))

    def _named(self, kind: str, value: Any) -> str:
        self.last[kind] = value
        return self._names.setdefault(f"{kind} {value}", f"<{kind[1:]} {len(self._names)}>")

    def filled(self, raw: bytes) -> bytes:
        """Return a line with what this server said last in the place of placeholders."""
        raw = raw.replace(b'"%b"' % MESSAGE.encode(), str(self.last[MESSAGE]).encode())
        for kind in (CURSOR, SESSION, MEMORY):
            raw = raw.replace(kind.encode(), str(self.last[kind]).encode())
        return raw


class Sides:
    """Both servers, and the conversation so far."""

    def __init__(
        self, ours: McpClient, theirs: Reference, clock: MockClock, deviations: Sequence[Deviation]
    ) -> None:
        self._deviations = deviations
        self._ours = ours
        self._theirs = theirs
        self._clock = clock
        self._said: list[bytes] = []
        self._our_names, self._their_names = Names(), Names()
        self._open: set[tuple[type, Any]] = set()
        self._last_id = 1_000

    async def listen(self) -> None:
        """Gather what ours says."""
        while line := await self._ours.receive_line():
            self._said.append(line)

    async def take(self, step: Step | Wait | Burst) -> str | None:
        """Do one step on both sides; return how they differ, or None."""
        self._clock.jump(PACE)
        if isinstance(step, Burst):
            return await self._take_burst(step)
        if isinstance(step, Wait):
            self._clock.jump(step.seconds)
            await self._rest()
            return self._compare(step)
        raw = self._with_id(step)
        line = Line(raw)
        if self._may_not_be_told_apart(line):
            return None
        deviation = deviation_of(line, self._open, self._deviations)
        await self._ours.send_bytes(self._our_names.filled(raw) + b"\n")
        if deviation is None:
            self._note(line)
            await self._theirs.send(self._their_names.filled(raw))
        await self._rest()
        if deviation is None:
            return self._compare(step)
        return self._judge(step, line, deviation)

    async def _take_burst(self, burst: Burst) -> str | None:
        """Write lines at once to ours, and to the SDK's one after the other: that is how they must act."""
        lines: list[bytes] = []
        taken: list[Line] = []
        for step in burst.steps:
            line = Line(raw := self._with_id(step))
            if (
                not self._may_not_be_told_apart(line)
                and not any(_race(before, line) for before in taken)
                and deviation_of(line, self._open, self._deviations) is None
            ):
                self._note(line)
                lines.append(raw)
                taken.append(line)
        await self._ours.send_bytes(b"".join(self._our_names.filled(raw) + b"\n" for raw in lines))
        for raw in [self._their_names.filled(raw) for raw in lines]:
            await self._theirs.send(raw)
            await self._rest()
        await self._rest()
        self._clock.jump(SETTLED)
        await self._rest()
        order = [Line(raw).id for raw in lines]
        ours, theirs = _in_order(order, self._our_messages()), _in_order(order, self._their_messages())
        # What follows a change in the same burst may come in time to hear of it, or to miss it.
        if any(Line(raw).method == "resources/unsubscribe" for raw in lines):
            theirs = [message for message in theirs if "id" in message]
        plain_theirs = [self._their_names.plain(message) for message in theirs]
        plain_ours = [self._our_names.plain(message) for message in ours]
        heard = [message for message in plain_theirs if "method" in message]
        plain_ours = [message for message in plain_ours if "id" in message or message in heard]
        return _told_apart(burst, plain_ours, plain_theirs)

    def _with_id(self, step: Step) -> bytes:
        self._last_id += 1
        return step.raw.replace(b'"%b"' % FRESH.encode(), str(self._last_id).encode())

    def _may_not_be_told_apart(self, line: Line) -> bool:
        """Whether the SDK would have two open requests under one id, of which a cancellation finds one."""
        key = line.id
        return is_id(key) and any(
            coerced(key) == coerced(each) and type(key) is not kind for kind, each in self._open
        )

    def _note(self, line: Line) -> None:
        if line.is_request and is_id(line.id):
            self._open.add((type(line.id), line.id))
        elif line.method == "notifications/cancelled" and is_id(key := line.member("params", "requestId")):
            self._open.discard((type(key), key))

    async def _rest(self) -> None:
        while True:
            await wait_all_tasks_blocked()
            if active_thread_count() == 0:
                return
            await wait_all_threads_completed()

    def _compare(self, step: Step | Wait) -> str | None:
        ours, theirs = self._our_messages(), self._their_messages()
        if isinstance(step, Wait):  # what falls due at one moment is told in any order
            ours, theirs = sorted(ours, key=json.dumps), sorted(theirs, key=json.dumps)
        return self._differ(step, ours, theirs)

    def _differ(
        self, step: Step | Wait | Burst, ours: list[dict[str, Any]], theirs: list[dict[str, Any]]
    ) -> str | None:
        plain_ours = [self._our_names.plain(message) for message in ours]
        plain_theirs = [self._their_names.plain(message) for message in theirs]
        return _told_apart(step, plain_ours, plain_theirs)

    def _their_messages(self) -> list[dict[str, Any]]:
        messages = [_message(line) for line in self._theirs.lines]
        self._theirs.lines.clear()
        return messages

    def _judge(self, step: Step, line: Line, deviation: Deviation) -> str | None:
        """Return what is wrong with our answer to a line that the table names."""
        still_open = set(self._open)
        ours = self._our_messages()
        self._open |= still_open  # such an answer settles no request before it, also under the same id
        if deviation.codes == NONE:
            is_right = not ours
        elif deviation.codes == ANY:
            is_right = len(ours) <= 1 and all({"result", "error"} & set(each) for each in ours)
            if not ours:
                self._note(line)
        else:
            key = line.id if deviation.under_id and is_id(line.id) else None
            is_right = [each["id"] for each in ours] == [key] and ours[0]["error"]["code"] in deviation.codes
        return None if is_right else f"after {step!r}\nwhich is {deviation.name}, ours says {_shown(ours)}"

    def _our_messages(self) -> list[dict[str, Any]]:
        messages = [_as_the_sdk_says(_message(line)) for line in self._said]
        self._said.clear()
        for message in messages:
            if "method" not in message and is_id(key := message["id"]):
                self._open.discard((type(key), key))
        return messages


def _told_apart(
    step: Step | Wait | Burst, ours: list[dict[str, Any]], theirs: list[dict[str, Any]]
) -> str | None:
    """Return how what both say differs; None where it is the same."""
    if ours == theirs:
        return None
    ours_alone = [message for message in ours if message not in theirs] or ours
    theirs_alone = [message for message in theirs if message not in ours] or theirs
    return f"after {step!r}\nours says      {_shown(ours_alone)}\nthe SDK's says {_shown(theirs_alone)}"


def _as_the_sdk_says(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message without what only ours says: when the answer was made, and what must come first."""
    error = message.get("error", {})
    if error.get("message", "").startswith("send initialize first: "):
        error.update(message="Invalid request parameters", data="")
    meta = message.get("result", {}).get("_meta", {})
    if meta.pop("greenroom/at", None) is not None and not meta:
        del message["result"]["_meta"]
    return message


def _race(first: Line, second: Line) -> bool:
    """Whether ``first`` asks several owners, and what it is told may hang on ``second`` right behind it."""
    one, other = _called(first), _called(second)
    if one is None or other is None:
        return False
    if one not in BY_KEY and not issubclass(one, Procedure):
        return False
    return is_write(one) or is_write(other)


def _called(line: Line) -> type[Any] | None:
    """Return the request that a call of a tool stands for; None when a line is none of a known tool."""
    name = line.member("params", "name")
    tool = TOOLS_AND_HOLD.get(name) if line.method == "tools/call" and isinstance(name, str) else None
    if tool is None:
        return None
    return REQUESTS.get(tool.name if tool.alias is None else tool.alias.successor)


def _in_order(ids: list[Any], messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return answers in the order of their requests, after notifications, of which equal ones are one."""
    answers = [message for message in messages if "method" not in message]
    answers.sort(key=lambda message: ids.index(message["id"]))
    heard = {json.dumps(message, sort_keys=True): message for message in messages if "method" in message}
    return [heard[key] for key in sorted(heard)] + answers


def _message(line: bytes) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(line)
    if isinstance(error := message.get("error"), dict) and error.get("data", 0) is None:
        del error["data"]
    return message


def _shown(messages: list[Any]) -> str:
    return "\n               ".join(json.dumps(message)[:3_000] for message in messages) or "nothing"


async def _world(stack: AsyncExitStack, folder: Path) -> Callable[[str], Holding]:
    """Open a store with a little in it; return what opens doors to it."""
    house = await stack.enter_async_context(agents.house(folder, VirtualClock(), embedder="none"))
    tester = Agent(house.runtime, principal("tester"))
    await tester.ask(CreateSession(purpose="to compare", session_id="s"))
    await tester.ask(AddMessage(session_id="s", content="hello, world"))
    await tester.ask(SetMemory(key="k", value=msgspec.Raw(b'{"n": 1.50}')))
    await tester.ask(StoreMemory(content="hello, harbour", key="k"))
    return lambda name: Holding(Agent(house.runtime, principal(name)))


def difference(conversation: Conversation, deviations: Sequence[Deviation] = DEVIATIONS) -> str | None:
    """Hold a conversation with both servers; return where they first differ, or None.

    Args:
        conversation: What the client does.
        deviations: How they may differ.
    """
    clock = MockClock()
    with tempfile.TemporaryDirectory() as folder:
        return trio.run(_hold, conversation, Path(folder), clock, deviations, clock=clock)


async def _hold(
    conversation: Conversation, folder: Path, clock: MockClock, deviations: Sequence[Deviation]
) -> str | None:
    async with AsyncExitStack() as stack:
        ours = await stack.enter_async_context(
            mcp_client(await _world(stack, folder / "ours"), TOOLS_AND_HOLD, profiles=("all",))
        )
        theirs = await stack.enter_async_context(
            reference(SDK_SERVER, await _world(stack, folder / "theirs"))
        )
        async with trio.open_nursery() as nursery:
            sides = Sides(ours, theirs, clock, deviations)
            nursery.start_soon(sides.listen)
            told: str | None = None
            for step in conversation.steps:
                told = told or await sides.take(step)
            nursery.cancel_scope.cancel()
    return told
