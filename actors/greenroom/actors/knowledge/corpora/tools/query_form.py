"""The form of a query, and which search suits it."""

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
    """How to search, and why."""

    form: Form
    strategy: UsedStrategy
    reason: str


def form_of(query: str) -> Form:
    """Return what a query looks like."""
    if _QUOTED.fullmatch(query):
        return "quoted"
    words = query.split()
    if len(words) <= _FEW_WORDS and any(_IDENTIFIER.fullmatch(word) for word in words):
        return "identifier"
    return "question" if _QUESTION.search(query) else "keywords"


def route(query: str, wanted: Strategy, absence: str | None) -> Route:
    """Return how to search for a query.

    Args:
        query: As it was asked.
        wanted: How the caller wants it.
        absence: Why chunks cannot be compared by meaning; None where they can.
    """
    form = form_of(query)
    if absence is not None and wanted in {"auto", "hybrid", "vector"}:
        return Route(form, "bm25", f"by words alone: {absence}")
    if wanted != "auto":
        return Route(form, wanted, "as it was asked")
    if form == "quoted":
        return Route(form, "bm25", "what is quoted is looked for by its words")
    if form == "identifier":
        return Route(form, "bm25", "an identifier is looked for as it is written")
    kind = "a question" if form == "question" else "several words"
    return Route(form, "hybrid", f"{kind}: by words and meaning together")
