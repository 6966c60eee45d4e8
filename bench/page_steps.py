"""What each page of the console costs the server, and how long the event loop answers nobody else for it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from typing import NamedTuple

import trio

from bench.entrance import Entrance, asked, log_in
from bench.harness import Figure, Plan, Report, Table, Value, check
from bench.servers import greenroom, listening, processor_seconds
from bench.viewers import connection, paths_of
from bench.watched_server import watched

SESSIONS, MESSAGES = 60, 100
LONG = 1.0  # ms of processor time in which others wait
REFRESHED = "/", "/sessions", "/memories", "/told", "/map", "a session"
"""Those that are fetched again while they are open, of the views of which something is put into the store."""


def run(plan: Plan) -> Report:
    """Fetch every view, again and again."""
    count = plan.size(50, 2)
    with plan.folder() as folder:
        file = folder / "steps"
        command = watched(file, greenroom(folder / "data", "--http", "127.0.0.1:0"))
        with listening(command) as server:
            entrance = log_in(folder / "data", server.url)
            session_id = _filled(entrance, plan.size(SESSIONS, 2), plan.size(MESSAGES, 2))
            paths = paths_of(entrance, session_id)
            costs = trio.run(_fetch, entrance, paths, server.pid, count)
        steps: list[list[float]] = [json.loads(line) for line in file.read_text().splitlines()]
    check(len(steps) == 2 * len(paths), "the server did not tell of each view")
    names = [*paths[:-1], "a session"]
    of = dict(zip(names, steps[1::2], strict=True))
    rows: list[list[Value]] = [
        [name, cost.changed, cost.same, _long(of[name]) / count, max(of[name])]
        for name, cost in zip(names, costs, strict=True)
    ]
    columns = ["view", "CPU ms a page", "the same", f"steps over {LONG:g} ms", "longest step, ms of CPU"]
    title = f"each view {count} times, a change before each; and with none: the same"
    figure = Figure(
        what=f"steps over {LONG:g} ms of processor time, of each page that is fetched again",
        value=sum(_long(of[name]) for name in REFRESHED) / count / len(REFRESHED),
        most=0.5,
    )
    return Report(tables=[Table(title=title, columns=columns, rows=rows)], figures=[figure])


def _long(steps: Sequence[float]) -> int:
    return sum(step > LONG for step in steps)


def _filled(entrance: Entrance, sessions: int, messages: int) -> str:
    """Put into the store what its views show; return the id of a session."""
    for number in range(sessions):
        made = asked(entrance, "create_session", purpose=f"the work of day {number}")
    session_id: str = made["session_id"]
    for number in range(messages):
        asked(
            entrance,
            "add_message",
            session_id=session_id,
            content=f"found at {number}: " + "a " * 60,
        )
        asked(entrance, "store_memory", content=f"the port of service {number} is {8000 + number}")
    return session_id


class Costs(NamedTuple):
    """Milliseconds of processor time of a page: after a change in a session, and when nothing has changed."""

    changed: float
    same: float


async def _fetch(entrance: Entrance, paths: Sequence[str], pid: int, count: int) -> list[Costs]:
    """Return what a page of each costs; the server writes its steps before those after changes and behind."""
    session = paths[-1].rpartition("/")[2]
    costs = []
    async with connection(entrance) as kept:
        for path in paths:
            await kept.get(path)  # its template is read once
            os.kill(pid, signal.SIGUSR1)
            spent = 0.0
            for _ in range(count):
                asked(entrance, "add_message", session_id=session, content="one more")
                before = processor_seconds(pid)
                page = await kept.get(path)
                spent += processor_seconds(pid) - before
                check(page.status == 200 and b'<main id="main"' in page.body, f"{path} is {page.status}")
            os.kill(pid, signal.SIGUSR1)
            before = processor_seconds(pid)
            for _ in range(count):
                await kept.get(path)
            same = processor_seconds(pid) - before
            costs.append(Costs(spent / count * 1e3, same / count * 1e3))
    return costs
