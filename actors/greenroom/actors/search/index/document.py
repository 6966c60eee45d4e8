"""Documents, which the index is given for memories, and their analysis into terms.

Nothing here needs numpy: a memory can be written without loading the index.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import lru_cache
from itertools import chain, islice
from typing import Literal, NamedTuple, get_args

import msgspec

from greenroom.actors.content.text.analyze import asks, current_rules, stretches, tokens
from greenroom.actors.content.text.words import TextRules
from greenroom.runtime import Slices

Field = Literal["text", "key", "tags", "author", "labels"]
"""Parts of a memory with postings; ``labels`` are whole tags, to filter by, the others are terms."""

FIELDS: tuple[Field, ...] = get_args(Field)
ShouldYield = Callable[[], bool]
"""Says whether a generator should yield now."""

QUESTION = 1
"""The text ends as a question does."""
TEMPORAL = 2
"""The text names a time: a date, a weekday, a year, yesterday, three weeks ago."""
UNREVIEWED = 4
"""Nobody has looked at it; of rows that older programs wrote, none is."""

NO_POSITION = -(2**63)
FOREVER = 2**63 - 1
NEVER = 0

_STRETCH = 2_048  # characters analysed without a pause (0.5 ms; 5 ms if each is one of the worst)
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
    """One memory as the index sees it. Times are microseconds since 1970.

    Attributes:
        id: Unique in the actor; the entry's update number.
        partition: The visibility class: hashable, and of the type given to `MemoryIndex`.
        namespace: The namespace in full.
        text: What is searched.
        key: The key, empty for one that was made up.
        author: Who wrote it, as a name.
        tags: The tags as given.
        kind: What kind of memory it is.
        conversation: The conversation that it belongs to.
        position: Its place in the conversation; None for after those that have one.
        number: What stands for the memory through all its versions.
        created_at: When the entry was first written.
        updated_at: When this version was written.
        expires_at: From when on it is no longer there; None for never.
        importance: 0 to 1.
        uses: How often it was used.
        last_used: When it was last used.
        rating: The mean rating, -1 to 1; 0 for none.
        supersedes: The ``number`` of the memory whose place it takes; None for none.
        unreviewed: Whether a rule found it and nobody has looked at it since.
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
    """The terms and flags of a document.

    Attributes:
        counts: How often each term occurs, by field; fields without terms are left out.
        flags: QUESTION, TEMPORAL and UNREVIEWED.
    """

    counts: Mapping[Field, Mapping[str, int]]
    flags: int


def analyse(
    document: Document, should_yield: ShouldYield, rules: TextRules | None = None
) -> Slices[Analysed]:
    """Analyse a document into terms; yields when ``should_yield()``.

    Args:
        document: What is to be found.
        should_yield: Whether to yield.
        rules: How texts become terms; the current ones unless given.
    """
    rules = rules or current_rules()
    text: Counter[str] = Counter()
    for stretch in stretches(document.text, _STRETCH):
        _count(text, stretch, rules)
        if should_yield():
            yield
    tags: Counter[str] = Counter()
    for tag in document.tags:
        _count(tags, tag, rules)
        if should_yield():
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
    temporal = yield from is_temporal(text, should_yield, rules)
    flags = (
        (QUESTION if asks(document.text) else 0)
        | (TEMPORAL if temporal else 0)
        | (UNREVIEWED if document.unreviewed else 0)
    )
    return Analysed({field: counts for field, counts in every.items() if counts}, flags)


def _count(counts: Counter[str], text: str, rules: TextRules) -> None:
    counts.update(chain.from_iterable([posted for _, _, posted in tokens(text, rules)]))


def is_temporal(
    terms: Iterable[str], should_yield: ShouldYield, rules: TextRules | None = None
) -> Slices[bool]:
    """Return whether one of the terms, made by these rules, names a time; yields when ``should_yield()``."""
    times = _temporal_terms(rules or current_rules())
    remaining = iter(terms)
    while step := list(islice(remaining, _COUNTED)):
        if not times.isdisjoint(step) or any(map(_YEAR.fullmatch, step)):
            return True
        if should_yield():
            yield
    return False


@lru_cache(maxsize=2)
def _temporal_terms(rules: TextRules) -> frozenset[str]:
    """Return the terms of words for times."""
    return frozenset(term for token in tokens(_TIMES, rules) for term in token.posted)
