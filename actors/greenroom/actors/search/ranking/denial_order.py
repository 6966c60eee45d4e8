"""The order of matches for a query such as "where do we not use Redis".

Such a query wants the notes that deny something. Words and vectors rate "we use Redis for sessions" equally
high or higher: indexes leave "not" out, and vectors hardly notice it. So, among the best matches, a note
moves if a negated sentence in it has the query's words. It moves right before the notes that have the same
words in a plain sentence. It must have most of their words of the query, by rarity, and may not be far
weaker. Nothing else moves, and nothing at all for a query without a negation.

This module does not understand sentences, so a negation may concern something else. The negations are words
of several languages that hardly mean anything else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from greenroom.actors.content.text.analyze import tokens

Floats = npt.NDArray[np.floating]
Places = npt.NDArray[np.intp]

COMPARED: Final = 10
"""This many best matches are read. No other note joins them, so a misread query loses nothing."""
LONGEST: Final = 2_000
"""At most this many characters of each text are read."""
_FARTHEST: Final = 5.0
"""A note may be weaker than the note it moves before by at most this, in log-odds."""
_SAME: Final = 0.7
"""A note is about the same matter if it has this share, by rarity, of another's words of the query."""
_LEAST: Final = 0.5
"""A note falls behind a denial only if its words of the query weigh this share of the best note's words."""
_LIGHT: Final = frozenset({"use", "need", "have", "get", "go", "make", "run", "work", "allow"})
_LIGHT_WEIGHT: Final = 0.3
"""Words that say little about a matter, and their weight relative to others."""
_WORDS: Final = r"""
not \w+n['\u2019]t cannot never no none nobody nothing nowhere neither nor without except avoid\w*
lacks lacking forb[ai]d\w* banned refuse\w* unable
nicht nichts nie niemals niemand\w* kein\w* ohne weder nirgend\w*
pas jamais sans aucune? rien sauf
nunca jam\u00e1s sin ning\u00fan ningun[oa]s? nadie tampoco
non mai senza nessun\w* niente
n\u00e3o sem nenhum\w* ningu\u00e9m
niet nooit geen zonder niemand nergens
inte aldrig ingen inga inget utan ikke aldri uden uten
ei eiv\u00e4t ilman
nem soha nincs n\u00e9lk\u00fcl
niciodat\u0103 f\u0103r\u0103 niciun\w*
de\u011fil yok asla
\u043d\u0435 \u043d\u0435\u0442 \u043d\u0438 \u043d\u0438\u043a\u043e\u0433\u0434\u0430 \u0431\u0435\u0437
\u03b4\u03b5\u03bd \u03bc\u03b7\u03bd \u03c7\u03c9\u03c1\u03af\u03c2 \u03c0\u03bf\u03c4\u03ad
\u0644\u0627 \u0644\u064a\u0633 \u0644\u0645 \u0628\u062f\u0648\u0646
\u0928\u0939\u0940\u0902
"""
"""Words of English, German, French, Spanish, Italian, Portuguese, Dutch, the Scandinavian languages, Finnish,
Hungarian, Romanian, Turkish, Russian, Greek, Arabic and Hindi."""
_NEGATION: Final = re.compile(rf"(?<![\w-])(?:{'|'.join(_WORDS.split())})(?![\w-])", re.IGNORECASE)


def _prefilter(words: Sequence[str]) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return whole words and beginnings of words; each negation has one of them."""
    exact, beginnings = {"t"}, []  # "don't" and similar words end with it
    for pattern in words:
        text = re.sub(r"\\u(\w{4})", lambda code: chr(int(code[1], 16)), pattern)
        begin = re.findall(r"^[\w-]*", text)[0]
        if begin == text:
            exact.add(text)
        elif begin:
            beginnings.append(begin[:-1] if text == f"{begin}?" else begin)
    return frozenset(exact), tuple(beginnings)


_RUN: Final = re.compile(r"[\w-]+")
_EXACT, _BEGINNINGS = _prefilter(_WORDS.split())  # looked up first: `_NEGATION` is slow
_NONE: Final = re.compile(
    r"\b(?:not (?:only|just|merely)|(?:why|or|if) not|not found|no\.? ?(?=\d)"
    r"|(?:do not|don['\u2019]t|never) (?:forget|mind|worry|hesitate)|nicht nur|pas seulement|no solo)\b",
    re.IGNORECASE,
)
"""Phrases that have a word of negation and negate nothing."""
_SENTENCE: Final = re.compile(r"[.!?;]+\s+|\n+")


class SentenceTerms(NamedTuple):
    """The query's terms in a note's best negated sentence, and in its best plain one."""

    negated: frozenset[str]
    plain: frozenset[str]


def is_negated(text: str) -> bool:
    """Return whether the first `LONGEST` characters of a query or sentence have a negation."""
    return _is_negated(text[:LONGEST])


@lru_cache(maxsize=64)
def _is_negated(text: str) -> bool:
    runs = _RUN.findall(text.lower())
    if _EXACT.isdisjoint(runs) and not any(run.startswith(_BEGINNINGS) for run in runs):
        return False
    return _NEGATION.search(_NONE.sub(" ", text)) is not None


def weigh_terms(rarity: Mapping[str, float]) -> dict[str, float]:
    """Return the weight of each term of a query, from its rarity."""
    return {term: each * (_LIGHT_WEIGHT if term in _LIGHT else 1.0) for term, each in rarity.items()}


def read_sentences(text: str, weights: Mapping[str, float]) -> SentenceTerms:
    """Return the terms of the query in the sentences of a note."""
    best = {True: frozenset[str](), False: frozenset[str]()}
    for sentence in filter(None, _SENTENCE.split(text)):
        terms = frozenset(term for token in tokens(sentence) for term in token.posted if term in weights)
        negated = is_negated(sentence)
        if _weight(terms, weights) > _weight(best[negated], weights):
            best[negated] = terms
    return SentenceTerms(best[True], best[False])


def _weight(terms: frozenset[str], weights: Mapping[str, float]) -> float:
    return sum(map(weights.__getitem__, terms))


def find_order(odds: Floats, notes: Sequence[SentenceTerms], weights: Mapping[str, float]) -> Places:
    """Return the new order of matches, given best first, for a query with a negation."""
    most = max((_weight(terms, weights) for each in notes for terms in each), default=0.0)
    order: list[int] = []
    for place, each in enumerate(notes):
        at = len(order)
        for before, other in enumerate(order):
            is_near = odds[other] - odds[place] <= _FARTHEST
            if is_near and _is_opposite(each, notes[other], weights, _LEAST * most):
                at = before
                break
        order.insert(at, place)
    return np.array(order, np.intp)


def _is_opposite(
    denial: SentenceTerms, other: SentenceTerms, weights: Mapping[str, float], least: float
) -> bool:
    """Return whether a note denies what the other note affirms and does not itself deny."""
    affirmed = _weight(other.plain, weights)
    shared = _weight(denial.negated & other.plain, weights)
    denied = _weight(other.negated & other.plain, weights)
    return affirmed > 0 and affirmed >= least and shared >= _SAME * affirmed > denied
