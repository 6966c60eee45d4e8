"""The excerpt of a message around its match."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence
from typing import NamedTuple

from rapidfuzz import fuzz, process

from greenroom.actors.content.text.analyze import STOP_WORDS, Token, is_unspaced, spans, tokens
from greenroom.actors.core.base.unicode_forms import compose, map_offset

# The most characters to scan for single words (2 ms); the literal query is found anywhere.
LOOKED_AT = 12_000
_LOOSE_WORDS = 32  # words of a query that may match similar words
_TYPO_CUTOFF = 75.0
_JOINER = "\u200d"
_LONGEST_CLUSTER = 32  # the longest cluster of characters that a cut does not split
_TRIES = 64  # occurrences to check for word boundaries


class Preview(NamedTuple):
    """An excerpt of a message, and the span of the match in it, in characters.

    The span is empty if only sender, metadata or neighbours match.
    """

    text: str
    start: int
    end: int


def preview(content: str, query: str, width: int = 150, *, looked_at: int = LOOKED_AT) -> Preview:
    """Return at most ``width`` characters of ``content`` around its best match.

    Single words are searched for in at most ``looked_at`` characters, from the first word found on.

    The best match is the literal query, or else the span of at most ``width`` characters with the most
    different words of the query. To find it takes a few milliseconds for a content of 1 MB.
    """
    start, end = _match(content, query, width, min(looked_at, LOOKED_AT))
    end = min(end, start + width)
    if len(content) <= width:
        return Preview(content, start, end)
    left = max(0, min(start - (width - (end - start)) // 2, len(content) - width))
    right = min(len(content), left + width)
    left = min(_after_cluster(content, left), start)
    right = max(_before_cluster(content, right), end)
    return Preview(content[left:right], start - left, end - left)


def _match(content: str, query: str, width: int, most: int) -> tuple[int, int]:
    literal, alone = _literal(content, query)
    if literal and alone:
        return literal
    dense = _densest(content, query, width, most)
    if literal and not 0 < dense[1] - dense[0] <= width:
        return literal
    return dense


def _literal(content: str, query: str) -> tuple[tuple[int, int] | None, bool]:
    """Return the span of the literal query, and whether it is between word boundaries."""
    whole = compose(content)
    wanted, given = compose(query).strip().lower(), whole.lower()
    # A few letters get longer in lower case, which would shift the places.
    if not wanted or len(given) != len(whole):
        return None, False
    first = at = given.find(wanted)
    for _ in range(_TRIES):
        if at < 0:
            break
        end = at + len(wanted)
        if not given[max(0, at - 1) : at].isalnum() and not given[end : end + 1].isalnum():
            return _span(content, whole, at, end), True
        at = given.find(wanted, at + 1)
    return (_span(content, whole, first, first + len(wanted)), False) if first >= 0 else (None, False)


def _span(content: str, whole: str, start: int, end: int) -> tuple[int, int]:
    return (start, end) if whole == content else (map_offset(content, start), map_offset(content, end))


def _densest(content: str, query: str, width: int, most: int) -> tuple[int, int]:
    """Return the span of ``content`` with the most query words, or (0, 0)."""
    begin = _first_word(content, query, most)
    looked_at = content[begin : begin + most]
    words = list(spans(looked_at))
    meaning = _meanings({word for _, _, word in words}, tokens(query))
    places = sorted(
        (*_place(looked_at, start, end, term), wanted)
        for start, end, word in words
        for term, wanted in meaning[word]
    )
    best, worth = (0, 0), 0.0
    first, length = 0, 0
    inside: dict[str, int] = {}
    for start, end, wanted in places:
        inside[wanted] = inside.get(wanted, 0) + 1
        length += len(wanted) if inside[wanted] == 1 else 0
        while end - places[first][0] > width and places[first][0] < start:
            gone = places[first][2]
            inside[gone] -= 1
            length -= len(gone) if not inside[gone] else 0
            first += 1
        # Long words are assumed to be rare; of equal spans the shorter one wins.
        value = length - min(0.5, (end - places[first][0]) / (4 * width))
        if value > worth:
            best, worth = (begin + places[first][0], begin + end), value
    return best


def _first_word(content: str, query: str, most: int) -> int:
    """Return the place of the first exact word; 0 if within the first ``most`` characters."""
    if len(content) <= most:
        return 0
    whole = compose(content)
    given = whole.lower()
    words = [word for _, _, word in spans(compose(query).lower()) if word not in STOP_WORDS][:_LOOSE_WORDS]
    first = min((place for word in words if (place := given.find(word)) >= 0), default=0)
    return map_offset(content, first) if first >= most and len(given) == len(whole) else 0


def _place(text: str, start: int, end: int, term: str) -> tuple[int, int]:
    """Return the span of a term: its word, or only itself in scripts without spaces."""
    at = text.find(term, start, end) if is_unspaced(term) else -1
    return (start, end) if at < 0 else (at, at + len(term))


def _meanings(words: Collection[str], query: Sequence[Token]) -> dict[str, list[tuple[str, str]]]:
    """Map words of the content to their terms and the matching terms of the query."""
    here = {word: _terms(tokens(word)) for word in words}
    wanted = _terms([token for token in query if token.posted] or query)
    meaning = _pair_terms(wanted, set().union(*here.values()))
    known = meaning.keys()
    return {word: [(term, meaning[term]) for term in sorted(terms & known)] for word, terms in here.items()}


def _pair_terms(wanted: set[str], present: set[str]) -> dict[str, str]:
    """Map terms of the content to equal, contained or misspelt query terms."""
    meaning = {term: term for term in wanted & present}
    spaced = [term for term in present if not is_unspaced(term)]
    for term in sorted(wanted - present)[:_LOOSE_WORDS]:
        longer = [other for other in spaced if len(term) > 1 and term in other]
        for other in longer or _find_misspelt(term, spaced):
            meaning.setdefault(other, term)
    return meaning


def _terms(found: Sequence[Token]) -> set[str]:
    return {term for token in found for term in token.posted or (token.piece,)}


def _find_misspelt(term: str, here: Collection[str]) -> list[str]:
    found = process.extract(term, here, scorer=fuzz.ratio, score_cutoff=_TYPO_CUTOFF, limit=3)
    return [other for other, _, _ in found]


def _after_cluster(text: str, at: int) -> int:
    """Return the first cluster boundary from ``at`` on."""
    for place in range(at, min(len(text), at + _LONGEST_CLUSTER)):
        if not _is_joined(text, place):
            return place
    return at


def _before_cluster(text: str, at: int) -> int:
    """Return the last cluster boundary up to ``at``."""
    for place in range(at, max(0, at - _LONGEST_CLUSTER), -1):
        if not _is_joined(text, place):
            return place
    return at


def _is_joined(text: str, at: int) -> bool:
    """Return whether the characters around ``at`` belong to one cluster."""
    if not 0 < at < len(text):
        return False
    mark = text[at]
    return (
        unicodedata.category(mark).startswith("M")
        or mark == _JOINER
        or text[at - 1] == _JOINER
        or "\U0001f3fb" <= mark <= "\U0001f3ff"
        or (text[at - 1] == "\r" and mark == "\n")
    )
