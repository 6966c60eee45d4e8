"""Postings of the newest rows, cheap to extend, also in the form of a *run*.

A run is plain bytes, with numbers in the form that this machine has in memory. The process that parsed the
documents makes it; `runs` checks it. This module does not need numpy.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import msgspec

from greenroom.actors.content.text.analyze import current_rules
from greenroom.actors.content.text.words import TextRules
from greenroom.actors.search.index.document import FIELDS, Document, Field, analyse
from greenroom.runtime import Slices


class Terms(msgspec.Struct, frozen=True, array_like=True):
    """The terms of one field of several rows, and where they occur.

    Attributes:
        ends: For each term, where its postings end (uint32).
        postings: A row, shifted by 16 bits, plus the term's frequency there (uint64); in order of rows.
    """

    terms: list[str]
    ends: bytes
    postings: bytes


class Run(msgspec.Struct, frozen=True, array_like=True):
    """The terms of several rows, counted from 0."""

    rules: str
    flags: bytes
    fields: dict[str, Terms]


class Part(NamedTuple):
    """Rows that differ only in ids and terms; ``like`` has all else."""

    ids: Sequence[int]
    like: Document


BLOCK = 4_096
"""A block of the vocabulary has at most this many terms, and is sorted without a pause (1 ms)."""
MOST_TIMES = 2**16 - 1
"""The highest frequency of a term in one row."""
_NEW_TERM_BYTES = 148  # a dictionary entry, a string's header, an integer and a list entry
_ARRAY_BYTES = 100
_RUN = 4_096  # terms sorted without a pause (1 ms)


class Memtable:
    """Postings by field and term: a shifted row plus the frequency of the term.

    Attributes:
        fields: A term with one posting, like half of a vocabulary, has the posting itself; other terms have
            an array.
    """

    __slots__ = ("_blocks", "fields", "postings", "resident_bytes", "size")

    def __init__(self) -> None:
        self.fields: dict[Field, dict[str, int | array[int]]] = {field: {} for field in FIELDS}
        self._blocks: dict[Field, list[list[str]]] = {field: [] for field in FIELDS}
        self.size = 0
        self.postings = 0
        self.resident_bytes = 0

    def post(self, field: Field, row: int, counts: Iterable[tuple[str, int]]) -> int:
        """Post a row, not lower than earlier rows; return how many occurrences count."""
        terms = self.fields[field]
        total = grown = 0
        for term, count in counts:
            times = min(count, MOST_TIMES)
            total += times
            posting = row << 16 | times
            known = terms.get(term)
            if isinstance(known, array):
                known.append(posting)
                grown += 8
            elif known is None:
                terms[term] = posting
                grown += _NEW_TERM_BYTES + len(term)
            else:
                terms[term] = array("Q", (known, posting))
                grown += _ARRAY_BYTES
            self.postings += 1
        self.resident_bytes += grown
        return total

    def find(self, field: Field, term: str) -> array[int] | None:
        """Return the postings of ``term`` in order, or None."""
        known = self.fields[field].get(term)
        return array("Q", (known,)) if isinstance(known, int) else known

    def count(self, field: Field, term: str) -> int:
        """Return how many rows hold ``term``."""
        known = self.fields[field].get(term)
        return len(known) if isinstance(known, array) else int(known is not None)

    def most_frequent(self, field: Field, most: int) -> list[str]:
        """Return the terms that most rows hold."""
        return heapq.nlargest(most, self.fields[field], key=lambda term: self.count(field, term))

    def vocabulary(self, field: Field) -> Iterator[list[str]]:
        """Yield the terms of a field in sorted blocks, which are read-only."""
        terms, blocks = self.fields[field], self._blocks[field]
        for place, start in enumerate(range(0, len(terms), BLOCK)):
            if place == len(blocks):
                blocks.append([])
            block = blocks[place]
            known, all_of_it = len(block), min(BLOCK, len(terms) - start)
            if known < all_of_it:  # new terms are at the end of a dictionary
                block += islice(terms, start + known, start + all_of_it)
                block.sort()
            yield block

    def pack(self) -> Slices[dict[str, Terms]]:
        """Return the sorted terms and postings of each field."""
        found: dict[str, Terms] = {}
        for field, postings in self.fields.items():
            if not postings:
                continue
            terms = yield from _sort(postings)
            every, ends = array("Q"), array("I")
            for place, term in enumerate(terms):
                known = postings[term]
                if isinstance(known, int):
                    every.append(known)
                else:
                    every.extend(known)
                ends.append(len(every))
                if not place % 256:
                    yield
            found[field] = Terms(terms, ends.tobytes(), every.tobytes())
        return found


def run_of(documents: Iterable[Document], rules: TextRules | None = None) -> Slices[Run]:
    """Return the run of documents that get consecutive rows."""
    rules = rules or current_rules()
    memtable = Memtable()
    flags = bytearray()
    for row, document in enumerate(documents):
        analysed = yield from analyse(document, rules)
        flags.append(analysed.flags)
        for field, counts in analysed.counts.items():
            memtable.post(field, row, counts.items())
            yield
    fields = yield from memtable.pack()
    return Run(rules.name, bytes(flags), fields)


def _sort(terms: Iterable[str]) -> Slices[list[str]]:
    """Sort ``terms`` in slices; a million at once would take 0.5 s."""
    remaining = iter(terms)
    runs: list[list[str]] = []
    while run := list(islice(remaining, _RUN)):
        run.sort()
        runs.append(run)
        yield
    if len(runs) == 1:
        return runs[0]
    merged = heapq.merge(*runs)
    found: list[str] = []
    while step := list(islice(merged, _RUN)):
        found += step
        yield
    return found
