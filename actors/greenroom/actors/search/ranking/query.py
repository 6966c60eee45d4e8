"""The parsed query: its terms, the names and dates in it, and what it asks for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from greenroom.actors.content.text.analyze import spans, tokens, without_invisible
from greenroom.actors.core.replies.memory_types import QueryVectors, TimeSpan
from greenroom.actors.search.ranking.dates import Date, dates_in
from greenroom.runtime import Slices

if TYPE_CHECKING:
    from greenroom.actors.search.ranking.view import View

MOST_TERMS = 64
"""Different terms of a query that are looked for; of a longer one the first."""

_WHEN = re.compile(
    r"\b(?:when|how (?:long|often|recently)|(?:what|which) (?:day|date|week|month|year|season|time))\b",
    re.IGNORECASE,
)


class Term(NamedTuple):
    """A term of a query.

    Attributes:
        term: What the index knows it by.
        instead: Terms that do as well where nothing is known by it, see `text.analyze.Token`.
        word: As it was typed.
    """

    term: str
    instead: tuple[str, ...]
    word: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RankQuery:
    """A parsed query.

    Attributes:
        text: The query as typed.
        terms: Its terms in order, each once.
        dates: The days, months and years that it names.
        times: When it was what is looked for, as far as the query said so in its own words.
        wants_time: Whether it asks when something was.
        vectors: What an embedder made of it; None to go by words alone.
        offset: What the caller's clock is ahead of UTC, in microseconds.
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
        """Read a query.

        Args:
            text: As typed, without the words of ``times``.
            vectors: See the class.
            times: See the class.
            offset: See the class.
        """
        terms: dict[str, Term] = {}
        for word in dict.fromkeys(word for _, _, word in spans(without_invisible(text))):
            for token in tokens(word):
                for term, instead in token.terms:
                    terms.setdefault(term, Term(term, instead, word))
        return cls(
            text=text,
            terms=tuple(terms.values())[:MOST_TERMS],
            dates=dates_in(text),
            times=times,
            wants_time=_WHEN.search(text) is not None,
            vectors=vectors,
            offset=offset,
        )


def name_terms(name: str) -> list[str]:
    """Return what a query has, in this order, that names an author in full."""
    return [term for token in tokens(name) for term, _ in token.terms]


def partly_named(
    view: View, terms: Iterable[str], should_yield: Callable[[], bool]
) -> Slices[dict[int, list[str]]]:
    """Return the terms of the names that have one of ``terms``, by the author's number."""
    found: dict[int, list[str]] = {}
    for term in terms:
        rows, _ = view.postings("author", term)
        if should_yield():
            yield
        if not len(rows):
            continue
        for number in np.flatnonzero(np.bincount(view.corpus.author[rows])).tolist():
            if number not in found:
                found[number] = name_terms(view.corpus.authors[number])
                if should_yield():
                    yield
    return found
