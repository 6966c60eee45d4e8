"""A conversation in few words: the units that the next agent must know, in the order of time.

The method is extractive. Each unit gets the chance that it must be known, by a logistic regression on
its `Features`. Units are chosen greedily by chance for each byte, and one line shows what is in of a message.
`bench/briefing.py` measures the choice on ten sessions; the weights were fitted on 26 others, where a
statement that was taken back counted as much as six that need not be known.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, chain, count
from operator import mul
from typing import Final, NamedTuple

from greenroom.actors.sessions.summary.features import Conversation, Features, Said
from greenroom.actors.sessions.summary.units import units
from greenroom.runtime import Slices

MOST_MESSAGES: Final = 1_000
"""Messages that are looked at, the newest."""
GAP: Final = "… "
"""Stands where something of a message is left out between two units."""
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
"""The log-odds of a unit that has none of the features."""
_OVERHEAD: Final = 80
"""Bytes that count besides those of a unit, so that three words are not worth the most."""
_LEAST: Final = 3
"""Characters of a unit that says something."""
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


def summarize(
    said: Sequence[Said],
    most_bytes: int,
    *,
    weights: Features = WEIGHTS,
    none: float = NONE,
) -> Slices[list[str]]:
    """Return lines of at most ``most_bytes`` bytes of UTF-8.

    The first line says who is who. Empty where nothing fits.

    Args:
        said: The conversation, the oldest message first; of more than `MOST_MESSAGES` the newest.
        most_bytes: For all lines.
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
    candidates: list[_Candidate] = []
    for number in range(len(said)):
        candidates += _candidates(conversation, number, weights, none)
        yield
    names = _short_names(said)
    legend = f"Who: {', '.join(f'{short}={name}' for name, short in names.items())}"
    heads = {name: len(f"{short}: \n".encode()) for name, short in names.items()}
    room = most_bytes - len(f"{legend}\n".encode())
    chosen = yield from _chosen(candidates, [each.sender for each in said], heads, room)
    return [legend, *_lines(said, names, chosen)] if chosen else []


def _candidates(
    conversation: Conversation, number: int, weights: Features, none: float
) -> Iterator[_Candidate]:
    for place, features in enumerate(conversation.features(number)):
        logit = none + sum(map(mul, features, weights))
        text = conversation.cut[number][place].text
        yield _Candidate(number, place, text, len(text.encode()), 1 / (1 + math.exp(-logit)))


def _chosen(
    candidates: Sequence[_Candidate], senders: Sequence[str], heads: Mapping[str, int], room: int
) -> Slices[dict[int, list[_Candidate]]]:
    """Return what fits by message: how the last one begins, and the rest by chance for each byte.

    Of what is said again in the same words the last time counts.
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
