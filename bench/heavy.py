"""The calls that compute most, with eight in flight over stdio, among 1,000 short items.

Searches of memories and of a session's messages, and memories stored. Beside them a server that scans a
JSON file for substrings, which is what is easily built instead. What a call costs is told as processor
time of the server as well, which changes least on a busy machine.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from bench.client import Client, ToolCall, serving
from bench.closed_loop import Contender, Cost, Load, cost, sequential, verified
from bench.corpus import SEED, conversation
from bench.harness import Figure, Plan, Report, Table, check, medians, take_turns
from bench.imported import import_memories, settle
from bench.jobs import Job
from bench.servers import greenroom
from bench.wires import Kind

IN_FLIGHT = 8
ITEMS = 1_000
ASKED_WORDS = 4
"""Words of a search."""
SWAPPED = 0.5
"""Typing errors that are two letters swapped; of the others a letter is missing."""
NAMESPACE = "project:bench"
PEER = "substrings in a JSON file"
SUBSTRINGS = (sys.executable, "-m", "bench.substring_server")
WANTED = {"memory_search": 1_000, "search_context": 800, "store_memory": 1_200}
"""Calls a second."""
MOST_ALONE = 2.0
"""Milliseconds that one `store_memory` after another may take."""


class Asked:
    """Searches for some of a message's words, another message each time; every second one is mistyped."""

    def __init__(self, tool: str, more: dict[str, Any], contents: Sequence[str]) -> None:
        self.kind = Kind("tools/call", tool)
        self._tool = tool
        self._contents = contents
        self._arguments = [msgspec.json.encode({"query": query, **more}) for query in self._queries(contents)]

    def body(self, client: Client, number: int) -> bytes:
        """Return a search."""
        return client.call_body(number, self._tool, self._arguments[number % len(self._arguments)])

    def judge(self, number: int, told: Any) -> None:
        """Check that the message comes first."""
        found = told.get("memories") or [hit["message"] for hit in told.get("results", ())]
        wanted = self._contents[number % len(self._contents)]
        first = found[0]["content"] if found else None
        check(first == wanted, f"{self._tool} found {first!r}, and {wanted!r} was wanted")

    def _queries(self, contents: Sequence[str]) -> list[str]:
        counts = Counter(word for content in contents for word in set(content.split()))
        chance = random.Random(SEED)
        queries = []
        for number, content in enumerate(contents):
            words = _telling(content, counts)
            if number % 2:
                place = max(range(len(words)), key=lambda at: len(words[at]))
                words[place] = _mistyped(words[place], chance)
            queries.append(" ".join(words))
        return queries


class Scanned(Asked):
    """Searches for a part of a message as it stands, which substrings need."""

    def __init__(self, contents: Sequence[str]) -> None:
        super().__init__("search", {}, contents)

    def _queries(self, contents: Sequence[str]) -> list[str]:
        return [content[4:44] for content in contents]


def _telling(content: str, counts: Mapping[str, int]) -> list[str]:
    """Return the rarest words of a message, in their order there."""
    words = list(dict.fromkeys(content.split()))
    rarest = set(sorted(words, key=lambda word: (counts[word], word))[:ASKED_WORDS])
    return [word for word in words if word in rarest]


def _mistyped(word: str, chance: random.Random) -> str:
    """Return a word without one of its inner letters, or with two of them swapped."""
    place = chance.randrange(1, max(2, len(word) - 1))
    if chance.random() < SWAPPED:
        return word[:place] + word[place : place + 2][::-1] + word[place + 2 :]
    return word[:place] + word[place + 1 :]


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
        jobs: dict[str, tuple[Client, Job]] = {
            "memory_search": (searching, Asked("memory_search", {"namespace": NAMESPACE}, contents)),
            "search_context": (searching, Asked("search_context", {"session_id": session}, contents)),
            "store_memory": (storing, Stored(contents)),
            PEER: (peer, Scanned(contents)),
        }
        load = Load(IN_FLIGHT, plan.size(2.0, 0.1))
        contenders = {}
        for name, (client, job) in jobs.items():
            assert client.pid is not None
            contenders[name] = Contender(client.pid, [client], job, verified)
        turns = take_turns(
            {name: partial(cost, one, load) for name, one in contenders.items()},
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
