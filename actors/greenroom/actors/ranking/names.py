"""Which authors a query may name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from greenroom.actors.text.analyze import tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from greenroom.actors.ranking.view import View
    from greenroom.runtime import Slices


def name_terms(name: str) -> list[str]:
    """Return what a query has, in this order, that names an author in full."""
    return [term for token in tokens(name) for term, _ in token.terms]


def partly_named(view: View, terms: Iterable[str], pace: Callable[[], bool]) -> Slices[dict[int, list[str]]]:
    """Return the terms of the names that have one of ``terms``, by the author's number."""
    found: dict[int, list[str]] = {}
    for term in terms:
        rows, _ = view.postings("author", term)
        if pace():
            yield
        if not len(rows):
            continue
        for number in np.flatnonzero(np.bincount(view.corpus.author[rows])).tolist():
            if number not in found:
                found[number] = name_terms(view.corpus.authors[number])
                if pace():
                    yield
    return found
