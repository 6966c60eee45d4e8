"""Conversations with questions whose answers are known, and how well a ranking does on them.

A folder has `memories.jsonl`, one turn a line, and `queries.jsonl`, one question a line with the
turns that answer it. Questions of the category 5 ask for what was never said and do not count.
The measures are those usual for retrieval; each is averaged over the questions:

- recall@k: the part of a question's answers among the first k;
- hit@10: whether any of them is among the first 10;
- MRR: 1 / the place of the first answer;
- nDCG@10: the answers among the first 10, each counting 1 / log2(1 + place), of what is possible.
"""

from __future__ import annotations

import math
import random
import re
from typing import TYPE_CHECKING

import msgspec

from bench.locomo import ANSWERABLE, DEPTHS, Turn
from greenroom.actors.content.text.analyze import STOP_WORDS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

MEASURES = (*(f"recall@{depth}" for depth in DEPTHS), "hit@10", "MRR", "nDCG@10")
_WORD = re.compile(r"[A-Za-z]+")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SHORTEST = 3


class Query(msgspec.Struct, frozen=True):
    """A line of `queries.jsonl`."""

    conv: str
    q: int
    question: str
    category: int
    evidence: list[str]


class Trials(msgspec.Struct, frozen=True):
    """What a folder has."""

    turns: list[Turn]
    queries: list[Query]

    @property
    def conversations(self) -> list[str]:
        """Their names, in order."""
        return sorted({turn.conv for turn in self.turns})


def load(folder: Path) -> Trials:
    """Read a folder; only questions that have answers are kept."""
    turns = msgspec.json.Decoder(Turn).decode_lines((folder / "memories.jsonl").read_bytes())
    queries = msgspec.json.Decoder(Query).decode_lines((folder / "queries.jsonl").read_bytes())
    return Trials(turns, [query for query in queries if query.category in ANSWERABLE])


def measures(found: Sequence[object], answers: Collection[object]) -> list[float]:
    """Return the `MEASURES` of one question, 0 to 1."""
    ranked = list(dict.fromkeys(found))
    wanted = set(answers)
    places = [place for place, each in enumerate(ranked, 1) if each in wanted]
    recalls = [sum(place <= depth for place in places) / len(wanted) for depth in DEPTHS]
    gain = sum(1 / math.log2(1 + place) for place in places if place <= 10)
    most = sum(1 / math.log2(2 + place) for place in range(min(10, len(wanted))))
    first = places[0] if places else math.inf
    return [*recalls, float(first <= 10), 1 / first, gain / most]


def mean(rows: Iterable[Sequence[float]]) -> list[float]:
    """Return the mean of each measure, in per cent."""
    columns = list(zip(*rows, strict=True))
    return [100 * sum(column) / len(column) for column in columns]


def mistyped(question: str, seed: int) -> str:
    """Return a question with one slip inside its longest word that is no stop word.

    Two neighbouring letters are swapped, or one is exchanged for any other, or left out.
    """
    words = [word for word in _WORD.finditer(question) if word[0].lower() not in STOP_WORDS]
    longest = max(words, key=lambda word: len(word[0]), default=None)
    if longest is None or len(longest[0]) < _SHORTEST:
        return question
    chance = random.Random(f"{seed} {question}")
    word = longest[0]
    at = chance.randrange(1, len(word) - 1)
    changed = chance.choice(
        (
            word[:at] + word[at + 1] + word[at] + word[at + 2 :],
            word[:at] + chance.choice(_LETTERS) + word[at + 1 :],
            word[:at] + word[at + 1 :],
        )
    )
    return question[: longest.start()] + changed + question[longest.end() :]
