"""What 50 open consoles cost the agents, how quickly a page is there, what a request of `/api/v1` costs.

The agents speak MCP over HTTP at a fixed rate, whatever the server does, without and with consoles in turns.
The consoles (`bench.viewers`) are tabs of one browser that logged in as the folder's owner, over all views.
What other programs add to 99 % is many times what consoles do, so it is judged in the quietest round.
"""

from __future__ import annotations

import re
import statistics
from contextlib import ExitStack
from functools import partial
from typing import Any
from urllib.parse import urljoin

import msgspec
import trio

from bench import page_steps
from bench.channels import to_port
from bench.client import ERAS, Client, connected
from bench.closed_loop import Contender, Cost, Driven, Load, cost, verified
from bench.entrance import ApiWire, Entrance, asked, log_in
from bench.harness import Figure, Plan, Report, Table, Value, check, middle, take_turns
from bench.jobs import KEYS, Reads, value_of
from bench.load.outcome import Outcome
from bench.load.plan import LoadPlan, read_mix, tasks_and_steps
from bench.load.run import run_load
from bench.servers import Listening, greenroom, listening
from bench.viewers import SPREAD, Fetched, Tally, connection, open_consoles, paths_of
from bench.wires import Kind

CONSOLES = 50
MIX = "get_memory=8,add_message=1,search_context=1"
ALONE, BESIDE = "no console", f"{CONSOLES} consoles"
CONNECTIONS = 8
_LINKED = re.compile(rb'<(?:link|script|img)[^>]* (?:href|src)="([^"]+)"')


def run(plan: Plan) -> Report:
    """Measure all four."""
    with plan.folder() as folder, listening(greenroom(folder / "data", "--http", "127.0.0.1:0")) as server:
        entrance = log_in(folder / "data", server.url)
        parts = [
            _crowded(plan, server, entrance),
            _first_view(plan, entrance),
            _requests(plan, server, entrance),
        ]
    parts.append(page_steps.run(plan))
    return Report(
        tables=[table for part in parts for table in part.tables],
        figures=[figure for part in parts for figure in part.figures],
    )


# -- consoles beside agents --------------------------------------------------------------------------


def _crowded(plan: Plan, server: Listening, entrance: Entrance) -> Report:
    tasks, before = tasks_and_steps(read_mix(MIX), {}, {}, [])
    load = LoadPlan(
        url=server.url,
        clients=plan.size(50, 4),
        rate=plan.size(200, 40),
        seconds=plan.size(4, 1),
        tasks=tasks,
        before=before,
    )
    count, spread = plan.size(CONSOLES, 4), plan.size(SPREAD, 0.1)
    session_id = asked(entrance, "create_session", purpose="watched by all")["session_id"]
    paths = paths_of(entrance, session_id)
    tallies: list[Tally] = []

    def loaded() -> Outcome:
        outcome = run_load(load, pids=[server.pid])
        check(not outcome.errors, f"the load failed: {outcome.errors.most_common(3)}")
        return outcome

    def beside() -> Outcome:
        with open_consoles(entrance, paths, session_id, count, spread) as tally:
            tallies.append(tally)
            opened = tally.pages
            outcome = loaded()
            check(plan.smoke or tally.pages > opened, "no console fetched its page again")
            check(tally.changes, "no console heard of a change")
        return outcome

    if not plan.smoke:
        loaded()  # what is loaded with the first search is no agent's cost
    rounds = take_turns({ALONE: loaded, BESIDE: beside}, plan.size(7, 1))
    return _crowd_report(load, rounds, tallies)


def _crowd_report(load: LoadPlan, rounds: dict[str, list[Outcome]], tallies: list[Tally]) -> Report:
    def of(name: str, task: str, percent: str) -> list[float]:
        times: list[float] = [each.document()["latency_ms"][task].get(percent, 0.0) for each in rounds[name]]
        return times

    tasks = ("all", *(task.name for task in load.tasks))
    percents = ("p50", "p90", "p99")
    rows: list[list[Value]] = [
        [
            task,
            name,
            *(statistics.median(of(name, task, percent)) for percent in percents),
            min(of(name, task, "p99")),
        ]
        for task in tasks
        for name in rounds
    ]
    columns = ["call", "beside", "50 % ms", "90 % ms", "99 % ms", "99 % ms, quietest round"]
    title = f"{load.clients} agents over HTTP, {load.rate:g} calls/s, medians of {len(tallies)} rounds"
    computed = {
        name: statistics.median((each.processor or 0) * load.rate / 1e4 for each in outcomes)
        for name, outcomes in rounds.items()
    }
    pages = [time * 1e3 for tally in tallies for time in tally.times]
    served: list[list[Value]] = [[f"% of a core, {name}", value] for name, value in computed.items()]
    served += [
        ["pages fetched a round", statistics.median(tally.pages for tally in tallies)],
        ["of these, same as before", statistics.median(tally.same for tally in tallies)],
        ["changes told a round", statistics.median(tally.changes for tally in tallies)],
        ["a page, median ms", statistics.median(pages)],
    ]
    figures = [
        Figure(
            what=f"% that {CONSOLES} consoles add to the agents' 99 %, {task}",
            value=(min(of(BESIDE, task, "p99")) / min(of(ALONE, task, "p99")) - 1) * 100,
            most=10,
        )
        for task in ("all", "get_memory")
    ]
    tables = [Table(title=title, columns=columns, rows=rows)]
    tables.append(Table(title="the server meanwhile", columns=["what", "value"], rows=served))
    return Report(tables=tables, figures=figures)


# -- the first view ----------------------------------------------------------------------------------


def _first_view(plan: Plan, entrance: Entrance) -> Report:
    views = trio.run(_views, entrance, plan.size(30, 2))
    rows: list[list[Value]] = [
        ["first byte of the page", statistics.median(each[0].first * 1e3 for each in views), None],
        ["the page", statistics.median(each[0].last * 1e3 for each in views), len(views[0][0].body)],
        [
            "with all that it loads",
            statistics.median(sum(part.last for part in each) * 1e3 for each in views),
            sum(len(part.body) for part in views[0]),
        ],
    ]
    title = "the first view, on a connection of its own over loopback, one file after another"
    return Report(tables=[Table(title=title, columns=["to", "median ms", "bytes"], rows=rows)], figures=[])


async def _views(entrance: Entrance, count: int) -> list[list[Fetched]]:
    """Fetch the first view so often, each time with every file that it names."""
    found = []
    for _ in range(count):
        async with connection(entrance) as kept:
            page = await kept.get("/")
            links = dict.fromkeys(_LINKED.findall(page.body))
            parts = [page, *[await kept.get(urljoin("/", link.decode())) for link in links]]
        check(all(part.status == 200 and part.body for part in parts), "a part of the first view is missing")
        check(len(parts) > 2, "the first view names no script and no styles")
        found.append(parts)
    return found


# -- requests ----------------------------------------------------------------------------------------


class _ApiReads(Reads):
    """The same reads below `/api/v1`."""

    kind = Kind("POST", "get_memory")

    def body(self, client: Client, number: int) -> bytes:  # noqa: ARG002 (a request has no id there)
        """Return the arguments."""
        return b'{"key":"read-%d"}' % (number % KEYS)


def _requests(plan: Plan, server: Listening, entrance: Entrance) -> Report:
    load = Load(CONNECTIONS, plan.size(1.0, 0.2))
    with ExitStack() as stack:
        contenders = _contenders(server, entrance, stack)
        turns = {name: partial(cost, each, load) for name, each in contenders.items()}
        rounds = take_turns(turns, plan.size(5, 1))
    found = {name: Cost(*middle(each)) for name, each in rounds.items()}
    rows: list[list[Value]] = [[name, each.processor / 1e3, each.rate] for name, each in found.items()]
    title = f"get_memory over HTTP, {CONNECTIONS} connections"
    columns = ["asked as", "CPU ms a request", "requests/s"]
    return Report(tables=[Table(title=title, columns=columns, rows=rows)], figures=[])


def _contenders(server: Listening, entrance: Entrance, stack: ExitStack) -> dict[str, Contender]:
    contenders: dict[str, Contender] = {}
    reads = Reads()
    for era in ERAS:
        clients = [stack.enter_context(connected(server.url, era=era)) for _ in range(CONNECTIONS)]
        reads.prepare(clients[0])  # they are all one agent's
        contenders[f"a tool of MCP, {era} era"] = Contender(server.pid, clients, reads, verified)
    for key in range(KEYS):
        asked(entrance, "set_memory", key=f"read-{key}", value=value_of(key))
    wires = [to_port(ApiWire(entrance), entrance.host, entrance.port) for _ in range(CONNECTIONS)]
    for wire in wires:
        stack.callback(wire.close)
    browsers = [Client(wire) for wire in wires]
    contenders["POST /api/v1, by a cookie"] = Contender(server.pid, browsers, _ApiReads(), _in_order)
    return contenders


def _in_order(contender: Contender, driven: Driven) -> None:
    """Judge answers that have no ids: on one connection they come in the order of the requests."""
    for sent, answers in zip(driven.sent, driven.answers, strict=True):
        check(len(sent) == len(answers), f"{len(sent)} requests have {len(answers)} answers")
        for number, answer in zip(sent, answers, strict=True):
            told: Any = msgspec.json.decode(answer)
            check("value" in told, f"a request was answered with {answer!r}")
            contender.job.judge(number, told)
