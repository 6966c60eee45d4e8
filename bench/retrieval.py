"""How well memories are found, and in what time, beside what one would take instead: `--data DIR`.

The conversations are imported with `greenroom import` and asked over stdio with `memory_search`, hybrid,
50 memories an answer: each conversation in a namespace of its own, then with a typing error in each
question, without an embedder, all conversations in one namespace, and with MiniLM where the package with
its weights is installed. The weights of the ranking were fitted to such conversations: `bench.tune` tells
what they reach on conversations that they were not fitted to.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from bench import minilm, rivals, trials
from bench.client import Client, ToolCall, serving
from bench.harness import Figure, Plan, Report, Table, check, percentile
from bench.servers import environment, greenroom

if TYPE_CHECKING:
    from pathlib import Path

    from bench.harness import Value
    from bench.locomo import Turn

AGENT = "bench"
MERGED = "project:merged"
LIMIT = 50
SEED = 11
_PATIENCE = 600.0
_POLL = 0.2

Search = Callable[[trials.Query, str], Sequence[str]]
"""Returns the ids of turns, best first, for a question's conversation and its words."""


class Result(NamedTuple):
    """What a method came to: `trials.MEASURES` in per cent, and milliseconds of a search."""

    measures: list[float]
    times: list[float]

    def row(self, name: str) -> list[Value]:
        """Return a row of the table."""
        return [name, *self.measures, statistics.median(self.times), percentile(self.times, 95)]


def run(plan: Plan) -> Report:
    """Measure Greenroom and its rivals on the same questions."""
    if plan.data is None:
        return Report(tables=[])
    given = trials.load(plan.data)
    asked = given.queries[:: plan.size(1, 40)]
    results = {
        name: _measure(asked, make(given.turns)) for name, make in rivals.METHODS.items() if not plan.smoke
    }
    results |= _greenroom(plan, given, asked)
    columns = ["", *(f"{name} %" for name in trials.MEASURES), "median ms", "95 % ms"]
    table = Table(
        title="memories found", columns=columns, rows=[found.row(name) for name, found in results.items()]
    )
    return Report(tables=[table], figures=list(_figures(results)))


def _figures(results: Mapping[str, Result]) -> list[Figure]:
    least = {
        STATIC: {"recall@10": 82, "MRR": 67},
        TYPING: {"recall@10": 80},
        ALL: {"recall@10": 80},
        MINILM: {"recall@10": 85, "MRR": 70},
    }
    return [
        Figure(
            what=f"{name}, {measure} %",
            value=results[name].measures[trials.MEASURES.index(measure)],
            least=value,
        )
        for name, wanted in least.items()
        if name in results
        for measure, value in wanted.items()
    ]


STATIC, TYPING, WORDS = "greenroom", "greenroom, one slip a question", "greenroom, no embedder"
ALL, MINILM = "greenroom, one merged store", "greenroom, MiniLM"


def _greenroom(plan: Plan, given: trials.Trials, asked: Sequence[trials.Query]) -> dict[str, Result]:
    results: dict[str, Result] = {}

    def put(name: str, *flags: str, merged: bool = False, typing: bool = False) -> None:
        with ExitStack() as stack:
            folder = stack.enter_context(plan.folder())
            _import(folder, given.turns, merged=merged)
            client = stack.enter_context(serving(greenroom(folder / "data", "--agent", AGENT, *flags)))
            _settle(
                client,
                folder / "data",
                [MERGED] if merged else [f"project:{name}" for name in given.conversations],
            )
            results[name] = _measure(asked, _searcher(client, merged=merged), typing=typing)

    put(STATIC)
    put(TYPING, typing=True)
    put(WORDS, "--embedder", "none")
    put(ALL, merged=True)
    source = minilm.installed()
    if source is not None and not plan.smoke:
        with plan.folder() as folder:
            minilm.export(source, folder / "minilm")
            put(MINILM, "--embedder", f"onnx:{folder / 'minilm'}")
    return results


def _measure(asked: Sequence[trials.Query], search: Search, *, typing: bool = False) -> Result:
    rows, times = [], []
    for query in asked:
        text = trials.mistyped(query.question, SEED) if typing else query.question
        began = time.perf_counter()
        found = search(query, text)
        times.append((time.perf_counter() - began) * 1e3)
        rows.append(trials.measures(found, query.evidence))
    return Result(trials.mean(rows), times)


def _import(folder: Path, turns: Sequence[Turn], *, merged: bool) -> None:
    source = folder / "memories.jsonl"
    lines = [_line(turn, merged=merged) for turn in turns]
    source.write_bytes(msgspec.json.Encoder().encode_lines(lines))
    command = [sys.executable, "-m", "greenroom.transports.cli", "import", str(source)]
    done = subprocess.run(
        [*command, "--data", str(folder / "data"), "--agent", AGENT, "--embedder", "none"],
        env=environment(),
        capture_output=True,
        check=False,
    )
    check(done.returncode == 0, f"the import ended with {done.returncode}: {done.stderr[-500:]!r}")


def _line(turn: Turn, *, merged: bool) -> dict[str, Any]:
    key = turn.id.replace(":", ".")
    return {
        "key": f"{turn.conv}.{key}" if merged else key,
        "content": turn.text,
        "namespace": MERGED if merged else f"project:{turn.conv}",
        "created_at": f"{turn.date}Z",
        "created_by": turn.speaker,
        "conversation_id": f"{turn.conv}.{turn.session}",
        "position": turn.position,
    }


def _searcher(client: Client, *, merged: bool) -> Search:
    def search(query: trials.Query, text: str) -> Sequence[str]:
        told = _asked(client, MERGED if merged else f"project:{query.conv}", text, limit=LIMIT)
        keys = [memory["key"].replace(".", ":") for memory in told["memories"]]
        others = f"{query.conv}:"
        return [key.removeprefix(others) for key in keys] if merged else keys

    return search


def _settle(client: Client, data: Path, namespaces: Sequence[str]) -> None:
    """Wait until all memories have their vectors, if there is an embedder."""
    for namespace in namespaces:
        _asked(client, namespace, "anything", limit=1)  # whoever is asked sees that some are missing
    until = time.perf_counter() + _PATIENCE
    while not _settled(embedding := _embedding(data)):
        check(time.perf_counter() < until, f"memories have no vectors: {embedding}")
        time.sleep(_POLL)


def _settled(embedding: Mapping[str, Any]) -> bool:
    if embedding["state"] == "off":
        return True
    return bool(embedding["embedded"]) and not embedding["texts_waiting"] and not embedding["actors_waiting"]


def _embedding(data: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "greenroom.transports.cli", "stats", "--json", "--data", str(data)]
    told = subprocess.run(command, env=environment(), capture_output=True, check=True).stdout
    found: dict[str, Any] = msgspec.json.decode(told)["embedding"]
    return found


def _asked(client: Client, namespace: str, text: str, **more: Any) -> dict[str, Any]:
    arguments = {"query": text, "namespace": namespace, "mode": "hybrid", **more}
    told: dict[str, Any] = client.call(ToolCall("memory_search", arguments))
    return told
