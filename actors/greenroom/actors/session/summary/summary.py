"""A conversation in few words: the units that the next agent must know, in the order of time.

The method is extractive. Each unit gets the chance that it must be known, by a logistic regression on
its `Features`; a statement of an agent that was taken back keeps a part of it. Units are chosen greedily by
chance for each byte, less where their words are in already, and one line shows what is in of a message.
`bench/briefing.py` measures the choice on ten sessions; the weights were fitted on 26 others.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, count
from operator import mul
from typing import Final, NamedTuple

from greenroom.actors.session.summary.features import Conversation, Features, Said
from greenroom.actors.session.summary.revocation import LEFT, NEAR, revocations
from greenroom.actors.session.summary.units import units
from greenroom.runtime import Slices

MOST_MESSAGES: Final = 1_000
"""Messages that are looked at, the newest."""
GAP: Final = " … "
"""Stands where something of a message is left out between two units."""
WEIGHTS: Final = Features(
    position=1.3,
    among_last=1.0,
    last_request=0.2,
    first_request=0.7,
    length=1.6,
    long_request=1.9,
    answers=0.7,
    tiny=-0.6,
    tiny_message=-1.1,
    asked_by_person=-1.5,
    asked_by_agent=-1.8,
    resumes=1.8,
    last_word=0.4,
    row=-1.6,
    telling=-1.2,
    late_in_message=0.4,
    after_question=-0.3,
    constrains=0.9,
)
NONE: Final = -4.2
"""The log-odds of a unit that has none of the features."""
_NEW: Final = 0.5
"""The part of a unit's worth that is that of its new words."""
_OVERHEAD: Final = 20
"""Bytes that count besides those of a unit, so that three words are not worth the most."""
_LEAST: Final = 3
"""Characters of a unit that says something."""
_FLOOR: Final = 0.01
"""The chance below which a unit is chatter, and out however much room there is."""
BEGINNING: Final = 240
"""Bytes of the beginning of the last message, which is always in."""
_AT_ONCE: Final = 50
"""Units between two chances for others to run."""


class _Candidate(NamedTuple):
    message: int
    place: int
    text: str
    size: int
    chance: float
    words: frozenset[str]


def summarize(
    said: Sequence[Said],
    most_bytes: int,
    *,
    besides: int = 1,
    weights: Features = WEIGHTS,
    none: float = NONE,
) -> Slices[list[str]]:
    """Return lines of at most ``most_bytes`` bytes of UTF-8.

    The first line says who is who. Empty where nothing fits.

    Args:
        said: The conversation, the oldest message first; of more than `MOST_MESSAGES` the newest.
        most_bytes: For all lines.
        besides: Bytes that each line takes besides, such as its end.
        weights: Of the features.
        none: The log-odds of a unit without any.
    """
    said = said[-MOST_MESSAGES:]
    cut = []
    for number, message in enumerate(said, 1):  # of the last message also "ok" is in
        least = _LEAST if number < len(said) else 1
        cut.append([unit for unit in units(message.text) if len(unit.text) >= least])
        yield
    conversation = Conversation(said, cut)
    yield
    taken_back = _taken_back(conversation)
    yield
    candidates: list[_Candidate] = []
    for number in range(len(said)):
        candidates += _candidates(conversation, number, taken_back, weights, none)
        yield
    names = _short_names(said)
    legend = f"Who: {', '.join(f'{short} = {name}' for name, short in names.items())}"
    heads = {name: len(f"{short}: ".encode()) + besides for name, short in names.items()}
    room = most_bytes - len(legend.encode()) - besides
    chosen = yield from _chosen(candidates, [heads[each.sender] for each in said], room)
    return [legend, *_lines(said, names, chosen)] if chosen else []


def _candidates(
    conversation: Conversation,
    number: int,
    taken_back: Mapping[str, Sequence[tuple[int, bool]]],
    weights: Features,
    none: float,
) -> Iterator[_Candidate]:
    message = conversation.said[number]
    for place, features in enumerate(conversation.features(number)):
        logit = none + sum(map(mul, features, weights))
        chance = 1 / (1 + math.exp(-logit))
        words = conversation.unit_words[number][place]
        if not message.by_person and _is_taken_back(number, words, taken_back):
            chance *= LEFT
        text = conversation.cut[number][place].text
        yield _Candidate(number, place, text, len(text.encode()), chance, words)


def _taken_back(conversation: Conversation) -> dict[str, list[tuple[int, bool]]]:
    """Return by word which messages take it back, and whether each names what replaces it."""
    prose = [
        [(unit.text, words) for unit, words in zip(parts, of_parts, strict=True) if unit.kind == "prose"]
        for parts, of_parts in zip(conversation.cut, conversation.unit_words, strict=True)
    ]
    found: dict[str, list[tuple[int, bool]]] = {}
    for each in revocations(prose, conversation.counts):
        for word in each.words:
            found.setdefault(word, []).append((each.place, each.is_explicit))
    return found


def _is_taken_back(
    number: int, words: frozenset[str], taken_back: Mapping[str, Sequence[tuple[int, bool]]]
) -> bool:
    return any(
        place > number and (is_explicit or place - number <= NEAR)
        for word in words
        for place, is_explicit in taken_back.get(word, ())
    )


def _chosen(
    candidates: Sequence[_Candidate], heads: Sequence[int], room: int
) -> Slices[dict[int, list[_Candidate]]]:
    """Return what fits by message: how the last one begins, and the rest by chance for each byte.

    What brings words that are in already counts less.
    """
    seen: set[str] = set()
    chosen: dict[int, list[_Candidate]] = {}

    def take(each: _Candidate) -> None:
        nonlocal room
        there = chosen.get(each.message, [])
        if each in there:
            return
        line = sorted([*there, each], key=lambda part: part.place)
        grown = _length(line) - _length(there) + (0 if there else heads[each.message])
        if grown <= room:
            room -= grown
            seen.update(each.words)
            chosen[each.message] = line

    beginning = 0
    for each in candidates:
        if each.message == len(heads) - 1 and (not beginning or beginning + each.size <= BEGINNING):
            beginning += each.size
            take(each)
    heap = [(-_worth(each, seen), number) for number, each in enumerate(candidates) if each.chance >= _FLOOR]
    heapq.heapify(heap)
    steps = 0
    while heap:
        steps += 1
        if steps % _AT_ONCE == 0:
            yield
        before, number = heapq.heappop(heap)
        each = candidates[number]
        worth = -_worth(each, seen)
        if heap and before < worth > heap[0][0]:  # its words came in meanwhile
            heapq.heappush(heap, (worth, number))
            continue
        take(each)
    return chosen


def _worth(each: _Candidate, seen: set[str]) -> float:
    new = len(each.words - seen) / max(1, len(each.words))
    return each.chance * (1 - _NEW + _NEW * new) / (each.size + _OVERHEAD)


def _length(line: Sequence[_Candidate]) -> int:
    """Return the bytes of the units of a message as a line shows them."""
    return len("".join(_joints(line)).encode()) + sum(part.size for part in line)


def _joints(line: Sequence[_Candidate]) -> list[str]:
    """Return what stands before each unit of a line."""
    return [
        "" if number == 0 else " " if part.place == line[number - 1].place + 1 else GAP
        for number, part in enumerate(line)
    ]


def _lines(
    said: Sequence[Said], names: Mapping[str, str], chosen: Mapping[int, Sequence[_Candidate]]
) -> list[str]:
    return [
        f"{names[said[message].sender]}: "
        + "".join(joint + part.text for joint, part in zip(_joints(line), line, strict=True))
        for message, line in sorted(chosen.items())
    ]


def _short_names(said: Sequence[Said]) -> dict[str, str]:
    """Return for each sender the shortest beginning of the name, or that with a number, that is free."""
    names: dict[str, str] = {}
    for name in dict.fromkeys(message.sender for message in said):
        plain = "".join(name.lower().split())  # blanks are no part of it: a reader does not see them
        beginnings = (plain[:length] for length in range(1, len(plain) + 1))
        numbered = (f"{plain[:1]}{number}" for number in count(2))
        names[name] = next(short for short in chain(beginnings, numbered) if short not in names.values())
    return names
