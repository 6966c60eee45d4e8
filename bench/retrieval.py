"""How well memories are found, and in what time, beside what one would take instead: `--data DIR`.

The conversations are imported with `greenroom import` and asked over stdio with `memory_search`, hybrid,
50 memories an answer: each conversation in a namespace of its own, then with a typing error in each
question, without an embedder, all conversations in one namespace, and with MiniLM where the package with
its weights is installed. The weights of the ranking were fitted to such conversations: `bench.tune` tells
what they reach on conversations that they were not fitted to.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from bench import minilm, rivals, trials
from bench.client import Client, serving
from bench.harness import Figure, Plan, Report, Table, percentile
from bench.imported import import_memories, search, settle
from bench.servers import greenroom

if TYPE_CHECKING:
    from bench.harness import Value
    from bench.locomo import Turn

AGENT = "bench"
MERGED = "project:merged"
LIMIT = 50
SEED = 11

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
            source = folder / "memories.jsonl"
            lines = [_line(turn, merged=merged) for turn in given.turns]
            source.write_bytes(msgspec.json.Encoder().encode_lines(lines))
            import_memories(source, folder / "data", "--agent", AGENT, *flags)
            client = stack.enter_context(serving(greenroom(folder / "data", "--agent", AGENT, *flags)))
            namespaces = [MERGED] if merged else [f"project:{each}" for each in given.conversations]
            for namespace in namespaces:
                search(client, "anything", namespace, limit=1)  # who is asked first loads the index
            if name != WORDS:
                settle(client, namespaces[0])
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


def _measure(asked: Sequence[trials.Query], find: Search, *, typing: bool = False) -> Result:
    rows, times = [], []
    for query in asked:
        text = trials.mistyped(query.question, SEED) if typing else query.question
        began = time.perf_counter()
        found = find(query, text)
        times.append((time.perf_counter() - began) * 1e3)
        rows.append(trials.measures(found, query.evidence))
    return Result(trials.mean(rows), times)


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
    def searched(query: trials.Query, text: str) -> Sequence[str]:
        told = search(client, text, MERGED if merged else f"project:{query.conv}", limit=LIMIT)
        keys = [memory["key"].replace(".", ":") for memory in told["memories"]]
        others = f"{query.conv}:"
        return [key.removeprefix(others) for key in keys] if merged else keys

    return searched
