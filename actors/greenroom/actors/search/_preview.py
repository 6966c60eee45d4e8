"""The part of a message that shows why it was found."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, NamedTuple

from greenroom.actors.search._text import Token, spans, tokens
from rapidfuzz import fuzz, process

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LOOKED_AT = 32_768
"""Characters of a long message in which single words are looked for (3 ms); a literal match is found anywhere."""

_TYPO_CUTOFF = 75.0
_JOINER = "\u200d"
_LONGEST_CLUSTER = 32  # characters that are kept together at a cut; a longer pile of marks is cut


class Preview(NamedTuple):
    """A part of a message's content.

    Attributes:
        text: The part, as it stands in the content.
        start: Where the match begins in ``text``, in characters (code points).
        end: Where it ends; equal to ``start`` if the content itself has no match (only its sender,
            its metadata or its neighbours have).
    """

    text: str
    start: int
    end: int


def preview(content: str, query: str, width: int = 150) -> Preview:
    """Return the at most ``width`` characters of ``content`` around its best match with ``query``.

    The best match is the query as it stands, or else the stretch of no more than ``width``
    characters that has the most different words of the query. Bounded: a few milliseconds for a
    content of 1 MB.
    """
    start, end = _literal(content, query) or _densest(content, query, width)
    end = min(end, start + width)
    if len(content) <= width:
        return Preview(content, start, end)
    left = max(0, min(start - (width - (end - start)) // 2, len(content) - width))
    right = min(len(content), left + width)
    left = min(_after_cluster(content, left), start)
    right = max(_before_cluster(content, right), end)
    return Preview(content[left:right], start - left, end - left)


def _literal(content: str, query: str) -> tuple[int, int] | None:
    """Return where the query stands in the content, preferably between word boundaries."""
    wanted, given = query.strip().lower(), content.lower()
    # A few letters get longer in lower case; then the offsets would be wrong.
    if not wanted or len(given) != len(content):
        return None
    at = given.find(wanted)
    first = at
    for _ in range(_LONGEST_CLUSTER):
        if at < 0 or _stands_alone(given, at, at + len(wanted)):
            break
        at = given.find(wanted, at + 1)
    found = at if at >= 0 and _stands_alone(given, at, at + len(wanted)) else -1
    if found < 0 and len(tokens(query)) > 1:
        found = first
    return None if found < 0 else (found, found + len(wanted))


def _stands_alone(text: str, start: int, end: int) -> bool:
    return not text[max(0, start - 1) : start].isalnum() and not text[end : end + 1].isalnum()


def _densest(content: str, query: str, width: int) -> tuple[int, int]:
    """Return the stretch of ``content`` that has the most of the query's words, (0, 0) if none."""
    words = list(spans(content[:LOOKED_AT]))
    meaning = _meanings([token for _, _, token in words], tokens(query))
    places = [
        (start, end, wanted)
        for start, end, token in words
        for wanted in {meaning[term] for term in _terms(token) if term in meaning}
    ]
    best, worth = (0, 0), 0.0
    first = 0
    inside: dict[str, int] = {}
    for start, end, wanted in places:
        inside[wanted] = inside.get(wanted, 0) + 1
        while first < len(places) and end - places[first][0] > width and places[first][0] < start:
            inside[places[first][2]] -= 1
            first += 1
        # Longer words stand for rarer ones; between equals the tighter stretch wins.
        value = sum(len(word) for word, count in inside.items() if count) - (end - places[first][0]) / (100 * width)
        if value > worth:
            best, worth = (places[first][0], end), value
    return best


def _meanings(present: Sequence[Token], query: Sequence[Token]) -> dict[str, str]:
    """Return, for terms of the content, the term of the query that each stands for."""
    here = {term for token in present for term in _terms(token)}
    wanted = {term for token in query for term in _terms(token)} or {token.piece for token in query}
    meaning: dict[str, str] = {}
    for term in sorted(wanted):
        if term in here:
            meaning[term] = term
            continue
        parts = [other for other in here if len(term) > 1 and term in other]
        parts = parts or [
            other for other, _, _ in process.extract(term, here, scorer=fuzz.ratio, score_cutoff=_TYPO_CUTOFF, limit=3)
        ]
        for other in parts:
            meaning.setdefault(other, term)
    return meaning


def _terms(token: Token) -> Iterator[str]:
    yield from token.terms
    yield from token.parts
    if not token.terms:
        yield token.piece


def _after_cluster(text: str, at: int) -> int:
    """Return the first place from ``at`` on where a new character begins for the reader."""
    for place in range(at, min(len(text), at + _LONGEST_CLUSTER)):
        if not _joined(text, place):
            return place
    return at


def _before_cluster(text: str, at: int) -> int:
    """Return the last place up to ``at`` where a new character begins for the reader."""
    for place in range(at, max(0, at - _LONGEST_CLUSTER), -1):
        if not _joined(text, place):
            return place
    return at


def _joined(text: str, at: int) -> bool:
    """Return whether the characters before and after ``at`` belong together."""
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
