"""What is fuzzed, as functions of bytes that raise when a promise is broken.

Both engines use them: hypothesis in `test_fuzz`, and atheris in the programs ``fuzz_frames.py`` and
``fuzz_dispatch.py``.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import Any, Self

import outcome
import trio
from support.desk import Noted, Posted
from support.differential_deviations import DEVIATIONS, Line, deviation_of, is_id
from support.differential_tools import TOOLS_AND_HOLD
from support.virtual_time import run_in_virtual_time

from greenroom.actors import (
    CompletePrompt,
    CompleteResource,
    GetPrompt,
    ListPrompts,
    ListResources,
    NameCompletion,
    PromptFilled,
    PromptList,
    ResourceList,
)
from greenroom.testing import McpClient, import_sdk, mcp_client
from greenroom.transports import Limits
from greenroom.transports.mcp.frames.frames import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    FrameError,
    LineSplitter,
    Oversized,
    parse_frame,
)

import_sdk()  # virtual time would pass while a thread imports it

FRAME_LIMIT = 4_096  # bytes
CODES = {PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS, METHOD_NOT_FOUND}
INTERNAL_ERROR = -32603
LAST = "the last"


def frames(data: bytes) -> None:
    """Cut bytes into lines and read each.

    Raises:
        AssertionError: a line depends on where the stream was cut, or comes out as neither a frame nor an
            error that can be answered.
    """
    whole = _split(data, len(data) or 1)
    assert whole == _split(data, 1), "the lines depend on where the bytes were cut"
    for line in whole:
        if isinstance(line, Oversized):
            assert line.size > line.limit
            continue
        read = outcome.capture(parse_frame, line)
        if isinstance(read, outcome.Error):
            assert isinstance(read.error, FrameError), "only a frame's error can be answered"
            assert read.error.code in CODES
            assert read.error.id == b"null" or is_id(json.loads(read.error.id))
        elif (frame := read.value) is not None:
            assert (frame.id is None) == (frame.key is None)
            assert frame.id is None or json.loads(frame.id) == frame.key


def _split(data: bytes, size: int) -> list[bytes | Oversized]:
    splitter = LineSplitter(FRAME_LIMIT)
    lines = [
        line for start in range(0, len(data), size) for line in splitter.feed(data[start : start + size])
    ]
    return [*lines, *splitter.finish()]


def dispatch(data: bytes) -> None:
    """Send bytes to a server and see what it answers.

    Raises:
        AssertionError: a line of the output is not JSON-RPC; or answers what was not asked, or twice; a
            request got no answer; the connection answers no more; or the server logged a fault of its own.
    """
    with _no_fault_logged():
        said = run_in_virtual_time(_exchange, data)
    asked, sure = _asked(data)
    answered: Counter[tuple[type, Any]] = Counter()
    for line in said:
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        if "method" in message:
            assert "id" not in message
            assert message["method"].startswith("notifications/")
            continue
        assert ("result" in message) != ("error" in message)
        if "error" in message:
            assert isinstance(message["error"]["code"], int)
            assert isinstance(message["error"]["message"], str)
            assert message["error"]["code"] != INTERNAL_ERROR
        if message["id"] is not None:
            key = (type(message["id"]), message["id"])
            assert key in asked or "error" in message, f"nobody asked {key[1]!r}"
            answered[key] += 1
    for key, count in answered.items():
        assert count <= asked[key] or key not in asked, f"{key[1]!r} was answered {count} times"
    for key in sure:
        assert answered[key], f"{key[1]!r} was not answered"


def _asked(data: bytes) -> tuple[Counter[tuple[type, Any]], set[tuple[type, Any]]]:
    """Return the ids of all requests, and of those that must be answered under their ids."""
    asked: Counter[tuple[type, Any]] = Counter()
    sure, cancelled = set(), set()
    for raw in [*data.split(b"\n"), _last()]:
        line = Line(raw)
        if is_id(line.id):
            key = (type(line.id), line.id)
            asked[key] += 1
            if line.is_request and len(raw) <= FRAME_LIMIT and deviation_of(line, (), DEVIATIONS) is None:
                sure.add(key)
        if is_id(target := line.member("params", "requestId")):
            cancelled.add((type(target), target))
    return asked, sure - cancelled


def _last() -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": LAST, "method": "ping"}).encode()


async def _exchange(data: bytes) -> list[bytes]:
    released = trio.Event()
    limits = Limits(
        max_message_bytes=FRAME_LIMIT, in_flight=8, streams=4, subscriptions=16, unsent_bytes=20_000
    )
    said = []
    async with mcp_client(lambda _name: Echo(released), TOOLS_AND_HOLD, limits=limits) as client:
        await client.send_bytes(data + b"\n" + _last() + b"\n")
        await client.end_input()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_release_in_time, released)
            while line := await _line(client):
                said.append(line)
            nursery.cancel_scope.cancel()
    return said


async def _release_in_time(released: trio.Event) -> None:
    """Let the calls go that are held, once the server has nothing else to do."""
    await trio.sleep(1)
    released.set()


async def _line(client: McpClient) -> bytes:
    with trio.fail_after(100):  # virtual seconds, which pass when nothing can happen any more
        return await client.receive_line()


@contextmanager
def _no_fault_logged() -> Iterator[None]:
    faults = _Faults()
    logging.getLogger("greenroom").addHandler(faults)
    try:
        yield
    finally:
        logging.getLogger("greenroom").removeHandler(faults)
    assert not faults.said, faults.said


class _Faults(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(f"{record.getMessage()}: {record.exc_info and record.exc_info[1]!r}")


class Echo:
    """A door into nothing: it says yes to what is well-formed, or waits with that until it is let go."""

    scopes = frozenset({"*"})

    def check_scope(self, request: type[Any], arguments: bytes = b"") -> None:
        """Open everything."""

    def __init__(self, released: trio.Event) -> None:
        self._released = released

    async def ask(self, request: Any, *, checked: bool = False, on_accepted: Any = None) -> Any:
        assert checked
        if on_accepted is not None:
            on_accepted()
        if isinstance(request, ListResources):
            return ResourceList(resources=[], next_cursor=None)
        if isinstance(request, ListPrompts):
            return PromptList(prompts=[], next_cursor=None)
        if isinstance(request, GetPrompt):
            return PromptFilled(description="", text="", sources=[], missing=[], tokens=0)
        if isinstance(request, (CompleteResource, CompletePrompt)):
            return NameCompletion(values=[], has_more=False)
        if isinstance(request, tuple):
            await self._released.wait()
        return Noted("yes")

    def post(
        self,
        request: Any,
        done: Callable[[Any], None],
        in_task: Callable[[Callable[[], Any]], None],  # noqa: ARG002  (nothing needs one)
        *,
        on_accepted: Callable[[], None] | None = None,
        deadline: float = inf,
    ) -> Posted:
        scope = trio.CancelScope(deadline=deadline)

        async def ask() -> None:
            with scope:
                done(await outcome.acapture(self.ask, request, checked=True, on_accepted=on_accepted))

        trio.lowlevel.spawn_system_task(ask)
        return Posted(scope)

    def close(self) -> None:
        """Do nothing: nothing is held."""

    def subscriber(self, _window: float) -> Deaf:
        return Deaf()


class Deaf:
    """Hears of nothing."""

    def __init__(self) -> None:
        self._uris: set[str] = set()

    def __len__(self) -> int:
        return len(self._uris)

    def add(self, uri: str) -> None:
        self._uris.add(uri)

    def remove(self, uri: str) -> None:
        self._uris.discard(uri)

    async def wait_heard(self) -> None:
        await trio.lowlevel.checkpoint()

    async def next(self) -> str:
        await trio.sleep_forever()
        raise AssertionError("it sleeps")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass
