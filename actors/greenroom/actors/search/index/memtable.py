"""Postings of the newest rows, cheap to add to, and as a *run*: plain bytes, which another process may make.

Nothing here needs numpy.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterable, Iterator
from itertools import islice

from greenroom.actors.content.text.analyze import current_rules
from greenroom.actors.content.text.words import TextRules
from greenroom.actors.search.index.document import FIELDS, Document, Field, ShouldYield, analyse
from greenroom.actors.search.index.prepared_terms import Run, Terms
from greenroom.runtime import Slices

BLOCK = 4_096
"""Terms of one block of the vocabulary, at most; it is put in order without a pause (1 ms)."""
MOST_TIMES = 2**16 - 1
"""How often a term counts in one row at most."""
_NEW_TERM_BYTES = 148  # a dictionary entry, a string's header, an integer and a place in order
_ARRAY_BYTES = 100
_RUN = 4_096  # terms sorted without a pause (1 ms)


class Memtable:
    """Postings by field and term; a posting is a row, shifted, and how often the term occurs there.

    Attributes:
        fields: Half of a vocabulary occurs once: such a term has its posting itself, any other has an array.
        size: Rows, which are counted from the first of the tail.
        postings: Postings of all fields.
    """

    __slots__ = ("_blocks", "fields", "postings", "resident_bytes", "size")

    def __init__(self) -> None:
        self.fields: dict[Field, dict[str, int | array[int]]] = {field: {} for field in FIELDS}
        self._blocks: dict[Field, list[list[str]]] = {field: [] for field in FIELDS}
        self.size = 0
        self.postings = 0
        self.resident_bytes = 0

    def post(self, field: Field, row: int, counts: Iterable[tuple[str, int]]) -> int:
        """Post ``row``, which is no lower than the rows before; returns the occurrences that count."""
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
        """Yield the terms of a field in blocks, each in order; they are read-only."""
        terms, blocks = self.fields[field], self._blocks[field]
        for place, start in enumerate(range(0, len(terms), BLOCK)):
            if place == len(blocks):
                blocks.append([])
            block = blocks[place]
            known, all_of_it = len(block), min(BLOCK, len(terms) - start)
            if known < all_of_it:  # new terms are the last of a dictionary
                block += islice(terms, start + known, start + all_of_it)
                block.sort()
            yield block

    def packed(self, should_yield: ShouldYield) -> Slices[dict[str, Terms]]:
        """Return what each field has, in order; yields when ``should_yield()``."""
        found: dict[str, Terms] = {}
        for field, postings in self.fields.items():
            if not postings:
                continue
            terms = yield from _in_order(postings, should_yield)
            every, ends = array("Q"), array("I")
            for place, term in enumerate(terms):
                known = postings[term]
                if isinstance(known, int):
                    every.append(known)
                else:
                    every.extend(known)
                ends.append(len(every))
                if not place % 256 and should_yield():
                    yield
            found[field] = Terms(terms, ends.tobytes(), every.tobytes())
        return found


def run_of(
    documents: Iterable[Document], should_yield: ShouldYield, rules: TextRules | None = None
) -> Slices[Run]:
    """Return the terms of documents that get neighbouring rows; yields when ``should_yield()``.

    Args:
        documents: These.
        should_yield: Whether to yield.
        rules: How texts become terms; the current ones for None.
    """
    rules = rules or current_rules()
    memtable = Memtable()
    flags = bytearray()
    for row, document in enumerate(documents):
        analysed = yield from analyse(document, should_yield, rules)
        flags.append(analysed.flags)
        for field, counts in analysed.counts.items():
            memtable.post(field, row, counts.items())
            if should_yield():
                yield
    fields = yield from memtable.packed(should_yield)
    return Run(rules.name, bytes(flags), fields)


def _in_order(terms: Iterable[str], should_yield: ShouldYield) -> Slices[list[str]]:
    """Return ``terms`` sorted; sorting all at once would take 0.5 s for a million."""
    remaining = iter(terms)
    runs: list[list[str]] = []
    while run := list(islice(remaining, _RUN)):
        run.sort()
        runs.append(run)
        if should_yield():
            yield
    if len(runs) == 1:
        return runs[0]
    merged = heapq.merge(*runs)
    found: list[str] = []
    while step := list(islice(merged, _RUN)):
        found += step
        if should_yield():
            yield
    return found
