"""The calls that compute most, with eight in flight over stdio, among 1,000 short items.

Searches of memories and of a session's messages, and memories stored. Beside them a server that scans a
JSON file for substrings, which is what is easily built instead. What a call costs is told as processor
time of the server as well, which changes least on a busy machine.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.client import Client, ToolCall, serving
from bench.closed_loop import Contender, Cost, Load, cost, sequential, verified
from bench.corpus import PLANTED, conversation
from bench.harness import Figure, Plan, Report, Table, check, medians, take_turns
from bench.imported import import_memories, settle
from bench.servers import greenroom
from bench.wires import Kind

IN_FLIGHT = 8
ITEMS = 1_000
NAMESPACE = "project:bench"
PEER = "substrings in a JSON file"
SUBSTRINGS = (sys.executable, "-m", "bench.substring_server")
WANTED = {"memory_search": 1_000, "search_context": 800, "store_memory": 1_200}
"""Calls a second."""
MOST_ALONE = 2.0
"""Milliseconds that one `store_memory` after another may take."""


class Asked:
    """Searches whose answer is planted; every second one has typing errors."""

    def __init__(self, tool: str, more: dict[str, Any], *, mistyped: bool = True) -> None:
        self.kind = Kind("tools/call", tool)
        self._tool = tool
        asked = [(each.question, each.sentence) for each in PLANTED]
        if mistyped:
            asked += [(each.mistyped, each.sentence) for each in PLANTED]
        self._sentences = [sentence for _, sentence in asked]
        self._arguments = [msgspec.json.encode({"query": question, **more}) for question, _ in asked]

    def body(self, client: Client, number: int) -> bytes:
        """Return a search."""
        return client.call_body(number, self._tool, self._arguments[number % len(self._arguments)])

    def judge(self, number: int, told: Any) -> None:
        """Check that the planted sentence comes first."""
        found = told.get("memories") or [hit["message"] for hit in told.get("results", ())]
        sentence = self._sentences[number % len(self._sentences)]
        first = found[0]["content"] if found else None
        check(first == sentence, f"{self._tool} found {first!r}, and {sentence!r} was wanted")


class Scanned(Asked):
    """Searches for a planted sentence's own words, which substrings need."""

    def __init__(self) -> None:
        super().__init__("search", {}, mistyped=False)
        self._arguments = [msgspec.json.encode({"query": each.sentence[4:40]}) for each in PLANTED]


class Stored:
    """Memories stored under keys of their own."""

    kind = Kind("tools/call", "store_memory")

    def __init__(self, contents: Sequence[str]) -> None:
        self._contents = contents

    def body(self, client: Client, number: int) -> bytes:
        """Return a call that stores a memory."""
        content = f"note {number}: {self._contents[number % len(self._contents)]}"
        arguments = {"content": content, "key": f"note-{number}"}
        return client.call_body(number, "store_memory", msgspec.json.encode(arguments))

    def judge(self, number: int, told: Any) -> None:
        """Check that it is new under its key."""
        check(told["created"] and told["key"] == f"note-{number}", f"note-{number}: {told}")


def run(plan: Plan) -> Report:
    """Prepare, compare, and report."""
    posts = conversation(ITEMS)
    lines = [{"key": f"memory-{n}", "content": post.content} for n, post in enumerate(posts)]
    with plan.folder() as folder:
        source = folder / "memories.jsonl"
        source.write_bytes(b"\n".join(map(msgspec.json.encode, lines)))
        (folder / "items.json").write_bytes(msgspec.json.encode(lines))
        import_memories(source, folder / "data", "--agent", "bench", "--namespace", NAMESPACE)
        return _compared(plan, folder, [post.content for post in posts])


def _compared(plan: Plan, folder: Path, contents: list[str]) -> Report:
    with (
        serving(greenroom(folder / "data", "--agent", "bench")) as searching,
        serving(greenroom(folder / "stored", "--agent", "bench")) as storing,
        serving((*SUBSTRINGS, str(folder / "items.json"))) as peer,
    ):
        settle(searching, NAMESPACE)
        session = _session(searching, contents)
        jobs = {
            "memory_search": (searching, Asked("memory_search", {"namespace": NAMESPACE})),
            "search_context": (searching, Asked("search_context", {"session_id": session})),
            "store_memory": (storing, Stored(contents)),
            PEER: (peer, Scanned()),
        }
        load = Load(IN_FLIGHT, plan.size(2.0, 0.1))
        contenders = {}
        for name, (client, job) in jobs.items():
            assert client.pid is not None
            contenders[name] = Contender(client.pid, [client], job, verified)
        turns = take_turns(
            {name: lambda one=one: cost(one, load) for name, one in contenders.items()},
            plan.size(5, 1),
        )
        alone = {
            name: sequential(client, job, plan.size(2.0, 0.1)).median for name, (client, job) in jobs.items()
        }
    return _report(turns, alone)


def _session(client: Client, contents: Sequence[str]) -> str:
    session: str = client.call(ToolCall("create_session", {"purpose": "bench"}))["session_id"]
    for content in contents:
        client.call(ToolCall("add_message", {"session_id": session, "content": content}))
    return session


def _report(turns: dict[str, list[Cost]], alone: dict[str, float]) -> Report:
    rates = medians({name: [each.rate for each in rounds] for name, rounds in turns.items()})
    processor = medians({name: [each.processor / 1e3 for each in rounds] for name, rounds in turns.items()})
    table = Table(
        title=f"heavy calls over stdio, {ITEMS:,} items",
        columns=["call", f"/s, {IN_FLIGHT} in flight", "processor ms a call", "one after another, 50 % ms"],
        rows=[[name, rates[name], processor[name], alone[name]] for name in rates],
    )
    figures = [
        Figure(what=f"{name} a second, {IN_FLIGHT} in flight", value=rates[name], least=least)
        for name, least in WANTED.items()
    ]
    figures.append(
        Figure(
            what="store_memory, one after another, median ms", value=alone["store_memory"], most=MOST_ALONE
        )
    )
    return Report(tables=[table], figures=figures)
