"""What tells that a unit of a conversation must be known, as numbers of 0 to 1.

All but one are of form and place, so they hold in every language. The exception are words of constraint
("must", "only", "until"), a short list for five languages.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from greenroom.actors.session.summary.units import Unit
from greenroom.actors.text.analyze import asks

_LAST: Final = 4
"""Messages that are the last ones, and that are before a unit."""
_LONG: Final = 160
"""Characters of a long unit."""
_LONG_REQUEST: Final = 400
"""Characters of a long message of a person."""
_TINY: Final = 25
_TINY_MESSAGE: Final = 40
_SHARE_OF_RARE: Final = 8
"""A word that more than this part of the messages have names no matter of its own."""
_LEAST_RARE: Final = 4
_LOOKED_AT: Final = 1_200
_WORD: Final = re.compile(r"[\w./-]{2,}")
_CONSTRAINT_WORDS: Final = """
must never always only until before no muss müssen nie immer nur bis kein keine keinen keinem keiner
keines höchstens doit jamais toujours seulement avant debe nunca siempre solo hasta
"""
_CONSTRAINTS: Final = frozenset(_CONSTRAINT_WORDS.split())
_CONSTRAINT: Final = re.compile("at most|必ず|だけ|まで|禁止")


class Said(NamedTuple):
    """A message of a conversation.

    Attributes:
        sender: Who sent it.
        text: What it says.
        by_person: Whether a person said it, and no agent.
    """

    sender: str
    text: str
    by_person: bool = False


class Features(NamedTuple):
    """The features of a unit, or what each adds to the log-odds that the unit must be known.

    Attributes:
        position: How late its message is.
        among_last: Its message is one of the last four.
        last_request: Its message is the last of a person.
        first_request: Its message is the first of a person.
        length: How long it is.
        long_request: How long its message is, of a person.
        answers: A person's message after one that ends with a question.
        tiny: It has fewer than 25 characters.
        tiny_message: Its message has fewer than 40.
        asked_by_person: It is a question of a person.
        asked_by_agent: It is a question of an agent.
        resumes: The share of its words that the four messages before have: what was discussed is settled.
        last_word: The share of its rare words that come up no more: the last statement on a matter holds.
        row: It is a row of a table.
        telling: It is a line of code or of a log.
        late_in_message: How late it is in its message.
        after_question: Its message follows one that ends with a question.
        constrains: It has a word of constraint.
    """

    position: float
    among_last: float
    last_request: float
    first_request: float
    length: float
    long_request: float
    answers: float
    tiny: float
    tiny_message: float
    asked_by_person: float
    asked_by_agent: float
    resumes: float
    last_word: float
    row: float
    telling: float
    late_in_message: float
    after_question: float
    constrains: float


class Conversation:
    """A conversation cut into units, with the words of each message.

    Args:
        said: Its messages, the oldest first.
        cut: The units of each.
    """

    def __init__(self, said: Sequence[Said], cut: Sequence[Sequence[Unit]]) -> None:
        self.said = said
        self.cut = cut
        self.unit_words = [[words_of(unit.text) for unit in each] for each in cut]
        self.words = [frozenset[str]().union(*each) for each in self.unit_words]
        self.counts = Counter(word for each in self.words for word in each)
        self._last_place = {word: place for place, each in enumerate(self.words) for word in each}
        people = [place for place, each in enumerate(said) if each.by_person]
        self._first_request = people[0] if people else -1
        self._last_request = people[-1] if people else -1
        self._most = max(_LEAST_RARE, len(said) // _SHARE_OF_RARE)

    def features(self, number: int) -> Iterator[Features]:
        """Yield the features of the units of one message."""
        message, parts = self.said[number], self.cut[number]
        by_person = message.by_person
        before = self.said[number - 1] if number else None
        after_question = before is not None and asks(before.text)
        recent = frozenset[str]().union(*self.words[max(0, number - _LAST) : number])
        for place, unit in enumerate(parts):
            words = self.unit_words[number][place]
            rare = [word for word in words if 2 <= self.counts[word] <= self._most]  # noqa: PLR2004 - twice
            is_question = asks(unit.text)
            yield Features(
                position=(number + 1) / len(self.said),
                among_last=number >= len(self.said) - _LAST,
                last_request=number == self._last_request,
                first_request=number == self._first_request,
                length=min(1.0, len(unit.text) / _LONG),
                long_request=by_person * min(1.0, len(message.text) / _LONG_REQUEST),
                answers=by_person and after_question and before is not None and not before.by_person,
                tiny=len(unit.text) < _TINY,
                tiny_message=len(message.text) < _TINY_MESSAGE,
                asked_by_person=by_person and is_question,
                asked_by_agent=is_question and not by_person,
                resumes=len(words & recent) / max(1, len(words)),
                last_word=sum(self._last_place[word] == number for word in rare) / max(1, len(rare)),
                row=unit.kind == "row",
                telling=unit.kind == "telling",
                late_in_message=place / max(1, len(parts) - 1),
                after_question=after_question,
                constrains=not words.isdisjoint(_CONSTRAINTS) or _CONSTRAINT.search(unit.text) is not None,
            )


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text in small letters; of a long one those of its beginning."""
    return frozenset(words_in_order(text[:_LOOKED_AT].lower()))


def words_in_order(text: str) -> list[str]:
    """Return the words of a text in small letters, as they come."""
    return [word.strip("./-") for word in _WORD.findall(text)]
