"""The parsed query: its terms, names, dates and vectors."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from greenroom.actors.content.text.analyze import spans, tokens, without_invisible
from greenroom.actors.core.replies.memory_types import TimeSpan
from greenroom.actors.search.embedding.vector_messages import QueryVectors
from greenroom.actors.search.ranking.dates import Date, find_dates
from greenroom.actors.search.ranking.view import View
from greenroom.runtime import Slices

MOST_TERMS = 64
"""Only this many different terms of a query are looked up, the first ones."""

_WHEN = re.compile(
    r"\b(?:when|how (?:long|often|recently)|(?:what|which) (?:day|date|week|month|year|season|time))\b",
    re.IGNORECASE,
)


class Term(NamedTuple):
    """A term of a query, its word, and its possible replacements (see `Token`)."""

    term: str
    instead: tuple[str, ...]
    word: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RankQuery:
    """A parsed query.

    Attributes:
        dates: The days, months and years that it names.
        times: The times that it describes in words, such as "two weeks ago".
        wants_time: Whether it asks when something was.
        offset: How far the caller's clock is ahead of UTC, in microseconds.
    """

    text: str
    terms: tuple[Term, ...]
    dates: tuple[Date, ...]
    times: tuple[TimeSpan, ...]
    wants_time: bool
    vectors: QueryVectors | None
    offset: int

    @classmethod
    def read(
        cls,
        text: str,
        vectors: QueryVectors | None = None,
        *,
        times: tuple[TimeSpan, ...] = (),
        offset: int = 0,
    ) -> RankQuery:
        """Parse a query as typed, without the words that describe ``times``."""
        terms: dict[str, Term] = {}
        for word in dict.fromkeys(word for _, _, word in spans(without_invisible(text))):
            for token in tokens(word):
                for term, instead in token.terms:
                    terms.setdefault(term, Term(term, instead, word))
        return cls(
            text=text,
            terms=tuple(terms.values())[:MOST_TERMS],
            dates=find_dates(text),
            times=times,
            wants_time=_WHEN.search(text) is not None,
            vectors=vectors,
            offset=offset,
        )


def name_terms(name: str) -> list[str]:
    """Return the terms, in order, of a query that names an author in full."""
    return [term for token in tokens(name) for term, _ in token.terms]


def match_names(view: View, terms: Iterable[str]) -> Slices[dict[int, list[str]]]:
    """Map each author's number to the name's terms, if the name has one of ``terms``."""
    found: dict[int, list[str]] = {}
    for term in terms:
        rows, _ = view.postings("author", term)
        yield
        if not len(rows):
            continue
        for number in np.flatnonzero(np.bincount(view.corpus.author[rows])).tolist():
            if number not in found:
                found[number] = name_terms(view.corpus.authors[number])
                yield
    return found
