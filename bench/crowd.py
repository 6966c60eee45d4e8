"""500 WebSocket clients and a mixed load for a minute, or as long as ``--seconds`` says.

Each client has a memory and a session of its own. The rate is kept whatever the server does,
by `bench.load`, which judges every answer; RssAnon of the server is read every second. What is
written replaces what was there: messages that were added would stay in memory to be searched
(about 1.3 KB each, up to the limit of what is resident), which is no leak but would hide one.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

from bench.harness import Figure, Plan, Report, Table, Value, check
from bench.load.outcome import Outcome
from bench.load.plan import LoadPlan, read_mix, tasks_and_steps
from bench.load.run import run_load
from bench.servers import greenroom_websocket, listening

MIX = "get_memory=8,set_memory=1,search_context=1"
WARM = 10  # seconds in which the server's memory may still grow into the load
SAMPLES = 12  # rows of memory in the table


def run(plan: Plan) -> Report:
    """Make the load and report."""
    tasks, before = tasks_and_steps(read_mix(MIX), {}, {}, [])
    with plan.folder() as folder, listening(greenroom_websocket(folder / "data")) as server:
        load = LoadPlan(
            url=server.url,
            clients=plan.size(500, 20),
            rate=plan.size(2_000, 200),
            seconds=plan.size(plan.seconds, 1),
            tasks=tasks,
            before=before,
        )
        pids = [server.pid] if Path("/proc/self/status").exists() else []
        outcome = run_load(load, pids=pids, say=lambda line: print(line, file=sys.stderr))
    if plan.smoke:
        check(not outcome.errors, f"the load failed: {outcome.errors.most_common(3)}")
    return _report(load, outcome)


def _report(load: LoadPlan, outcome: Outcome) -> Report:
    title = f"{load.clients:,} clients on WebSocket, {load.rate:,.0f} calls/s for {load.seconds:g} s"
    document = outcome.document()
    columns = ["call", "count", "50 % ms", "90 % ms", "99 % ms", "99.9 % ms", "longest ms"]
    keys = ("count", "p50", "p90", "p99", "p99.9", "max")
    rows: list[list[Value]] = [
        [name, *(times.get(key) for key in keys)] for name, times in document["latency_ms"].items()
    ]
    rows.append(["sent late", *(document["sent_late_ms"].get(key) for key in keys)])
    tables = [Table(title=title, columns=columns, rows=rows)]
    errors = sum(outcome.errors.values())
    figures = [
        Figure(what="calls that failed", value=errors, most=0),
        Figure(what="ms to the answer, 99 %", value=outcome.percentile(99), most=50),
    ]
    samples = [sample.memory for sample in outcome.samples]
    tables.append(_server(outcome.processor, samples))
    memory = samples[WARM:]
    if memory:
        middle = statistics.median(memory)
        swing = max(max(memory) - middle, middle - min(memory)) / middle * 100
        what = f"% that RssAnon was away from its median after {WARM} s"
        figures.append(Figure(what=what, value=swing, most=5))
    if errors:
        failed: list[list[Value]] = [[sentence, count] for sentence, count in outcome.errors.most_common(10)]
        tables.append(Table(title="what failed", columns=["what", "times"], rows=failed))
    return Report(tables=tables, figures=figures)


def _server(processor: float | None, samples: list[float]) -> Table:
    rows: list[list[Value]] = [["CPU µs a call", processor]]
    step = max(1, len(samples) // SAMPLES)
    rows += [[f"RssAnon MB after {second} s", samples[second]] for second in range(0, len(samples), step)]
    return Table(title="the server", columns=["what", "value"], rows=rows)
