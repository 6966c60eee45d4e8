"""Files of source code that are like a given one: by the terms that tell most of it, and by its name.

The terms are looked up like those of a query, so a file costs no more than a long question. The cosine of all
terms finds hardly more, for each term of the file (docs/code-ranking.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from greenroom.actors.content.text.analyze import code_rules, spans, stretches
from greenroom.actors.search.index.source_code import stem_of
from greenroom.actors.search.ranking.chunks import FACTORS, add_files, best_places, group_of
from greenroom.actors.search.ranking.code_signals import SourceView
from greenroom.actors.search.ranking.lexical import FEW, idf
from greenroom.actors.search.ranking.spelling import Correction
from greenroom.runtime import Slices

if TYPE_CHECKING:
    from greenroom.actors.search.ranking.view import Floats, Mask

LIKENESS: Final[Mapping[str, float]] = {"terms": 0.57, "name": 0.17, "imports": 0.17, "linked": 0.09}
"""The weights of the signals, each of which goes from 0 to 1.

``terms``: What tells most of the file is said by the other (BM25, as a share of the file's own).
``name``: Which share of the words in both files' names they have in common, by rarity.
``imports``: Which share of what the two import they have in common.
``linked``: One imports the other.
"""
TELLING: Final = 25
"""How many terms of a file are looked up."""
SHARED: Final = 8
"""How many of them are named."""
_STRETCH: Final = 20_000
"""Characters that are read without a pause."""
_EPSILON: Final = 1e-9
_TEST_WORDS: Final = frozenset({"test", "tests", "spec"})


class Said(NamedTuple):
    """A term of a file: how it is spelled there, how often it is, and in how many passages."""

    word: str
    times: int
    passages: int


def likeness_of(signals: Mapping[str, float]) -> float:
    """Return how like each other two files are, 0 to 1."""
    return sum(LIKENESS[name] * value for name, value in signals.items())


def said_in(passages: Iterable[str], should_yield: Callable[[], bool]) -> Slices[dict[str, Said]]:
    """Return what a file says, by term; yields now and then."""
    rules = code_rules()
    words: dict[str, str] = {}
    times: Counter[str] = Counter()
    rows: Counter[str] = Counter()
    for passage in passages:
        here: set[str] = set()
        for stretch in stretches(passage, _STRETCH):
            for _, _, word in spans(stretch):
                terms = rules.token(word).posted
                times.update(terms)
                here.update(terms)
                for term in terms:
                    words.setdefault(term, word)
            if should_yield():
                yield
        rows.update(here)
    return {term: Said(words[term], count, rows[term]) for term, count in times.items()}


class LikeFile(NamedTuple):
    """A file that is like another: its path, its signals, and which telling words both have."""

    path: str
    signals: Mapping[str, float]
    shared: Sequence[str]


def like_files(
    view: SourceView,
    path: str,
    terms: Mapping[str, Said],
    should_yield: Callable[[], bool],
    *,
    limit: int,
    below: Mask | None = None,
) -> Slices[list[LikeFile]]:
    """Return the files that are most like one, as far as terms and names say it; yields now and then.

    Args:
        view: The passages of all files.
        path: The file, as the view knows it.
        terms: What it says.
        should_yield: Whether to yield.
        limit: How many files are returned at most.
        below: Which files are looked at, by number; all unless given.
    """
    authors = view.corpus.authors
    said = np.zeros(len(authors), np.float32)
    by_term: dict[str, Floats] = {}
    for term in (yield from _telling(view, terms, should_yield)):
        times = terms[term].times
        group = group_of(view, term, [Correction(term, 1.0, 0)], times / (times + FACTORS["text"]))
        found = by_term[term] = np.zeros(len(authors), np.float32)
        if "text" in group.found:
            add_files(view, found, group)
        said += found
        if should_yield():
            yield
    is_other = np.fromiter((each != path for each in authors), np.bool_, len(authors))
    own = said[~is_other].max(initial=np.float32(_EPSILON))
    signals = {"terms": np.minimum(said / own, 1), "name": _named_alike(view, path)}
    likeness = sum((np.float32(LIKENESS[name]) * value for name, value in signals.items()), view.no_file)
    looked_at = (likeness > 0) & is_other
    files = np.flatnonzero(looked_at if below is None else looked_at & below)
    ranked: list[LikeFile] = []
    for number in files[best_places(likeness[files], limit)].tolist():
        both = sorted(by_term, key=lambda term: -by_term[term][number])
        ranked.append(
            LikeFile(
                authors[number],
                {name: float(value[number]) for name, value in signals.items()},
                [terms[term].word for term in both[:SHARED] if by_term[term][number]],
            )
        )
        if should_yield():
            yield
    return ranked


def _telling(
    view: SourceView, terms: Mapping[str, Said], should_yield: Callable[[], bool]
) -> Slices[list[str]]:
    """Return the terms that tell most of a file: often there, seldom elsewhere, but in another at least."""
    worth: dict[str, float] = {}
    for term, said in terms.items():
        count = len(view.corpus.postings("text", term)[0])
        if count > said.passages:
            often = said.times / (said.times + FACTORS["text"])
            worth[term] = often * idf(count, max(FEW, view.count))
        if should_yield():
            yield
    return sorted(worth, key=lambda term: (-worth[term], term))[:TELLING]


def _named_alike(view: SourceView, path: str) -> Floats:
    """Return which share of the words in its name and in theirs files have in common, by rarity."""
    shared, count = (np.zeros(len(view.corpus.authors), np.float32) for _ in range(2))
    own = 0.0
    for term in _words(stem_of(path)):
        group = group_of(view, term, [Correction(term, 1.0, 0)])
        if "key" in group.found:
            files = np.unique(view.corpus.author[group.found["key"][0]])
            weight = idf(len(files), max(FEW, view.files))
            own += weight
            shared[files] += np.float32(weight)
            count[files] += 1
    known = view.stems - (view.stems > 1) - view.role("test")  # neither the name as a whole, nor "test"
    others = np.float32(own / max(1.0, float(count.max(initial=0)))) * np.maximum(known - count, 0)
    named: Floats = shared / np.maximum(np.float32(own) + others, np.float32(_EPSILON))
    return named


def _words(stem: str) -> list[str]:
    """Return the words that a name is made of, without those that say that it is a test."""
    whole, *parts = code_rules().token(stem).posted or ("",)
    return [word for word in dict.fromkeys(parts or [whole]) if word not in _TEST_WORDS]
