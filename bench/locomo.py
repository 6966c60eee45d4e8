"""Real conversations through the whole stack: loaded as sessions, asked with `search_context`.

The folder is the one that `--data` names: `memories.jsonl` with one turn a line and
`queries.jsonl` with questions and the turns that answer them. Each conversation becomes a
session, each of its two people an agent that writes its own turns. Recall at k is the
part of a question's turns among the first k messages found, averaged over the questions
of the categories 1 to 4; category 5 asks for what was never said and does not count.
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec
import trio

from bench.harness import Plan, Table, check, percentile
from greenroom.actors import AddMessage, Agent, CreateSession, Principal, SearchContext, open_greenroom
from greenroom.runtime import RuntimeOptions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from greenroom.actors import EmbedderChoice
    from greenroom.runtime import RuntimeClient

ANSWERABLE = range(1, 5)
DEPTHS = (5, 10, 20, 50)
EMBEDDING_SECONDS = 600.0


class Turn(msgspec.Struct, frozen=True):
    """A line of `memories.jsonl`."""

    conv: str
    id: str
    session: int
    date: str
    speaker: str
    text: str
    position: int


class Question(msgspec.Struct, frozen=True):
    """A line of `queries.jsonl`."""

    conv: str
    question: str
    category: int
    evidence: list[str]


def measure(plan: Plan, data: Path, embedder: str | EmbedderChoice = "static") -> Table:
    """Load the conversations, ask the questions, and return the recall."""
    turns = msgspec.json.Decoder(Turn).decode_lines((data / "memories.jsonl").read_bytes())
    questions = msgspec.json.Decoder(Question).decode_lines((data / "queries.jsonl").read_bytes())
    chosen = [question for question in questions if question.category in ANSWERABLE]
    with plan.folder() as folder:
        return trio.run(_measure, folder, embedder, turns, chosen[:: plan.size(1, 20)])


async def _measure(
    folder: Path, embedder: str | EmbedderChoice, turns: Sequence[Turn], questions: Sequence[Question]
) -> Table:
    recalls: dict[int, list[float]] = defaultdict(list)
    times = []
    options = RuntimeOptions(durability="process")
    async with open_greenroom(folder, embedder=embedder, options=options) as runtime:
        names = await _load(runtime, turns)
        reader = Agent(runtime, Principal(agent_id="reader"))
        if str(embedder) != "none":
            for name in names:
                await _compared(reader, name)
        for question in questions:
            request = _search(question.conv, question.question[:500])
            began = time.perf_counter()
            answer = await reader.ask(request)
            times.append((time.perf_counter() - began) * 1e3)
            of_session = names[question.conv]
            check(
                answer.scanned == len(of_session), f"{answer.scanned} of {len(of_session)} messages searched"
            )
            found = [of_session[hit.message.message_id] for hit in answer.results]
            check(len(set(found)) == len(found), "a message was found twice")
            evidence = set(question.evidence)
            for depth in DEPTHS:
                recalls[depth].append(len(evidence.intersection(found[:depth])) / len(evidence))
    row = [len(questions), *(100 * statistics.mean(recalls[depth]) for depth in DEPTHS)]
    columns = ["questions", *(f"recall@{depth} %" for depth in DEPTHS), "median ms", "99 % ms"]
    row += [statistics.median(times), percentile(times, 99)]
    return Table(title="search_context on the given conversations", columns=columns, rows=[row])


def _search(session: str, query: str) -> SearchContext:
    return SearchContext(
        session_id=session,
        query=query,
        fuzzy_threshold=0,
        limit=DEPTHS[-1],
        recent_hours=None,
        max_rows_scanned=None,
    )


async def _compared(reader: Agent, session: str) -> None:
    """Search until all messages are compared by what they mean: their vectors are made behind searches."""
    with trio.fail_after(EMBEDDING_SECONDS):
        while True:
            answer = await reader.ask(_search(session, "anything"))
            if answer.partial is not True:
                return
            await trio.sleep(0.1)


async def _load(runtime: RuntimeClient, turns: Sequence[Turn]) -> dict[str, dict[int, str]]:
    """Write all turns and return, for each session, the turns' ids by the messages' ids."""
    names: dict[str, dict[int, str]] = {}
    for turn in sorted(turns, key=lambda turn: (turn.conv, turn.position)):
        agent = Agent(runtime, Principal(agent_id=turn.speaker))
        if turn.conv not in names:
            names[turn.conv] = {}
            await agent.ask(CreateSession(session_id=turn.conv, purpose="a conversation of two people"))
        metadata = msgspec.Raw(msgspec.json.encode({"date": turn.date, "chat": turn.session}))
        content = turn.text.removeprefix(f"{turn.speaker}: ")
        added = await agent.ask(AddMessage(session_id=turn.conv, content=content, metadata=metadata))
        names[turn.conv][added.message_id] = turn.id
    return names
