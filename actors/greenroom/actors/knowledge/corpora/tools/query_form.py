"""Classify a query by its form, and choose the search strategy."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from greenroom.actors.knowledge.corpora.requests.corpus_requests import Strategy, UsedStrategy

Form = Literal["question", "keywords", "identifier", "quoted"]

_QUOTED: Final = re.compile(r"""\s*(["'`“«]).+(["'`”»])\s*""", re.DOTALL)
_IDENTIFIER: Final = re.compile(
    r"\S*(?:[a-z0-9][A-Z]|_|::|\.[A-Za-z]|\(\)|/|--?[a-z])\S*|[A-Z][A-Z0-9]{2,}\S*"
)
_QUESTION: Final = re.compile(
    r"\?\s*$|^\s*(?:who|whom|whose|what|which|where|when|why|how|can|could|does|do|did|is|are|should|will"
    r"|wer|was|wo|welche\w*|wann|wie|warum|kann|qui|que|quel\w*|où|comment|qué|quién|dónde|cómo)\b",
    re.IGNORECASE,
)
_FEW_WORDS: Final = 2


class Route(NamedTuple):
    """A strategy, and its reason."""

    form: Form
    strategy: UsedStrategy
    reason: str


def find_form(query: str) -> Form:
    """Return the form of a query."""
    if _QUOTED.fullmatch(query):
        return "quoted"
    words = query.split()
    if len(words) <= _FEW_WORDS and any(_IDENTIFIER.fullmatch(word) for word in words):
        return "identifier"
    return "question" if _QUESTION.search(query) else "keywords"


def choose_route(query: str, wanted: Strategy, absence: str | None) -> Route:
    """Choose the search strategy for a query.

    Args:
        query: The query.
        wanted: The strategy that the caller wants.
        absence: Why there are no vectors to compare; None where there are.
    """
    form = find_form(query)
    if absence is not None and wanted in {"auto", "hybrid", "vector"}:
        return Route(form, "bm25", f"by words alone: {absence}")
    if wanted != "auto":
        return Route(form, wanted, "as requested")
    if form == "quoted":
        return Route(form, "bm25", "what is quoted is looked for by its words")
    if form == "identifier":
        return Route(form, "bm25", "an identifier is looked for as it is written")
    kind = "a question" if form == "question" else "several words"
    return Route(form, "hybrid", f"{kind}: by words and meaning together")
