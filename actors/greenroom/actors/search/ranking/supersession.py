"""Supersession: which of two notes replaces the other.

Two notes about one matter share its rare words and have similar meanings, and the newer one often states the
change: "moved from X to Y", "no longer", "instead". A logistic regression over these signs estimates, for
each pair, the probability that the later note supersedes the earlier one. It was fitted together with the
resulting order, to questions with a replaced answer and to many more with an answer that still holds.

Many notes are alike and do not supersede each other: a series of minutes, descriptions of commands. So a pair
counts only if each note is the other's most probable partner, and notes written at once never count. A matter
that changed twice is a chain A, B, C: there C may be the most probable partner of A, and counts as well.

A query about the present state wants its best match, or the note that supersedes it. The probabilities of the
notes are a softmax of their strengths. Each note above a least share passes some on, the oldest note first:

    passed on = probability · probability that the note is superseded

A note falls no lower than right behind its successor. A note outside the first ten joins them only for a note
that is more likely the answer than all others together. So a misread query does not lose its answer. For a
former state, notes pass probability on to older ones. Only the best matches of one search are compared.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from greenroom.actors.content.text.analyze import tokens
from greenroom.actors.search.ranking.intent import State
from greenroom.actors.search.ranking.lexical import idf
from greenroom.actors.search.ranking.weights import VectorSet

Floats = npt.NDArray[np.floating]
Places = npt.NDArray[np.intp]

COMPARED: Final = 50
"""The number of best matches that are compared."""
LONGEST: Final = 600
"""The most characters of a note; a longer note is about several matters and is not compared."""
UNIT: Final = 3.0
"""The strength that counts as 1 here."""
_SHARP: Final = {"words": 3.8, "static": 3.0, "sentences": 2.1, "tokens": 2.1}
"""How sharply a strength, as log-odds, decides which of the best matches is the answer."""
_LEAST: Final = 1e-12
_FIRST: Final = 10
_LEAST_SHARE, _SHARE_FROM_BELOW = 0.05, 0.5
"""A note needs this share of all probability to pass some on. To pass some on to a note outside the first
ten, it needs the second share.

A weak match that lifts another note is noise, and a note that joins the first ten pushes another one out.
"""
_BEHIND: Final = 1e-9
_AT_ONCE: Final = 60_000_000
"""Notes whose times differ by fewer microseconds count as written at once, about one state of things."""
_LESS_AT_ONCE: Final = 1.5
"""Imported notes written at once lose this: their times came with the import, and may be less exact."""
_ONE_MATTER, _COMMON = 3, 0.2
"""If a term is in more notes than the first number, and in more than this share, it shows no common matter.

The first is the number of notes about a matter that changed twice.
"""


class _Pairs(NamedTuple):
    """Weights of the signs of a supersession; their sum is a logit."""

    cosine: float
    shared: float
    overlap: float
    later_changes: float
    earlier_changes: float
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
    """The compared parts of a note; the note's time may come from an import."""

    terms: frozenset[str]
    has_change: bool
    made: int
    is_imported: bool = False

    @classmethod
    def read(cls, text: str, tags: Sequence[str], made: int, *, is_imported: bool) -> Statement:
        """Read a note with the text ``text``."""
        terms = frozenset(term for part in (text, *tags) for token in tokens(part) for term in token.posted)
        return cls(terms, states_change(text), made, is_imported)


def states_change(text: str) -> bool:
    """Return whether a text states that one thing replaced another."""
    return _CHANGE.search(text) is not None


def find_changes(text: str) -> list[tuple[int, int]]:
    """Return the beginning and end of each phrase that states that one thing replaced another."""
    return [found.span() for found in _CHANGE.finditer(text)]


def estimate_supersessions(
    statements: Sequence[Statement], cosines: Floats | None, vectors: VectorSet
) -> Floats:
    """Return the probability that each line's note supersedes each column's note."""
    weights = _WORDS if cosines is None else _TABLES[vectors]
    shared, overlap = _compare_terms(statements)
    changes = np.array([each.has_change for each in statements], np.float64)
    made = np.array([each.made for each in statements], np.int64)
    logit = weights.shared * shared + weights.overlap * overlap + weights.none
    logit += weights.later_changes * changes[:, None] + weights.earlier_changes * changes[None, :]
    is_imported = np.array([each.is_imported for each in statements], np.bool_)
    after = made[:, None] - made[None, :]
    at_once = after < _AT_ONCE
    if cosines is not None:
        logit += weights.cosine * cosines - _LESS_AT_ONCE * at_once
    is_later = (after > 0) & ~(at_once & ~(is_imported[:, None] | is_imported[None, :]))
    found: Floats = is_later / (1 + np.exp(-logit))
    return found


def _compare_terms(statements: Sequence[Statement]) -> tuple[Floats, Floats]:
    """Return, for each pair, the shared terms' log rarity and share of all rarity."""
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


def compute_gains(
    strengths: Floats,
    places: Places,
    statements: Sequence[Statement],
    probabilities: Floats,
    vectors: VectorSet,
    state: State,
) -> Floats:
    """Return the change of each note's strength, as log-odds, for a state."""
    sharp, is_present = _SHARP[vectors], state == "present"
    partners, parts = find_partners(probabilities if is_present else probabilities.T)
    own = np.exp(sharp * (strengths - strengths.max()))
    chances = own.copy()
    all_chances = own.sum()
    may_pass_on = (places[partners] < _FIRST) | (own >= _SHARE_FROM_BELOW * all_chances)
    moved: list[int] = []
    order = sorted(np.flatnonzero(may_pass_on & (parts > 0)).tolist(), key=lambda each: statements[each].made)
    for place in order if is_present else reversed(order):
        if chances[place] >= _LEAST_SHARE * all_chances:
            passed = chances[place] * parts[place]
            chances[partners[place]] += passed
            chances[place] -= passed
            moved.append(place)
    gained: Floats = (np.log(np.maximum(chances, _LEAST)) - np.log(np.maximum(own, _LEAST))) / sharp
    best = strengths + gained
    for place in reversed(moved):  # the successor has its final strength by now
        best[place] = max(best[place], best[partners[place]])
        kept = best[partners[place]] - _BEHIND - strengths[place]
        gained[place] = max(gained[place], min(0.0, kept))
    return gained


def find_partners(probabilities: Floats) -> tuple[Places, Floats]:
    """Return, for each column, its partner (a line) and the part that it passes on.

    The part is 0 without a partner. The partner is the most probable line for the column, if the column is
    also the most probable one for that line. Otherwise the line's most probable column must belong to the
    same chain: it supersedes this column, or this column supersedes it.
    """
    columns = np.arange(len(probabilities))
    to, back = probabilities.argmax(axis=0), probabilities.argmax(axis=1)
    rival = back[to]
    has_back = probabilities[columns, back] > 0
    is_chain = (has_back[rival] & (back[rival] == columns)) | (has_back & (back == rival))
    return to, np.where((rival == columns) | is_chain, probabilities[to, columns], 0.0)
