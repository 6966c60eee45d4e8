"""Extractive summary: the most important units of a conversation, in order of time.

A logistic regression on its `Features` gives each unit a probability of importance. Units are selected
greedily by probability per byte, and each line has the units of one message. `bench/briefing.py` measures the
selection on ten sessions. The weights were fitted on 26 other sessions. There, a retracted statement cost as
much as six unimportant statements.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, chain, count
from operator import mul
from typing import Final, NamedTuple

from greenroom.actors.sessions.summary.features import Conversation, Features, Utterance
from greenroom.actors.sessions.summary.units import units
from greenroom.runtime import Slices

MOST_MESSAGES: Final = 1_000
"""At most this many messages are read: the newest ones."""
GAP: Final = "… "
"""Marks an omission between two units."""
WEIGHTS: Final = Features(
    position=1.0,
    among_last=0.7,
    first_request=1.4,
    length=1.3,
    length_by_person=2.0,
    tiny_message=-1.1,
    asks=-2.4,
    resumes=1.7,
    goes_on=-1.1,
    comes_back=-0.8,
    opposed=-0.4,
    questioned=-0.1,
    block=-2.3,
    late_in_message=0.9,
    constrains=0.7,
    denied_by_person=1.0,
    requested_by_person=0.4,
    settles=0.6,
    states=0.7,
    hedges=-0.8,
)
NONE: Final = -3.7
"""The log-odds of a unit without any feature."""
_OVERHEAD: Final = 80
"""Bytes added to the size of each unit, so that very short units do not win."""
_LEAST: Final = 3
"""The fewest characters of a unit."""
BEGINNING: Final = 240
"""Bytes of the beginning of the last message, which is always included."""
_AT_ONCE: Final = 50
"""Units between two yields."""


class _Candidate(NamedTuple):
    message: int
    place: int
    text: str
    size: int
    chance: float


def summarize(
    utterances: Sequence[Utterance],
    most_bytes: int,
    *,
    weights: Features = WEIGHTS,
    none: float = NONE,
) -> Slices[list[str]]:
    """Return lines of at most ``most_bytes`` bytes of UTF-8; none if nothing fits.

    The first line explains the short names of senders. ``none`` is the log-odds of a unit without features.
    """
    utterances = utterances[-MOST_MESSAGES:]
    cut = []
    for number, message in enumerate(utterances, 1):  # the last message keeps short units such as "ok"
        least = _LEAST if number < len(utterances) else 1
        cut.append([unit for unit in units(message.text) if len(unit.text) >= least])
        yield
    conversation = Conversation(utterances, cut)
    yield
    candidates: list[_Candidate] = []
    for number in range(len(utterances)):
        candidates += _candidates(conversation, number, weights, none)
        yield
    names = _short_names(utterances)
    legend = f"Who: {', '.join(f'{short}={name}' for name, short in names.items())}"
    heads = {name: len(f"{short}: \n".encode()) for name, short in names.items()}
    room = most_bytes - len(f"{legend}\n".encode())
    chosen = yield from _select(candidates, [each.sender for each in utterances], heads, room)
    return [legend, *_lines(utterances, names, chosen)] if chosen else []


def _candidates(
    conversation: Conversation, number: int, weights: Features, none: float
) -> Iterator[_Candidate]:
    for place, features in enumerate(conversation.features(number)):
        logit = none + sum(map(mul, features, weights))
        text = conversation.cut[number][place].text
        yield _Candidate(number, place, text, len(text.encode()), 1 / (1 + math.exp(-logit)))


def _select(
    candidates: Sequence[_Candidate], senders: Sequence[str], heads: Mapping[str, int], room: int
) -> Slices[dict[int, list[_Candidate]]]:
    """Return selected units by message: the last message's beginning, then by probability per byte.

    If a sender repeats a text, only the last occurrence is a candidate.
    """
    chosen: dict[int, list[_Candidate]] = {}
    ending = [each for each in candidates if each.message == len(senders) - 1]
    sizes = accumulate(each.size for each in ending)
    last = [
        each
        for number, (each, size) in enumerate(zip(ending, sizes, strict=True))
        if not number or size <= BEGINNING
    ]
    once = {(senders[each.message], each.text): each for each in candidates}
    by_worth = sorted(once.values(), key=lambda each: each.chance / (each.size + _OVERHEAD), reverse=True)
    for number, each in enumerate([*last, *by_worth]):
        if number % _AT_ONCE == 0:
            yield
        there = chosen.get(each.message, [])
        if each.size > room or each in there:
            continue
        line = sorted([*there, each], key=lambda part: part.place)
        grown = _length(line) - _length(there) + (0 if there else heads[senders[each.message]])
        if grown <= room:
            room -= grown
            chosen[each.message] = line
    return chosen


def _length(line: Sequence[_Candidate]) -> int:
    return len("".join(_joints(line)).encode()) + sum(part.size for part in line)


def _joints(line: Sequence[_Candidate]) -> list[str]:
    return [
        "" if number == 0 else " " if part.place == line[number - 1].place + 1 else GAP
        for number, part in enumerate(line)
    ]


def _lines(
    utterances: Sequence[Utterance], names: Mapping[str, str], chosen: Mapping[int, Sequence[_Candidate]]
) -> list[str]:
    return [
        f"{names[utterances[message].sender]}: "
        + "".join(joint + part.text for joint, part in zip(_joints(line), line, strict=True))
        for message, line in sorted(chosen.items())
    ]


def _short_names(utterances: Sequence[Utterance]) -> dict[str, str]:
    """Return the shortest unused prefix of each sender's name, with a number if needed."""
    names: dict[str, str] = {}
    for name in dict.fromkeys(message.sender for message in utterances):
        plain = "".join(name.lower().split())  # without blanks, which a reader does not see
        beginnings = (plain[:length] for length in range(1, len(plain) + 1))
        numbered = (f"{plain[:1]}{number}" for number in count(2))
        names[name] = next(short for short in chain(beginnings, numbered) if short not in names.values())
    return names
