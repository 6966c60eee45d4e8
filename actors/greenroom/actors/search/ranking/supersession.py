"""Which note takes the place of which: what is asked for as it is now stands in the newer of the two.

Two notes about one matter share its rare words and mean similar things, and the newer one often says itself
that something changed: "moved from X to Y", "no longer", "instead". From these comes, for each pair, the
probability that the later note succeeds the earlier one. It is a logistic regression, fitted together with
the order that it leads to, on questions whose answer was replaced and on many more whose answer was not.

Much is alike without one taking the place of the other: a series of minutes, descriptions of commands. So a
pair counts only if each is the other's most probable partner, and notes that were written at once never do.
What changed twice is a chain, A, B, C: the most probable partner of A may be C already, and counts as well.

A question for the present state asks for its best match, or for what succeeded it. The own chances of the
notes are a softmax of their strengths. Each note of some chance hands it on, the oldest first:

    handed on = chance · probability that it is succeeded

It falls behind its successor at most. What is not among the first ten by itself comes in only for a note that
is more likely the answer than all others together. So a query that was misread loses nothing of its answer. A
question for a former state goes the other way round. All of it is among the best matches of one search:
nothing else is looked at.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from greenroom.actors.content.text.analyze import tokens
from greenroom.actors.search.ranking.lexical import idf

if TYPE_CHECKING:
    from greenroom.actors.ranking.weights import VectorSet
    from greenroom.actors.search.ranking.intent import State

    Floats = npt.NDArray[np.floating]
    Places = npt.NDArray[np.intp]

COMPARED: Final = 50
"""Best matches among which successions are looked for."""
LONGEST: Final = 600
"""Characters of a note; a longer one is about several matters, and succeeds no other."""
UNIT: Final = 3.0
"""The strength that counts as 1 here."""
_SHARP: Final = {"words": 3.8, "static": 3.0, "sentences": 2.1, "tokens": 2.1}
"""How much a strength, as log-odds, tells which of the best matches is meant."""
_LEAST: Final = 1e-12
_FIRST: Final = 10
_LEAST_SHARE, _SHARE_FROM_BELOW = 0.05, 0.5
"""What part of all chances a note has to have to hand it on, and to one that is not among the first.

A weak match that lifts another is noise, and one that comes in pushes another out.
"""
_BEHIND: Final = 1e-9
_AT_ONCE: Final = 60_000_000
"""Microseconds within which notes are made at once: they are of one state of things."""
_LESS_AT_ONCE: Final = 1.5
"""What imported ones lose in that case: their times were given, and may be less exact."""
_ONE_MATTER, _COMMON = 3, 0.2
"""What more notes have than what changed twice, and more than this part of them, is no sign of one matter."""


class _Pairs(NamedTuple):
    """Weights of what tells that a later note succeeds an earlier one; the sum is a logit."""

    cosine: float
    shared: float
    overlap: float
    later_tells: float
    earlier_tells: float
    none: float


_WORDS: Final = _Pairs(0.0, 2.3, 7.2, 2.6, -2.7, -6.5)
_STATIC: Final = _Pairs(13.3, 1.6, 6.8, 2.6, -2.9, -10.0)
_SENTENCES: Final = _Pairs(16.0, 1.1, 6.5, 2.7, -2.6, -10.5)
_TABLES: Final = {"words": _WORDS, "static": _STATIC, "sentences": _SENTENCES, "tokens": _SENTENCES}

_CHANGE: Final = re.compile(
    r"\b(?:(?:mov|switch|migrat|shift|transferr|relocat|replac|retir|cancel|cancell|clos|dropp|abandon"
    r"|discontinu|supersed|disconnect|decommission|swapp|scrapp|stopp|expir|convert)ed|sold|ran out"
    r"|gave up|given up|(?:took|taken|takes) over|no (?:longer|more)|any ?more|any longer|instead"
    r"|from now on|since (?:this|next) \w+|(?:is|are|was|were) (?:gone|dead|history|over)"
    r"|(?:has|have) (?:left|gone|begun)"
    r"|nicht mehr|umgezogen|ab sofort|gewechselt|ersetzt|stattdessen|sondern"
    r"|désormais|déménagé|plus de|remplacé\w*|ya no|en (?:vez|lugar) de|reemplaz\w+|desde esta)\b",
    re.IGNORECASE,
)


class Statement(NamedTuple):
    """What is compared of a note.

    Attributes:
        terms: Of its text and its tags.
        tells: Whether it says that something changed.
        made: When, in microseconds since 1970.
        is_imported: Whether that time came with an import.
    """

    terms: frozenset[str]
    tells: bool
    made: int
    is_imported: bool = False

    @classmethod
    def read(cls, text: str, tags: Sequence[str], made: int, *, is_imported: bool) -> Statement:
        """Return what is compared of a note that says ``text``."""
        terms = frozenset(term for part in (text, *tags) for token in tokens(part) for term in token.posted)
        return cls(terms, tells_change(text), made, is_imported)


def tells_change(text: str) -> bool:
    """Return whether a text says that something took the place of something else."""
    return _CHANGE.search(text) is not None


def successions(statements: Sequence[Statement], cosines: Floats | None, vectors: VectorSet) -> Floats:
    """Return the probability that each note, by line, succeeds each other, by column.

    Args:
        statements: The notes.
        cosines: Of their vectors; None without.
        vectors: What these are.
    """
    weights = _WORDS if cosines is None else _TABLES[vectors]
    shared, overlap = _common(statements)
    tells = np.array([each.tells for each in statements], np.float64)
    made = np.array([each.made for each in statements], np.int64)
    logit = weights.shared * shared + weights.overlap * overlap + weights.none
    logit += weights.later_tells * tells[:, None] + weights.earlier_tells * tells[None, :]
    is_imported = np.array([each.is_imported for each in statements], np.bool_)
    after = made[:, None] - made[None, :]
    at_once = after < _AT_ONCE
    if cosines is not None:
        logit += weights.cosine * cosines - _LESS_AT_ONCE * at_once
    is_later = (after > 0) & ~(at_once & ~(is_imported[:, None] | is_imported[None, :]))
    found: Floats = is_later / (1 + np.exp(-logit))
    return found


def _common(statements: Sequence[Statement]) -> tuple[Floats, Floats]:
    """Return the logarithm of the rarity that each two share, and which part of theirs that is."""
    counts = Counter(term for each in statements for term in each.terms)
    common = max(_ONE_MATTER, len(statements) * _COMMON)
    rarities = [idf(count, len(statements)) * (count <= common) for count in range(len(statements) + 1)]
    rarity = np.array(rarities)[list(counts.values())]
    places = {term: place for place, term in enumerate(counts)}
    has = np.zeros((len(statements), len(counts)))
    for line, each in zip(has, statements, strict=True):
        line[[places[term] for term in each.terms]] = 1
    shared = (has * rarity) @ has.T
    whole = np.sqrt(np.maximum(shared.diagonal(), 1e-6))
    return np.log1p(shared), shared / (whole[:, None] * whole[None, :])


def gains(
    strengths: Floats,
    places: Places,
    statements: Sequence[Statement],
    probabilities: Floats,
    vectors: VectorSet,
    state: State,
) -> Floats:
    """Return what each note's strength gains or loses when ``state`` is asked for.

    Args:
        strengths: Of each note, as log-odds.
        places: Of each note among all matches, from 0 on.
        statements: The notes.
        probabilities: As `successions` has them.
        vectors: Which vectors decided on the strengths.
        state: What is asked for.
    """
    sharp, is_present = _SHARP[vectors], state == "present"
    partners, parts = _partners(probabilities if is_present else probabilities.T)
    own = np.exp(sharp * (strengths - strengths.max()))
    chances = own.copy()
    all_chances = own.sum()
    may_hand_on = (places[partners] < _FIRST) | (own >= _SHARE_FROM_BELOW * all_chances)
    moved: list[int] = []
    order = sorted(np.flatnonzero(may_hand_on & (parts > 0)).tolist(), key=lambda each: statements[each].made)
    for place in order if is_present else reversed(order):
        if chances[place] >= _LEAST_SHARE * all_chances:
            handed = chances[place] * parts[place]
            chances[partners[place]] += handed
            chances[place] -= handed
            moved.append(place)
    gained: Floats = (np.log(np.maximum(chances, _LEAST)) - np.log(np.maximum(own, _LEAST))) / sharp
    best = strengths + gained
    for place in reversed(moved):  # what took its place has its own by now
        best[place] = max(best[place], best[partners[place]])
        kept = best[partners[place]] - _BEHIND - strengths[place]
        gained[place] = max(gained[place], min(0.0, kept))
    return gained


def _partners(probabilities: Floats) -> tuple[Places, Floats]:
    """Return for each column its partner and the part of its chance handed on.

    The partner is a line; the part is 0 without one. It is the most probable line for the column, if the
    column is also the most probable one for that line. Else the line's most probable partner has to belong to
    the same chain: the column is that one's partner, or that one the column's.
    """
    columns = np.arange(len(probabilities))
    to, back = probabilities.argmax(axis=0), probabilities.argmax(axis=1)
    rival = back[to]
    has_back = probabilities[columns, back] > 0
    is_chain = (has_back[rival] & (back[rival] == columns)) | (has_back & (back == rival))
    return to, np.where((rival == columns) | is_chain, probabilities[to, columns], 0.0)
