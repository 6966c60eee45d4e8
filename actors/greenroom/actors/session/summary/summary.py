"""A conversation in few words: the units that the next agent must know, in the order of time.

The method is extractive and knows no language: each unit gets a chance from ten features of its form and
place (a logistic sum), statements that were taken back lose most of theirs, and units are chosen greedily by
chance for each byte, less where their words are already in. The features and their signs follow
a measurement on working sessions of agents; `bench/briefing.py` measures them again on others.
"""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Final, NamedTuple

from greenroom.actors.session.summary.revocation import LEFT, NEAR, revocations, words_of
from greenroom.actors.session.summary.units import Unit, units
from greenroom.actors.text.analyze import asks
from greenroom.runtime import Slices

MOST_MESSAGES: Final = 1_000
"""Messages that are looked at, the newest."""
GAP: Final = " … "
_OVERHEAD: Final = 4
"""Bytes that count besides those of a unit, so that three words are not worth the most."""
_LEAST: Final = 3
"""A unit of fewer characters says nothing."""
_LONG: Final = 160
_USER_LONG: Final = 400
_TECHNICAL: Final = re.compile(
    r"`[^`]+`|\b\w+\.(?:py|js|ts|tsx|go|rs|c|h|cpp|java|rb|md|toml|yml|yaml|json|sql|sh|css|html|txt|csv|lock)\b"
    r"|(?:\.{0,2}/)?\b[\w.-]+/[\w./-]+|\b\w+_\w+\b|\b[a-z]+[A-Z]\w*\b|\b\w+\(\)|--[a-z][\w-]+|#\d+\b|\b[0-9a-f]{7,40}\b"
    r"|\b\d+(?:\.\d+)+\b"
)


class Said(NamedTuple):
    """A message of a conversation.

    Attributes:
        sender: Who said it.
        text: What it says.
        by_person: Whether a person said it, and no agent.
    """

    sender: str
    text: str
    by_person: bool = False


class Weights(NamedTuple):
    """What each feature adds to the log-odds that a unit must be known; each feature is 0 to 1."""

    none: float = -1.0
    position: float = 1.5
    among_last: float = 0.5
    last_request: float = 0.75
    has_block: float = -1.25
    long_agent: float = -1.25
    long_person: float = 0.75
    length: float = 0.9
    technical: float = 0.9
    question: float = -1.75
    answers: float = 0.5
    first_request: float = 0.5
    first_sentence: float = 0.0


WEIGHTS: Final = Weights()
_LAST: Final = 4


class _Candidate(NamedTuple):
    message: int
    place: int
    text: str
    chance: float
    words: frozenset[str]


def summarize(said: Sequence[Said], most_bytes: int, weights: Weights = WEIGHTS) -> Slices[list[str]]:
    """Return lines of at most ``most_bytes`` bytes of UTF-8 in all, one for each message that is in.

    Args:
        said: The conversation, oldest message first; of more than `MOST_MESSAGES` the newest.
        most_bytes: For the lines and the line ends between them.
        weights: Of the features.
    """
    said = said[-MOST_MESSAGES:]
    cut: list[list[Unit]] = []
    for message in said:
        cut.append([unit for unit in units(message.text) if len(unit.text) >= _LEAST])
        yield
    candidates: list[_Candidate] = []
    for each in _weighed(said, cut, weights):
        candidates.append(each)
        if len(candidates) % _AT_ONCE == 0:
            yield
    chosen = yield from _chosen(said, candidates, most_bytes)
    return _lines(said, cut, chosen)


_AT_ONCE: Final = 100


def _weighed(said: Sequence[Said], cut: Sequence[Sequence[Unit]], weights: Weights) -> Iterable[_Candidate]:
    lengths = [len(each.text) for each in said if not each.by_person]
    usual = median(lengths) if lengths else 0.0
    words = [frozenset().union(*(words_of(unit.text) for unit in each)) for each in cut]
    taken_back = revocations([[unit.text for unit in each if unit.kind == "prose"] for each in cut], words)
    by_word: dict[str, list[tuple[int, bool]]] = {}
    for revoked in taken_back:
        for word in revoked.words:
            by_word.setdefault(word, []).append((revoked.place, revoked.is_explicit))
    last_request = max((place for place, each in enumerate(said) if each.by_person), default=-1)
    first_request = min((place for place, each in enumerate(said) if each.by_person), default=-1)
    for number, (message, parts) in enumerate(zip(said, cut, strict=True)):
        has_block = any(unit.kind != "prose" for unit in parts)
        base = weights.none + weights.position * (number + 1) / len(said)
        base += weights.among_last * (number >= len(said) - _LAST)
        base += weights.last_request * (number == last_request)
        base += weights.first_request * (number == first_request)
        base += weights.has_block * has_block
        if message.by_person:
            base += weights.long_person * min(1.0, len(message.text) / _USER_LONG)
            before = said[number - 1] if number else None
            base += weights.answers * (before is not None and not before.by_person and asks(before.text))
        else:
            base += weights.long_agent * min(1.0, max(0.0, len(message.text) / max(usual, 1.0) - 1) / 2)
        for place, unit in enumerate(parts):
            logit = base + weights.length * min(1.0, len(unit.text) / _LONG)
            found = sum(1 for _ in _TECHNICAL.finditer(unit.text[:300]))
            logit += weights.technical * min(1.0, found / 3)
            logit += weights.question * (message.by_person and asks(unit.text))
            logit += weights.first_sentence * (place == 0)
            chance = 1 / (1 + math.exp(-logit))
            own = words_of(unit.text)
            if not message.by_person and _is_taken_back(number, own, by_word):
                chance *= LEFT
            yield _Candidate(number, place, unit.text, chance, own)


def _is_taken_back(
    number: int, words: frozenset[str], by_word: dict[str, list[tuple[int, bool]]]
) -> bool:
    return any(
        place > number and (is_explicit or place - number <= NEAR)
        for word in words
        if word in by_word
        for place, is_explicit in by_word[word]
    )


def _chosen(
    said: Sequence[Said], candidates: Sequence[_Candidate], most_bytes: int
) -> Slices[list[_Candidate]]:
    """Return the candidates that fit, by chance for each byte, less where their words are already in."""
    room = most_bytes
    seen: set[str] = set()
    opened: set[int] = set()
    chosen: list[_Candidate] = []

    def size(each: _Candidate) -> int:
        head = 0 if each.message in opened else len(said[each.message].sender.encode()) + 3
        return len(each.text.encode()) + len(GAP.encode()) + head

    def worth(each: _Candidate) -> float:
        new = len(each.words - seen) / max(1, len(each.words))
        return each.chance * (0.25 + 0.75 * new) / (len(each.text.encode()) + _OVERHEAD)

    heap = [(-worth(each), number) for number, each in enumerate(candidates)]
    heapq.heapify(heap)
    steps = 0
    while heap:
        steps += 1
        if steps % _AT_ONCE == 0:
            yield
        before, number = heapq.heappop(heap)
        each = candidates[number]
        if size(each) > room:
            continue
        now = -worth(each)
        if heap and now > heap[0][0] and now > before:
            heapq.heappush(heap, (now, number))
            continue
        room -= size(each)
        seen |= each.words
        opened.add(each.message)
        chosen.append(each)
    return chosen


def _lines(said: Sequence[Said], cut: Sequence[Sequence[Unit]], chosen: Iterable[_Candidate]) -> list[str]:
    by_message: dict[int, list[_Candidate]] = {}
    for each in chosen:
        by_message.setdefault(each.message, []).append(each)
    lines: list[str] = []
    for message, parts in sorted(by_message.items()):
        text, after = "", 0
        for part in sorted(parts, key=lambda each: each.place):
            text += (GAP if part.place != after else " ") if text else ("… " if part.place else "")
            text += part.text
            after = part.place + 1
        if after < len(cut[message]):
            text += " …"
        lines.append(f"{said[message].sender}: {text}")
    return lines
