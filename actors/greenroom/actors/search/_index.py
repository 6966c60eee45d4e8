"""The index that a session keeps in memory, and the search over it."""

from __future__ import annotations

import sys
from array import array
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from greenroom.actors.search._ranking import Query, Ranking, phrase_key
from greenroom.actors.search._shelf import Shelf
from greenroom.actors.search._text import asks, stretches, tokens
from greenroom.actors.search._view import View

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable

    from greenroom.runtime import Slices

_STRETCH = 2_048  # characters prepared without a pause (0.5 ms; 5 ms if each is one of the worst)
_POSTED = 1_024  # terms posted without a pause (0.5 ms)
_ROW_BYTES = 40  # a row's slots in the lists and arrays


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """What to look for, and among which messages.

    Attributes:
        text: The query as typed.
        shelves: The visibility classes that the asker may see; unknown ones are empty.
        oldest_id: Older messages do not exist for this search.
        threshold: Least score of a match, 0-100.
        limit: Most matches wanted.
        metadata: Whether the metadata's values are searched too.
    """

    text: str
    shelves: Collection[Hashable]
    oldest_id: int = 0
    threshold: float = 60.0
    limit: int = 10
    metadata: bool = True


class Match(NamedTuple):
    """One message found.

    Attributes:
        id: The message's id.
        score: 0-100, two decimals; 100 is the query as a phrase.
    """

    id: int
    score: float


class SearchIndex:
    """Messages of one session, prepared for searching.

    Each message stands on one *shelf*, its visibility class. A search looks at the
    shelves that it is given, from an oldest id on, and its result is what an index
    of these messages alone would give.
    """

    def __init__(self) -> None:
        """Make an empty index."""
        self._shelves: dict[Hashable, Shelf] = {}
        self._ids = array("Q")
        self._texts: list[str] = []
        self._metadata: list[str] = []
        self._asking = bytearray()
        self._key_bytes = 0

    def __len__(self) -> int:
        """Return the number of messages."""
        return len(self._ids)

    def add(self, id: int, shelf: Hashable, sender: str, content: str, metadata: str = "") -> None:
        """Add one message; a shelf's message of the same id stays as it is.

        Args:
            id: 0 to 2**64 - 1, greater for newer messages. Any order is correct; newest last and
                newest first are fast.
            shelf: The visibility class.
            sender: The sender's name.
            content: The text.
            metadata: The metadata's values as text, see `metadata_text`.
        """
        for _ in self.add_in_slices(id, shelf, sender, content, metadata, _never):
            pass  # pragma: no cover - it never yields

    def add_in_slices(
        self,
        id: int,
        shelf: Hashable,
        sender: str,
        content: str,
        metadata: str,
        slice_over: Callable[[], bool],
    ) -> Slices[None]:
        """Add one message that may be long; yields when ``slice_over`` says so, see `add`.

        Nothing else may be done with the index before the generator has returned.
        """
        text, terms = yield from _prepare(content, slice_over)
        values, value_terms = yield from _prepare(metadata, slice_over)
        names = tokens(sender)
        name = tuple(term for token in names for term, _ in token.terms)
        terms.update(*(token.posted for token in names))

        row = len(self._ids)
        self._ids.append(id)
        place = self._shelves.get(shelf) or self._shelves.setdefault(shelf, Shelf(self._ids))
        if not place.place(row):
            self._ids.pop()
            return
        # The sender stands before the text, behind a mark that no phrase contains.
        self._texts.append(f" {phrase_key(names)} \n {text} ")
        self._metadata.append(f" {values} " if values else "")
        self._asking.append(asks(content))
        place.sign(row, name)
        self._key_bytes += _ROW_BYTES + sys.getsizeof(self._texts[row])
        if values:
            self._key_bytes += sys.getsizeof(self._metadata[row])
        for field, unposted in ((place.text, iter(terms)), (place.metadata, iter(value_terms))):
            while step := list(islice(unposted, _POSTED)):
                field.add(row, step)
                if slice_over():
                    yield

    def resident_bytes(self) -> int:
        """Return an estimate of the memory that the index holds, in bytes."""
        return self._key_bytes + sum(shelf.resident_bytes() for shelf in self._shelves.values())

    def search(self, request: SearchRequest, slice_over: Callable[[], bool]) -> Slices[list[Match]]:
        """Return the matches, best first; yields when ``slice_over`` says so.

        The index must not be added to before the generator has returned.
        """
        shelves = [self._shelves[shelf] for shelf in set(request.shelves) if shelf in self._shelves]
        view = View(shelves, metadata=request.metadata, ids=self._ids, oldest_id=request.oldest_id)
        yield from view.fill(slice_over)
        keys = [self._texts, self._metadata] if request.metadata else [self._texts]
        ranking = Ranking(view, Query.read(request.text), keys, self._asking, slice_over)
        best = yield from ranking.best(request.threshold, request.limit)
        return [Match(self._ids[row], score) for score, row in best]


def _never() -> bool:
    return False


def _prepare(text: str, slice_over: Callable[[], bool]) -> Slices[tuple[str, set[str]]]:
    """Return the phrase key and the distinct terms of ``text``."""
    pieces: list[str] = []
    terms: set[str] = set()
    for stretch in stretches(text, _STRETCH):
        found = tokens(stretch)
        pieces.append(phrase_key(found))
        terms.update(*[posted for _, _, posted in found])
        if slice_over():
            yield
    return " ".join(pieces), terms
