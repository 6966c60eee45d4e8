"""Features of a unit of a conversation, from 0 to 1, that predict its importance.

Most depend on form and position, so they hold in every language. The others use word lists for five
languages, and are 0 in any other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple

from greenroom.actors.content.text.analyze import is_question
from greenroom.actors.sessions.summary.units import Unit

_NEAR: Final = 4
"""This many messages count as the last ones, and as near before or after a message."""
_LONG: Final = 160
"""Characters of a long unit."""
_TINY_MESSAGE: Final = 40
_SHARE_OF_RARE: Final = 8
"""A word is not rare if more than one in this many messages has it."""
_LEAST_RARE: Final = 4
_LOOKED_AT: Final = 1_200
_OPENING: Final = 60
"""Characters of the opening of a message."""
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
"""Words that begin a message that objects to the one before."""


class Utterance(NamedTuple):
    """A message of a conversation."""

    sender: str
    text: str
    by_person: bool = False


class Features(NamedTuple):
    """The features of a unit, or their weights in its log-odds of importance.

    Attributes:
        position: How late its message is.
        among_last: Its message is one of the last four.
        first_request: Its message is the first of a person.
        length: How long it is.
        length_by_person: The same, if a person wrote it.
        tiny_message: Its message has fewer than 40 characters.
        resumes: The share of its words that the four messages before have: it settles the discussion.
        goes_on: The share of its words that the four messages after it have: the discussion goes on.
        comes_back: The share of its rare words that any later message has: the later statement holds.
        opposed: The next message is by another sender and begins with an objection.
        questioned: The next message is by another sender and a question.
        block: It is a row of a table, or a line of code or of a log.
        late_in_message: Its position within its message.
        constrains: It has a word of constraint.
        denied_by_person: It has a word of denial, and a person wrote it.
        requested_by_person: It has a word of request, and a person wrote it.
        settles: It has a word of decision.
        states: It has a word for the progress of the work.
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
    """A conversation cut into units, with the words of each message."""

    def __init__(self, utterances: Sequence[Utterance], cut: Sequence[Sequence[Unit]]) -> None:
        self.utterances = utterances
        self.cut = cut
        self._unit_words = [[words_of(unit.text) for unit in each] for each in cut]
        self._words = [frozenset[str]().union(*each) for each in self._unit_words]
        counts = Counter(chain.from_iterable(self._words))
        most = max(_LEAST_RARE, len(utterances) // _SHARE_OF_RARE)
        self._common = frozenset(word for word, number in counts.items() if number > most)
        self._last = [set[str]() for _ in utterances]
        for word, place in {word: place for place, each in enumerate(self._words) for word in each}.items():
            self._last[place].add(word)
        self._first_request = next((place for place, each in enumerate(utterances) if each.by_person), -1)

    def features(self, number: int) -> Iterator[Features]:
        """Yield the features of the units of one message."""
        message, parts = self.utterances[number], self.cut[number]
        by_person = message.by_person
        answer = self.utterances[number + 1] if number + 1 < len(self.utterances) else None
        if answer is not None and answer.sender == message.sender:
            answer = None
        opposed = answer is not None and not _OBJECTIONS.isdisjoint(
            _WORD.findall(answer.text[:_OPENING].lower())[:_FIRST_WORDS]
        )
        questioned = answer is not None and is_question(answer.text)
        before = frozenset[str]().union(*self._words[max(0, number - _NEAR) : number])
        after = frozenset[str]().union(*self._words[number + 1 : number + 1 + _NEAR])
        for place, unit in enumerate(parts):
            words = self._unit_words[number][place]
            text = unit.text
            rare = words - self._common
            share, share_of_rare = 1 / (len(words) or 1), 1 / (len(rare) or 1)
            length = min(1.0, len(text) / _LONG)
            yield Features(
                position=(number + 1) / len(self.utterances),
                among_last=number >= len(self.utterances) - _NEAR,
                first_request=number == self._first_request,
                length=length,
                length_by_person=by_person * length,
                tiny_message=len(message.text) < _TINY_MESSAGE,
                asks=is_question(text),
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
    """Return the words of the beginning of a text, in lower case."""
    return frozenset(_WORD.findall(text[:_LOOKED_AT].lower()))
