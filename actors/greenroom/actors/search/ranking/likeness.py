"""Similar files of source code: by their most characteristic terms, and by their names.

The terms are looked up like the terms of a query, so a file costs no more than a long question. The cosine
over all terms finds hardly more, but looks up each term of the file (docs/code-ranking.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from greenroom.actors.content.text.analyze import code_rules, spans, stretches
from greenroom.actors.search.index.source_code import stem_of
from greenroom.actors.search.ranking.chunks import FACTORS, add_files, best_places, group_of
from greenroom.actors.search.ranking.code_signals import SourceView
from greenroom.actors.search.ranking.lexical import FEW, idf
from greenroom.actors.search.ranking.sums import weigh
from greenroom.actors.search.ranking.view import Floats, Mask
from greenroom.actors.search.ranking.weights import LIKENESS_WEIGHTS
from greenroom.runtime import Slices

TELLING: Final = 25
"""The number of a file's terms that are looked up."""
SHARED: Final = 8
"""The most shared terms that are returned."""
_STRETCH: Final = 20_000
"""This many characters are read without a pause."""
_EPSILON: Final = 1e-9
_TEST_WORDS: Final = frozenset({"test", "tests", "spec"})


class TermCount(NamedTuple):
    """A term of a file: its spelling, frequency, and number of passages."""

    word: str
    times: int
    passages: int


def likeness_of(signals: Mapping[str, float]) -> float:
    """Return the similarity of two files, 0 to 1."""
    return float(sum(part for _, part in weigh(signals, LIKENESS_WEIGHTS)))


def count_terms(passages: Iterable[str]) -> Slices[dict[str, TermCount]]:
    """Count the terms of a file."""
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
            yield
        rows.update(here)
    return {term: TermCount(words[term], count, rows[term]) for term, count in times.items()}


class LikeFile(NamedTuple):
    """A similar file: its path, its signals, and the characteristic words that both files have."""

    path: str
    signals: Mapping[str, float]
    shared: Sequence[str]


def find_like_files(
    view: SourceView,
    path: str,
    terms: Mapping[str, TermCount],
    *,
    limit: int,
    below: Mask | None = None,
) -> Slices[list[LikeFile]]:
    """Return the files most like ``path``, by terms and names, among ``below`` alone."""
    authors = view.corpus.authors
    total = np.zeros(len(authors), np.float32)
    by_term: dict[str, Floats] = {}
    for term in (yield from _characteristic_terms(view, terms)):
        times = terms[term].times
        group = group_of(view, term, counts=times / (times + FACTORS["text"]))
        found = by_term[term] = np.zeros(len(authors), np.float32)
        if "text" in group.found:
            add_files(view, found, group)
        total += found
        yield
    is_other = np.fromiter((each != path for each in authors), np.bool_, len(authors))
    own = total[~is_other].max(initial=np.float32(_EPSILON))
    signals = {"terms": np.minimum(total / own, 1), "name": _name_likeness(view, path)}
    likeness = sum((part for _, part in weigh(signals, LIKENESS_WEIGHTS)), view.no_file)
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
        yield
    return ranked


def _characteristic_terms(view: SourceView, terms: Mapping[str, TermCount]) -> Slices[list[str]]:
    """Return the terms that are frequent here and rare, but present, elsewhere."""
    worth: dict[str, float] = {}
    for term, found in terms.items():
        count = len(view.corpus.postings("text", term)[0])
        if count > found.passages:
            often = found.times / (found.times + FACTORS["text"])
            worth[term] = often * idf(count, max(FEW, view.count))
        yield
    return sorted(worth, key=lambda term: (-worth[term], term))[:TELLING]


def _name_likeness(view: SourceView, path: str) -> Floats:
    """Return the share of the name's words, weighted by rarity, that each file's name has."""
    shared, count = (np.zeros(len(view.corpus.authors), np.float32) for _ in range(2))
    own = 0.0
    for term in _words(stem_of(path)):
        group = group_of(view, term)
        if "key" in group.found:
            files = np.unique(view.corpus.author[group.found["key"][0]])
            weight = idf(len(files), max(FEW, view.files))
            own += weight
            shared[files] += np.float32(weight)
            count[files] += 1
    known = view.stems - (view.stems > 1) - view.role("test")  # the whole name and "test" do not count
    others = np.float32(own / max(1.0, float(count.max(initial=0)))) * np.maximum(known - count, 0)
    named: Floats = shared / np.maximum(np.float32(own) + others, np.float32(_EPSILON))
    return named


def _words(stem: str) -> list[str]:
    """Return the words of a name, without those that mark a test."""
    whole, *parts = code_rules().token(stem).posted or ("",)
    return [word for word in dict.fromkeys(parts or [whole]) if word not in _TEST_WORDS]
