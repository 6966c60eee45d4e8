"""What tells that a unit of a conversation must be known, as numbers of 0 to 1.

Most are of form and place, so they hold in every language. The others are lists of words for five of them
(in Japanese, pairs of characters); in another one they are 0.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple

from greenroom.actors.session.summary.units import Unit
from greenroom.actors.text.analyze import asks

_NEAR: Final = 4
"""Messages that are the last ones, and that are around a unit."""
_LONG: Final = 160
"""Bytes of a long unit: a third as many characters in Japanese say as much."""
_TINY_MESSAGE: Final = 40
_SHARE_OF_RARE: Final = 8
"""A word that more than this part of the messages have names no matter of its own."""
_LEAST_RARE: Final = 4
_LOOKED_AT: Final = 1_200
_OPENING: Final = 60
"""Characters in which a message begins."""
_FIRST_WORDS: Final = 3
_IDEOGRAPHS: Final = "\u2e80"
"""The first character of scripts that are written without spaces."""
_RUNS: Final = re.compile(f"[^{_IDEOGRAPHS}-\U0003ffff]{{2,}}|[{_IDEOGRAPHS}-\U0003ffff]+")
_WORD: Final = re.compile(r"\w[\w./-]*\w")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CONSTRAINTS: Final = _words("""
must mustn never always only until till before no unless except least most max maximum minimum limit limited
required mandatory forbidden allowed strictly exactly deadline
muss müssen darf dürfen nie niemals immer nur erst bis vor kein keine keinen keinem keiner keines höchstens
mindestens spätestens frist
doit doivent jamais toujours seulement uniquement avant jusqu maximum minimum interdit obligatoire délai
debe deben nunca siempre solo sólo hasta antes máximo mínimo prohibido obligatorio plazo
必ず 必須 だけ のみ まで 以内 以上 以下 禁止 厳禁 期限 締切 絶対
""")
_DENIALS: Final = _words("""
not no never without nothing nobody none neither nor don dont doesn doesnt isn isnt wasn aren didn won wont
cannot cant shouldn
nicht nichts nie niemals ohne kein keine keinen keinem keiner keines weder noch
ne pas jamais rien sans aucun aucune sin nunca nada ni tampoco ningún ninguna
ない ませ せん ずに 禁止 不要
""")
_SETTLED: Final = _words("""
decision decide decided agree agreed approve approved accept accepted confirmed chosen choose chose pick
picked settled final conclusion resolved ok okay then so therefore rule policy use keep keeps kept leave
stay stays remain remains drop dropped instead
entscheidung entschieden einverstanden beschlossen vereinbart genehmigt also dann daher bleibt bleiben
stattdessen nehmen
décision décidé accord convenu validé donc alors gardons reste plutôt choisi
decisión decidido acordado aprobado vale entonces queda mantenemos dejamos elegido mejor
決定 決ま 決め 了解 承認 採用 合意 確定 では そう
""")
_OBJECTIONS: Final = _words("""
no nope not never hm hmm wait hold but careful wrong instead rather drop correction error don dont then
however still actually reject disagree unfortunately veto sorry oops damn ugh ouch ah
nein nee nicht kein keine aber statt doch leider moment stimmt falsch vorsicht achtung dann
non pas mais attends attention erreur plutôt désolé pero sino mejor espera ojo cuidado error tampoco entonces
いや いえ 違い 違う 待っ でも ただ しか 間違 訂正 やめ
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
        tiny_message: Its message has fewer than 40 bytes.
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
        settles: It has a word of decision.
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
    settles: float


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
            _in_order(answer.text[:_OPENING])[:_FIRST_WORDS]
        )
        questioned = answer is not None and asks(answer.text)
        before = frozenset[str]().union(*self._words[max(0, number - _NEAR) : number])
        after = frozenset[str]().union(*self._words[number + 1 : number + 1 + _NEAR])
        for place, unit in enumerate(parts):
            words = self._unit_words[number][place]
            text = unit.text
            rare = words - self._common
            each, each_rare = 1 / (len(words) or 1), 1 / (len(rare) or 1)
            length = min(1.0, len(text.encode()) / _LONG)
            yield Features(
                position=(number + 1) / len(self.said),
                among_last=number >= len(self.said) - _NEAR,
                first_request=number == self._first_request,
                length=length,
                length_by_person=by_person * length,
                tiny_message=len(message.text[:_TINY_MESSAGE].encode()) < _TINY_MESSAGE,
                asks=asks(text),
                resumes=len(words & before) * each,
                goes_on=len(words & after) * each,
                comes_back=len(rare - self._last[number]) * each_rare,
                opposed=opposed,
                questioned=questioned,
                block=unit.kind != "prose",
                late_in_message=place / max(1, len(parts) - 1),
                constrains=not words.isdisjoint(_CONSTRAINTS),
                denied_by_person=by_person and not words.isdisjoint(_DENIALS),
                settles=not words.isdisjoint(_SETTLED),
            )


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text in small letters; of a long one those of its beginning.

    In Chinese and Japanese, which have no spaces, they are pairs of characters.
    """
    return frozenset(_in_order(text[:_LOOKED_AT]))


def _in_order(text: str) -> list[str]:
    found: list[str] = _WORD.findall(text.lower())
    if text.isascii() or max(text) < _IDEOGRAPHS:
        return found
    return [part for word in found for part in _parts(word)]


def _parts(word: str) -> list[str]:
    runs = _RUNS.findall(word)
    spelled = [run for run in runs if run < _IDEOGRAPHS]
    return spelled + [run[at : at + 2] for run in runs if run >= _IDEOGRAPHS for at in range(len(run) - 1)]
