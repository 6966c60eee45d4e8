"""How well the session's search finds what a question is about, beside rapidfuzz over whole texts.

    python -m bench.search_quality --data DIR [--run FILE]

``DIR`` holds conversations and questions (`memories.jsonl`, `queries.jsonl`, see
`bench.locomo`); each conversation becomes an index. Categories 1 to 4 count. Nothing is
fitted here: the weights of ranking are fitted elsewhere (`bench.trials`), and what makes scores
of them was chosen on five conversations; the columns show how little it depends on one of them.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from rapidfuzz import fuzz, process

from bench.harness import Table, as_markdown, check
from bench.locomo import ANSWERABLE, Question, Turn
from greenroom.actors.sessions.search import metadata_text
from greenroom.actors.sessions.search.index import SearchIndex, SearchRequest
from greenroom.runtime import finish

PARTITION = "public"
DEPTH = 50
ONE_TIME = datetime(2025, 1, 1, tzinfo=UTC)

Search = Callable[[str], list[str]]
"""Returns the ids of the turns found for a question, best first."""


class Numbered(Question, frozen=True):
    """A question with its number in the conversation."""

    q: int


def main() -> None:
    """Print the table and, if asked, write the best method's answers."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, metavar="DIR")
    parser.add_argument("--run", type=Path, metavar="FILE", help="write the answers of 'search' to FILE")
    chosen = parser.parse_args()
    turns = msgspec.json.Decoder(Turn).decode_lines((chosen.data / "memories.jsonl").read_bytes())
    questions = msgspec.json.Decoder(Numbered).decode_lines((chosen.data / "queries.jsonl").read_bytes())
    by_conversation: dict[str, list[Turn]] = defaultdict(list)
    for turn in sorted(turns, key=lambda turn: turn.position):
        by_conversation[turn.conv].append(turn)
    print(as_markdown(compare(by_conversation, questions)))
    if chosen.run:
        _write(chosen.run, {name: searcher(turns) for name, turns in by_conversation.items()}, questions)


def compare(conversations: Mapping[str, Sequence[Turn]], questions: Iterable[Numbered]) -> Table:
    """Ask every method every question."""
    counted = [question for question in questions if question.category in ANSWERABLE]
    rows: list[list[str | int | float | None]] = []
    for name, method in METHODS.items():
        searches = {conv: method(turns) for conv, turns in conversations.items()}
        results: dict[str, list[tuple[float, float, float, int, float]]] = defaultdict(list)
        for question in counted:
            began = time.perf_counter()
            found = searches[question.conv](question.question)
            elapsed = (time.perf_counter() - began) * 1e3
            check(len(set(found)) == len(found), "a turn was found twice")
            results[question.conv].append((*_marks(found, set(question.evidence)), len(found), elapsed))
        overall = _means([result for part in results.values() for result in part])
        rows.append([name, *overall, *(_means(results[conv])[1] for conv in conversations)])
    columns = [
        "method",
        "R@5 %",
        "R@10 %",
        "MRR %",
        "found",
        "ms",
        *(f"R@10 {conv}" for conv in conversations),
    ]
    return Table(title="finding the turns that answer a question", columns=columns, rows=rows)


def searcher(
    turns: Sequence[Turn], *, threshold: float = 0, timed: bool = True, dated: bool = False
) -> Search:
    """Return the session's search over ``turns``.

    Args:
        turns: What was said.
        threshold: The least score.
        timed: Whether the messages are of when the turns were; otherwise all are of one time.
        dated: Whether the turns' dates are in the messages' metadata.
    """
    index = SearchIndex()
    for position, turn in enumerate(turns):
        metadata = metadata_text(msgspec.json.encode({"date": turn.date})) if dated else ""
        content = turn.text.removeprefix(f"{turn.speaker}: ")
        said_at = datetime.fromisoformat(turn.date).replace(tzinfo=UTC) if timed else ONE_TIME
        microseconds = int(said_at.timestamp()) * 1_000_000
        index.add(position, PARTITION, turn.speaker, content, metadata, created_at=microseconds)

    def search(question: str) -> list[str]:
        request = SearchRequest(text=question[:500], partitions=[PARTITION], threshold=threshold, limit=DEPTH)
        return [turns[match.id].id for match in finish(index.search(request))]

    return search


def whole_texts(turns: Sequence[Turn], scorer: Callable[..., float]) -> Search:
    """Return a search that scores the whole text of each turn."""
    texts = [turn.text.lower() for turn in turns]

    def search(question: str) -> list[str]:
        found = process.extract(question.lower(), texts, scorer=scorer, limit=DEPTH)
        return [turns[position].id for _, _, position in found]

    return search


METHODS: dict[str, Callable[[Sequence[Turn]], Search]] = {
    "rapidfuzz WRatio": lambda turns: whole_texts(turns, fuzz.WRatio),
    "rapidfuzz token_set_ratio": lambda turns: whole_texts(turns, fuzz.token_set_ratio),
    "search": searcher,
    "search, threshold 60": lambda turns: searcher(turns, threshold=60),
    "search, all at one time": lambda turns: searcher(turns, timed=False),
    "search, all at one time, threshold 60": lambda turns: searcher(turns, timed=False, threshold=60),
    "search, dates in the metadata only": lambda turns: searcher(turns, timed=False, dated=True),
    "search, dates in the metadata only, threshold 60": lambda turns: searcher(
        turns, timed=False, dated=True, threshold=60
    ),
}


def _marks(found: Sequence[str], wanted: set[str]) -> tuple[float, float, float]:
    """Return recall at 5 and at 10, and the reciprocal rank."""
    first = next((1 / place for place, turn in enumerate(found, 1) if turn in wanted), 0.0)
    return (
        len(wanted.intersection(found[:5])) / len(wanted),
        len(wanted.intersection(found[:10])) / len(wanted),
        first,
    )


def _means(results: Sequence[tuple[float, ...]]) -> list[float]:
    """Return the mean marks in per cent, the mean number of turns found and the median time."""
    *marks, found, times = zip(*results, strict=True)
    return [
        *(100 * statistics.mean(mark) for mark in marks),
        statistics.mean(found),
        statistics.median(times),
    ]


def _write(path: Path, searches: Mapping[str, Search], questions: Iterable[Numbered]) -> None:
    lines = (
        {"conv": question.conv, "q": question.q, "ranked": searches[question.conv](question.question)}
        for question in questions
    )
    path.write_bytes(msgspec.json.Encoder().encode_lines(lines))


if __name__ == "__main__":
    main()
