"""What tells that a unit of a conversation must be known, as numbers of 0 to 1.

Most are of form and place, so they hold in every language. The others are short lists of words for five
languages; in another one they are 0.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple

from greenroom.actors.content.text.analyze import asks
from greenroom.actors.sessions.summary.units import Unit

_NEAR: Final = 4
"""Messages that are the last ones, and that are around a unit."""
_LONG: Final = 160
"""Characters of a long unit."""
_TINY_MESSAGE: Final = 40
_SHARE_OF_RARE: Final = 8
"""A word that more than this part of the messages have names no matter of its own."""
_LEAST_RARE: Final = 4
_LOOKED_AT: Final = 1_200
_OPENING: Final = 60
"""Characters in which a message begins."""
_FIRST_WORDS: Final = 3
_WORD: Final = re.compile(r"\w[\w./-]*\w")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CONSTRAINTS: Final = _words("""
must never always only until before no muss müssen nie immer nur bis kein keine keinen keinem keiner
keines höchstens doit jamais toujours seulement avant debe nunca siempre solo hasta
""")
_CONSTRAINT: Final = re.compile("必ず|だけ|まで|禁止")
_DENIALS: Final = _words("""
not no never without nothing nobody none don dont doesn isn wasn didn won cannot nicht nichts nie ohne kein
keine keinen keinem keiner keines ne pas jamais rien sans sin nunca nada ni
""")
_REQUESTS: Final = _words("""
please pls must should need want sure write check bitte muss soll sollte brauche plaît faut favor debe quiero
""")
_SETTLED: Final = _words("""
decision decided agreed approved accepted ok then so rule dropped use keep leave stays entschieden
einverstanden dann also bleibt accord donc gardons vale entonces decidido queda
""")
_STATES: Final = _words("""
branch commit pr merged pushed deployed open draft done staging prod offen entwurf fertig ouvert brouillon
fini abierto borrador hecho
""")
_HEDGES: Final = _words("""
think guess idea proposal propose suggest suggests suggested suggestion hypothesis suspect suspicion looks
seems assume assuming assumption maybe perhaps probably could might would possible possibly option options
plausible vote believe vermute vermutlich vermutung verdacht könnte vielleicht wohl scheint denke würde
peut-être pense semble pourrait sospecho quizá quizás creo podría puedo
""")
_OBJECTIONS: Final = _words("""
no nope not never hm hmm wait hold but careful wrong instead rather drop correction error don dont then
however still reject veto damn ugh ouch ah nein nee nicht kein keine aber statt dann non pas mais attends
pero sino mejor entonces
""")
"""With one of these begins a message that objects to the one before."""


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
        first_request: Its message is the first of a person.
        length: How long it is.
        length_by_person: The same, if a person said it.
        tiny_message: Its message has fewer than 40 characters.
        asks: It is a question.
        resumes: The share of its words that the four messages before have: what was discussed is settled.
        goes_on: The share of its words that the four messages after it have: it is not settled yet.
        comes_back: The share of its rare words that any later message has: the last statement holds.
        opposed: The next message is another's and begins with an objection.
        questioned: The next message is another's and a question.
        block: It is a row of a table, or a line of code or of a log.
        late_in_message: How late it is in its message.
        constrains: It has a word of constraint.
        denied_by_person: It has a word of denial, if a person said it.
        requested_by_person: It has a word of request, if a person said it.
        settles: It has a word of decision.
        states: It has a word of how far the work is.
        hedges: It has a word of doubt or proposal.
    """

    position: float
    among_last: float
    first_request: float
    length: float
    length_by_person: float
    tiny_message: float
    asks: float
    resumes: float
    goes_on: float
    comes_back: float
    opposed: float
    questioned: float
    block: float
    late_in_message: float
    constrains: float
    denied_by_person: float
    requested_by_person: float
    settles: float
    states: float
    hedges: float


class Conversation:
    """A conversation cut into units, with the words of each message.

    Args:
        said: Its messages, the oldest first.
        cut: The units of each.
    """

    def __init__(self, said: Sequence[Said], cut: Sequence[Sequence[Unit]]) -> None:
        self.said = said
        self.cut = cut
        self._unit_words = [[words_of(unit.text) for unit in each] for each in cut]
        self._words = [frozenset[str]().union(*each) for each in self._unit_words]
        counts = Counter(chain.from_iterable(self._words))
        most = max(_LEAST_RARE, len(said) // _SHARE_OF_RARE)
        self._common = frozenset(word for word, number in counts.items() if number > most)
        self._last = [set[str]() for _ in said]
        for word, place in {word: place for place, each in enumerate(self._words) for word in each}.items():
            self._last[place].add(word)
        self._first_request = next((place for place, each in enumerate(said) if each.by_person), -1)

    def features(self, number: int) -> Iterator[Features]:
        """Yield the features of the units of one message."""
        message, parts = self.said[number], self.cut[number]
        by_person = message.by_person
        answer = self.said[number + 1] if number + 1 < len(self.said) else None
        if answer is not None and answer.sender == message.sender:
            answer = None
        opposed = answer is not None and not _OBJECTIONS.isdisjoint(
            _WORD.findall(answer.text[:_OPENING].lower())[:_FIRST_WORDS]
        )
        questioned = answer is not None and asks(answer.text)
        before = frozenset[str]().union(*self._words[max(0, number - _NEAR) : number])
        after = frozenset[str]().union(*self._words[number + 1 : number + 1 + _NEAR])
        for place, unit in enumerate(parts):
            words = self._unit_words[number][place]
            text = unit.text
            rare = words - self._common
            share, share_of_rare = 1 / (len(words) or 1), 1 / (len(rare) or 1)
            length = min(1.0, len(text) / _LONG)
            yield Features(
                position=(number + 1) / len(self.said),
                among_last=number >= len(self.said) - _NEAR,
                first_request=number == self._first_request,
                length=length,
                length_by_person=by_person * length,
                tiny_message=len(message.text) < _TINY_MESSAGE,
                asks=asks(text),
                resumes=len(words & before) * share,
                goes_on=len(words & after) * share,
                comes_back=len(rare - self._last[number]) * share_of_rare,
                opposed=opposed,
                questioned=questioned,
                block=unit.kind != "prose",
                late_in_message=place / max(1, len(parts) - 1),
                constrains=_constrains(text, words),
                denied_by_person=by_person and not words.isdisjoint(_DENIALS),
                requested_by_person=by_person and not words.isdisjoint(_REQUESTS),
                settles=not words.isdisjoint(_SETTLED),
                states=not words.isdisjoint(_STATES),
                hedges=not words.isdisjoint(_HEDGES),
            )


def _constrains(text: str, words: frozenset[str]) -> bool:
    if not words.isdisjoint(_CONSTRAINTS) or "at most" in text:
        return True
    return not text.isascii() and _CONSTRAINT.search(text) is not None


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text in small letters; of a long one those of its beginning."""
    return frozenset(_WORD.findall(text[:_LOOKED_AT].lower()))
