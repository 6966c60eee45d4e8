"""Documents, the form in which the index gets memories, and their analysis into terms.

This module does not need numpy, so a memory can be written without loading the index.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from functools import lru_cache
from itertools import chain, islice
from typing import Literal, NamedTuple, get_args

import msgspec

from greenroom.actors.content.text.analyze import current_rules, is_question, stretches, tokens
from greenroom.actors.content.text.words import TextRules
from greenroom.runtime import Slices

Field = Literal["text", "key", "tags", "author", "labels"]
"""Parts of a memory with postings: ``labels`` are whole tags for filters, the others are terms."""

FIELDS: tuple[Field, ...] = get_args(Field)
"""All fields, in this order."""

QUESTION = 1
"""The text ends like a question."""
TEMPORAL = 2
"""The text names a time: a date, a weekday, a year, yesterday, three weeks ago."""
UNREVIEWED = 4
"""No one has reviewed the memory; rows of older versions of the program never have this flag."""

NO_POSITION = -(2**63)
FOREVER = 2**63 - 1
NEVER = 0

_STRETCH = 2_048  # characters analysed without a pause (0.5 ms; 5 ms in the worst case)
_COUNTED = 4_096
_TIMES = """
january february march april may june july august september october november december
monday tuesday wednesday thursday friday saturday sunday weekday weekend
yesterday today tonight tomorrow ago lately recently nowadays soon earlier later
second minute hour day night morning noon afternoon evening midnight week month year decade century
spring summer autumn winter easter christmas birthday anniversary holiday
last next since until daily weekly monthly yearly annual
"""
_YEAR = re.compile(r"(?:1[89]|20)\d\d")


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """One memory in the form of the index. Times are microseconds since 1970.

    Attributes:
        id: Unique in the actor; the entry's update number.
        partition: The visibility class: hashable, and of the type given to `MemoryIndex`.
        key: The key; empty for a generated one.
        position: Its place in the conversation; None for last.
        number: The number of the memory, the same for all versions.
        expires_at: When it expires; None for never.
        importance: 0 to 1.
        rating: The mean rating, -1 to 1; 0 without ratings.
        supersedes: The ``number`` of the memory that it supersedes; None if there is none.
        unreviewed: Whether a rule found it and no one has reviewed it since.
    """

    id: int
    partition: Hashable
    namespace: str
    text: str
    key: str = ""
    author: str = ""
    tags: tuple[str, ...] = ()
    kind: str = ""
    conversation: str | None = None
    position: int | None = None
    number: int = 0
    created_at: int = 0
    updated_at: int = 0
    expires_at: int | None = None
    importance: float = 0.5
    uses: int = 0
    last_used: int | None = None
    rating: float = 0.0
    supersedes: int | None = None
    unreviewed: bool = False


class Analysed(NamedTuple):
    """How often each term of a document occurs, by field, and its flags."""

    counts: Mapping[Field, Mapping[str, int]]
    flags: int


def analyse(document: Document, rules: TextRules | None = None) -> Slices[Analysed]:
    """Analyse a document into terms."""
    rules = rules or current_rules()
    text: Counter[str] = Counter()
    for stretch in stretches(document.text, _STRETCH):
        _count(text, stretch, rules)
        yield
    tags: Counter[str] = Counter()
    for tag in document.tags:
        _count(tags, tag, rules)
        yield
    key: Counter[str] = Counter()
    author: Counter[str] = Counter()
    _count(key, document.key, rules)
    _count(author, document.author, rules)
    every: dict[Field, Mapping[str, int]] = {
        "text": text,
        "key": key,
        "tags": tags,
        "author": author,
        "labels": dict.fromkeys(rules.labels(document.tags), 1),
    }
    temporal = yield from is_temporal(text, rules)
    flags = (
        (QUESTION if is_question(document.text) else 0)
        | (TEMPORAL if temporal else 0)
        | (UNREVIEWED if document.unreviewed else 0)
    )
    return Analysed({field: counts for field, counts in every.items() if counts}, flags)


def _count(counts: Counter[str], text: str, rules: TextRules) -> None:
    counts.update(chain.from_iterable([posted for _, _, posted in tokens(text, rules)]))


def is_temporal(terms: Iterable[str], rules: TextRules | None = None) -> Slices[bool]:
    """Return whether one of the terms, made by ``rules``, names a time."""
    times = _temporal_terms(rules or current_rules())
    remaining = iter(terms)
    while step := list(islice(remaining, _COUNTED)):
        if not times.isdisjoint(step) or any(map(_YEAR.fullmatch, step)):
            return True
        yield
    return False


@lru_cache(maxsize=2)
def _temporal_terms(rules: TextRules) -> frozenset[str]:
    """Return the terms of the words for times."""
    return frozenset(term for token in tokens(_TIMES, rules) for term in token.posted)
