"""Signals that rank files of source code for a query: their passages, paths and roles.

A passage is found by its text and by the symbols that it defines. A file is found by its best passage, by all
its passages, by its path, and by its role. No signal depends on the other results.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from greenroom.actors.content.text.analyze import code_rules, spans, without_invisible
from greenroom.actors.content.text.words import symbol_name
from greenroom.actors.search.ranking.chunks import FACTORS, Chunks, Group, add_files, group_of, saturate
from greenroom.actors.search.ranking.query import MOST_TERMS, Term
from greenroom.actors.search.ranking.spelling import find_corrections
from greenroom.actors.search.ranking.view import Floats, Rows
from greenroom.runtime import Slices

_LONGEST: Final = 4
"""The most words that may form one name: "bind query params" is BindQueryParams."""
_CHORE: Final = 0.3
_COMMON: Final = """
fix fixes fixed fixing add adds added adding remove removes removed delete improve improves update updates
updated support supports handle handles handled handling implement implements implemented implementation
make makes use uses used using allow allows ensure avoid refactor rename move change changes clean cleanup
issue bug feat chore work works working internally
"""
_CHORES: Final = frozenset(_COMMON.split())
"""Words about the task rather than the source; each has the weight `_CHORE`."""
_TESTS: Final = re.compile(
    r"\b(?:tests?|tested|testing|specs?|mocks?|fixtures?|assertions?|coverage)\b", re.IGNORECASE
)
_ASIDE: Final = re.compile(
    r"\b(?:examples?|samples?|demos?|docs?|documentation|website|www|vendor(?:ed)?|benchmarks?|bench"
    r"|tutorials?|scripts?|tools?|fuzz(?:ing)?|extras?|playground)\b",
    re.IGNORECASE,
)
_MADE: Final = re.compile(
    r"\b(?:dist|bundled|bundles?|minified|vendored)\b|\bgenerated (?:code|files?|sources?)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeQuery:
    """A parsed query.

    Attributes:
        names: Possible names of symbols (see `symbol_name`), each with the share of the query that forms it.
        compounds: The terms of names that several words form.
    """

    terms: Mapping[str, float]
    words: Mapping[str, tuple[str, ...]]
    names: Mapping[str, float]
    compounds: tuple[str, ...]
    speaks_of_tests: bool
    speaks_of_aside: bool
    speaks_of_made: bool

    @classmethod
    def read(cls, text: str) -> CodeQuery:
        """Read a query as it was typed."""
        rules = code_rules()
        spelled = [word for _, _, word in spans(without_invisible(text))]
        tokens = [(word, rules.token(word).posted) for word in spelled[:MOST_TERMS]]
        known = [(word, posted) for word, posted in tokens if posted]
        terms: dict[str, float] = {}
        for word, posted in known:
            counts = _CHORE if word.lower() in _CHORES else 1.0
            for term in posted:
                terms[term] = max(counts, terms.get(term, 0.0))
        names: dict[str, float] = {}
        compounds: dict[str, None] = {}
        for start, (first, _) in enumerate(known):
            if first.lower() not in _CHORES:
                names[symbol_name(first)] = 1 / len(known)
            for end in range(start + 2, min(start + _LONGEST, len(known)) + 1):
                name = symbol_name("".join(word for word, _ in known[start:end]))
                names.setdefault(name, (end - start) / len(known))
                compounds.update(dict.fromkeys(rules.token(name).posted))
        return cls(
            terms=terms,
            words=dict(known),
            names=names,
            compounds=tuple(compounds),
            speaks_of_tests=_TESTS.search(text) is not None,
            speaks_of_aside=_ASIDE.search(text) is not None,
            speaks_of_made=_MADE.search(text) is not None,
        )


_EPSILON: Final = 1e-6


class SourceView(Chunks):
    """The passages, and facts about their files that every query needs."""

    def of_files(self, values: Floats) -> Floats:
        """Return the value of each file, from values that all passages of a file share."""
        found = np.zeros(len(self.corpus.authors), np.float32)
        found[self.corpus.author[self.visible]] = values[self.visible]
        return found

    @cached_property
    def stems(self) -> Floats:
        """The number of terms of each file's stem."""
        return self.of_files(self.field("key"))

    @cached_property
    def sizes(self) -> Floats:
        """The logarithm of the number of each file's words."""
        return np.log1p(self.file_lengths)

    @cached_property
    def roles(self) -> Mapping[str, Floats]:
        """For each role, 1 for the files that have it."""
        kind = self.of_files(self._corpus.kind.astype(np.float32))
        names = self._corpus.kinds
        return {name: (kind == number).astype(np.float32) for number, name in enumerate(names)}

    @cached_property
    def documents(self) -> npt.NDArray[np.uint64]:
        """The number of each file's document."""
        found = np.zeros(len(self.corpus.authors), np.uint64)
        found[self.corpus.author[self.visible]] = self._corpus.numbers[self.visible]
        return found

    def exists(self, path: str) -> bool:
        """Return whether there is a file with a path."""
        number = self._corpus.names["author"].find(path)
        return number is not None and bool(self.file_lengths[number])

    @cached_property
    def no_file(self) -> Floats:
        """A signal of files that is 0 everywhere, read-only."""
        return np.broadcast_to(np.float32(0), len(self.corpus.authors))

    def role(self, name: str) -> Floats:
        """Return 1 for the files that have a role."""
        return self.roles.get(name, self.no_file)


def read_terms(
    view: SourceView, query: CodeQuery
) -> Slices[tuple[list[Group], dict[str, tuple[str, ...]], list[str]]]:
    """Return the query's terms, the replacements of unknown words, and words that stay unknown."""
    known: dict[str, Group] = {}
    for term, counts in query.terms.items():
        group = group_of(view, term, counts=counts)
        if group.chunks:
            known[term] = group
        yield
    corrected: dict[str, tuple[str, ...]] = {}
    unknown: list[str] = []
    for word, terms in query.words.items():
        if not known.keys().isdisjoint(terms):
            continue
        meant = yield from find_corrections(view, Term(terms[0], (), word))
        if meant:
            known[terms[0]] = group_of(view, terms[0], meant, query.terms[terms[0]])
            corrected[word] = tuple(correction.term for correction in meant)
        else:
            unknown.append(word)
    return list(known.values()), corrected, unknown


def score_passages(view: SourceView, groups: Sequence[Group]) -> Slices[Floats]:
    """Return the BM25 score of each passage, of its text and symbols."""
    scores = np.zeros(len(view.visible), np.float32)
    for group in groups:
        for field in ("text", "tags"):
            if field in group.found:
                rows, times = group.found[field]
                scores[rows] += np.float32(group.weight) * saturate(
                    times, view.norms(field)[rows], FACTORS[field]
                )
                yield
    return scores


def file_signals(
    view: SourceView,
    query: CodeQuery,
    groups: Sequence[Group],
    passages: Floats,
) -> Slices[dict[str, Floats]]:
    """Return the signals of each file, by its number; see `weights.CODE_SIGNALS`.

    `code.rank_files` adds what depends on the origin of the strongest files.
    """
    count, author = len(view.corpus.authors), view.corpus.author
    passage = np.zeros(count, np.float32)
    rows = np.flatnonzero(passages)
    np.maximum.at(passage, author[rows], passages[rows])
    spread = np.sqrt(np.bincount(author[rows], passages[rows] ** 2, count)).astype(np.float32)
    yield
    path, stem, whole = yield from _by_term(view, groups)
    compound, defined = yield from _by_name(view, query)
    return {
        "passage": passage,
        "spread": spread,
        "file": whole,
        "path": path,
        "stem": stem,
        "compound": compound,
        "defined": defined,
        "size": view.sizes,
        "test": view.no_file if query.speaks_of_tests else view.role("test"),
        "aside": view.no_file if query.speaks_of_aside else view.role("aside"),
        "prose": view.role("text"),
        "made": view.no_file,
        "copy": view.no_file,
    }


def _by_term(view: SourceView, groups: Sequence[Group]) -> Slices[tuple[Floats, Floats, Floats]]:
    """Return the signals `path`, `stem` and `file`."""
    path, stem, named, whole = (np.zeros(len(view.corpus.authors), np.float32) for _ in range(4))
    for group in groups:
        if "author" in group.found:
            path[_files(view, group.found["author"][0])] += np.float32(group.weight)
        if "key" in group.found:
            files = _files(view, group.found["key"][0])
            stem[files] += np.float32(group.weight)
            named[files] += 1
        if "text" in group.found:
            add_files(view, whole, group)
        yield
    # A word that a file's name has and the query lacks counts as a word of middling rarity.
    middling = sum(group.weight for group in groups) / max(1, len(groups))
    more = np.float32(middling) * np.maximum(view.stems - named, 0)
    return path, stem / np.maximum(stem + more, np.float32(_EPSILON)), whole


def _by_name(view: SourceView, query: CodeQuery) -> Slices[tuple[Floats, Floats]]:
    """Return the signals `compound` and `defined`."""
    compound, defined = (np.zeros(len(view.corpus.authors), np.float32) for _ in range(2))
    for term in query.compounds:
        compound[_files(view, view.postings("key", term)[0])] = 1
    for name, share in query.names.items():
        files = _files(view, view.postings("labels", name)[0])
        defined[files] = np.maximum(defined[files], np.float32(share))
        yield
    return compound, defined


def _files(view: SourceView, rows: Rows) -> Rows:
    """Return the files of some rows, each once."""
    return np.unique(view.corpus.author[rows])
