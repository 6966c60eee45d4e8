"""How much of Greenroom a request crosses: modules, rooms and Python calls, from its bytes to its answer.

No time is taken, so other work on the machine hardly disturbs it. A real server process counts its own calls
(`bench.counted_server`); of several requests of a kind the one with the median number of calls is shown.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import trio

from bench.client import Client, ToolCall, serving
from bench.counted_server import Way, counted
from bench.entrance import Entrance, asked, log_in
from bench.harness import Figure, Plan, Report, Table, Value, check
from bench.servers import environment, greenroom, listening
from bench.viewers import connection
from greenroom.actors import HookEvent, Principal
from greenroom.transports.ops.control.client import Hook, call

ROOT: Final = Path(__file__).parents[1]
MOST: Final = {
    "get_memory": 30,
    "add_message": 40,
    "store_memory": 50,
    "memory_search": 60,
    "semantic_search": 60,
    "a console page": 60,
    "a hook event": 60,
}
"""The modules that each kind of request may cross."""
LARGEST: Final = 10
WARM: Final = 5
MOST_LINES: Final = 400
WHO: Final = ("--user", "ann", "--agent", "claude-code")
MEMORY: Final = "The staging database is called heron."
PATIENCE: Final = 60.0
PAGE: Final = "# Harbour\n\nThe lighthouse keeper polishes the brass lantern each evening.\n"

Ask = Callable[[int], None]
"""Sends the request with a number, and checks its answer."""


class Counter(NamedTuple):
    """A server process that counts, and the named pipe that it writes to."""

    pid: int
    pipe: Path

    def way(self) -> Way:
        """Return the calls since this was asked last."""
        os.kill(self.pid, signal.SIGUSR1)
        return msgspec.json.decode(self.pipe.read_bytes(), type=Way)


def run(plan: Plan) -> Report:
    """Count each way, over stdio, the console's over HTTP and the hook's over the control socket."""
    repeats = plan.size(15, 1)
    with plan.folder() as folder:
        ways = {**_over_stdio(folder, repeats), **_over_http(folder, repeats)}
    rows: list[list[Value]] = [
        [name, len(way.modules), MOST[name], len(_rooms(way)), way.changes, way.calls, way.others]
        for name, way in ways.items()
    ]
    columns = [
        "request",
        "modules",
        "at most",
        "rooms",
        "calls between modules",
        "calls",
        "calls of libraries",
    ]
    figures = [
        Figure(what=f"modules that {name} crosses", value=len(way.modules), most=MOST[name])
        for name, way in ways.items()
    ]
    title = f"from bytes to answer, median of {repeats} by calls"
    return Report(tables=[Table(title=title, columns=columns, rows=rows), _largest(ways)], figures=figures)


def _rooms(way: Way) -> set[str]:
    """Return the first package below each portion, or the module where it lies in none."""
    return {"/".join(module.removesuffix(".py").split("/")[:2]) for module in way.modules}


def _largest(ways: Mapping[str, Way]) -> Table:
    lines = {
        module: len((ROOT / module.partition("/")[0] / "greenroom" / module).read_bytes().splitlines())
        for way in ways.values()
        for module in way.modules
    }
    largest = sorted(lines, key=lambda module: (-lines[module], module))[:LARGEST]
    rows: list[list[Value]] = [
        [module, lines[module], ", ".join(name for name, way in ways.items() if module in way.modules)]
        for module in largest
    ]
    over = sum(count > MOST_LINES for count in lines.values())
    title = f"the largest of {len(lines)} modules on these ways; {over} have over {MOST_LINES} lines"
    return Table(title=title, columns=["module", "lines", "on the way of"], rows=rows)


# -- requests over stdio, and a hook beside them ---------------------------------------------------------


def _over_stdio(folder: Path, repeats: int) -> dict[str, Way]:
    data, pages = folder / "data", folder / "pages"
    pages.mkdir()
    (pages / "harbour.md").write_text(PAGE)
    python, *module, _, _, _ = greenroom(data)
    ingest = [python, *module, "ingest", str(pages), "--data", str(data), "--user", "ann"]
    done = subprocess.run(ingest, capture_output=True, check=False, env=environment())
    check(done.returncode == 0, f"the pages were not taken in: {done.stderr!r}")
    with _pipe(folder) as pipe, serving(counted(pipe, greenroom(data, *WHO))) as client:
        assert client.pid is not None
        counter = Counter(client.pid, pipe)
        return {name: _counted(counter, ask, repeats) for name, ask in _asks(client, data).items()}


def _counted(counter: Counter, ask: Ask, repeats: int) -> Way:
    ways = []
    for number in range(WARM + repeats):
        counter.way()
        ask(number)
        ways.append(counter.way())
    return _median(ways[WARM:])


def _asks(client: Client, data: Path) -> dict[str, Ask]:
    client.call(ToolCall("set_memory", {"key": "port", "value": 8080}))
    client.call(ToolCall("store_memory", {"content": MEMORY}))
    session = client.call(ToolCall("create_session", {"purpose": "bench"}))["session_id"]
    ids: list[int] = []

    def get_memory(_: int) -> None:
        client.call(ToolCall("get_memory", {"key": "port"}, {"value": 8080}))

    def add_message(number: int) -> None:
        said = {"session_id": session, "content": f"message {number} is about the harbour"}
        ids.append(client.call(ToolCall("add_message", said))["message_id"])
        check(ids == sorted(set(ids)), f"messages have the ids {ids}")

    def store_memory(number: int) -> None:
        content = f"The port of service {number} is {8000 + number}."
        client.call(
            ToolCall("store_memory", {"content": content, "key": f"port-{number}"}, {"key": f"port-{number}"})
        )

    def memory_search(number: int) -> None:
        told = client.call(ToolCall("memory_search", {"query": f"name of the staging database {number}"}))
        check(told["memories"][0]["content"] == MEMORY, f"memory_search found {told}")

    def semantic_search(number: int) -> None:
        told = client.call(ToolCall("semantic_search", {"query": f"who polishes the lantern {number}"}))
        check("lantern" in str(told["results"][0]), f"semantic_search found {told}")

    def hook_event(number: int) -> None:
        event = HookEvent(
            id=f"{number:032x}",
            name="user-prompt",
            client="claude-code",
            session=f"s-{number}",
            project="bench-00000000",
            folder="/bench",
            at=datetime.now(UTC),
            prompt="What is the staging database called?",
        )
        principal = Principal(agent_id="claude-code", user="ann")
        told = call(data, Hook(principal=principal, event=event), patience=PATIENCE)
        check(MEMORY.encode() in told, f"the hook was answered with {told!r}")

    return {
        "get_memory": get_memory,
        "add_message": add_message,
        "store_memory": store_memory,
        "memory_search": memory_search,
        "semantic_search": semantic_search,
        "a hook event": hook_event,
    }


# -- a page of the console over HTTP ---------------------------------------------------------------------


def _over_http(folder: Path, repeats: int) -> dict[str, Way]:
    data = folder / "browsed"
    with _pipe(folder) as pipe, listening(counted(pipe, greenroom(data, "--http", "127.0.0.1:0"))) as server:
        entrance = log_in(data, server.url)
        return {"a console page": trio.run(_pages, entrance, Counter(server.pid, pipe), repeats)}


async def _pages(entrance: Entrance, counter: Counter, repeats: int) -> Way:
    """Fetch the page of memories, each time after a new one, on a connection that is kept."""
    ways = []
    counter.way()  # what the start called takes a while, and an open connection would be hung up on
    async with connection(entrance) as kept:
        for number in range(WARM + repeats):
            content = f"The port of service {number} is {8000 + number}."
            asked(entrance, "store_memory", content=content)
            counter.way()
            page = await kept.get("/memories")
            ways.append(counter.way())
            check(page.status == 200 and content.encode() in page.body, f"the page is {page.status}")
    return _median(ways[WARM:])


def _median(ways: Sequence[Way]) -> Way:
    return sorted(ways, key=lambda way: way.calls)[len(ways) // 2]


@contextmanager
def _pipe(folder: Path) -> Iterator[Path]:
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    yield pipe
    pipe.unlink()
