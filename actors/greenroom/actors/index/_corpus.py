"""The index in memory: what ranking reads. It knows nothing of actors and records."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from greenroom.actors.index._columns import Columns, Names
from greenroom.actors.index._document import FOREVER, NEVER, NO_POSITION, Field, analyse
from greenroom.actors.index._order import Neighbours, conversation_order, neighbours
from greenroom.actors.index._tail import Postings, Tail
from greenroom.actors.index._vectors import Matrix

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from greenroom.actors.index._document import Analysed, Document, Pace
    from greenroom.runtime import Slices

BLOCK = 4_096
"""Terms of one block of the vocabulary, at most."""
_POSTED = 1_024  # terms posted without a pause (0.5 ms)
_NO_ROWS = np.empty(0, np.int32)
_NO_TIMES = np.empty(0, np.uint16)


class Corpus:
    """Rows 0..size-1 in order of insertion. A removed row is not ``alive`` until rows are numbered anew.

    All arrays are views: they are right until the corpus changes, and nobody may write to them.

    Attributes:
        generation: Grows with every change, so that what was made of the corpus can be kept.
    """

    def __init__(self) -> None:
        """Make an empty corpus."""
        self.generation = 0
        self._columns = Columns()
        self._shelves: Names[Hashable] = Names()
        self._namespaces: Names[str] = Names()
        self._authors: Names[str] = Names()
        self._kinds: Names[str] = Names()
        self._conversations: Names[str] = Names()
        self._tail = Tail()
        self._matrices: dict[str, Matrix] = {}
        self._row_of: dict[int, int] = {}
        self._order: tuple[int, npt.NDArray[np.int32]] | None = None
        self._neighbours: tuple[int, Neighbours] | None = None
        self.fetch_tokens: Callable[[str, int], npt.NDArray[np.int8] | None] | None = None
        """Brings a memory's token vectors from where they are kept, by space and id."""

    # -- writing -----------------------------------------------------------

    def add(self, document: Document, pace: Pace) -> Slices[int]:
        """Analyse and add a document; returns its row. Yields when ``pace`` says so."""
        analysed = yield from analyse(document, pace)
        return (yield from self.add_analysed(document, analysed, pace))

    def add_analysed(self, document: Document, analysed: Analysed, pace: Pace) -> Slices[int]:
        """Add a document that was analysed before; returns its row. Yields when ``pace`` says so."""
        row = self._add_row(document, analysed)
        for field, counts in analysed.counts.items():
            remaining = iter(counts.items())
            total = 0
            while step := list(islice(remaining, _POSTED)):
                total += self._tail.post(field, row, step)
                if pace():
                    yield
            self._columns.arrays[f"length.{field}"][row] = min(total, 2**32 - 1)
        return row

    def remove(self, id: int) -> bool:
        """Mark a memory's row as dead; False if there is none."""
        row = self._row_of.pop(id, None)
        if row is None:
            return False
        self._columns.arrays["alive"][row] = False
        self.generation += 1
        return True

    def change(self, id: int, values: Mapping[str, Any]) -> bool:
        """Change columns of a memory's row; False if there is none."""
        row = self._row_of.get(id)
        if row is None:
            return False
        for name, value in values.items():
            self._columns.arrays[name][row] = value
        self.generation += 1
        return True

    def set_vectors(
        self,
        space: str,
        ids: Sequence[int],
        values: npt.NDArray[np.int8],
        scales: npt.NDArray[np.float32],
    ) -> None:
        """Give the memories ``ids`` their vectors, one a row of ``values``; unknown ids are passed over."""
        rows = np.array([self._row_of.get(number, -1) for number in ids], np.intp)
        known = rows >= 0
        matrix = self._matrices.get(space)
        if matrix is None:
            matrix = self._matrices[space] = Matrix(values.shape[1])
        matrix.set(rows[known], values[known], scales[known])
        self.generation += 1

    def drop_vectors(self, space: str) -> None:
        """Forget the vectors of a space."""
        self._matrices.pop(space, None)
        self.generation += 1

    # -- rows --------------------------------------------------------------

    @property
    def size(self) -> int:
        """The number of rows, dead ones included."""
        return self._columns.size

    def row(self, id: int) -> int | None:
        """Return the row of a memory, or None."""
        return self._row_of.get(id)

    def column(self, name: str) -> npt.NDArray[Any]:
        """Return a column by its name in `_columns.TYPES`."""
        return self._columns.arrays[name][: self._columns.size]

    @property
    def ids(self) -> npt.NDArray[np.uint64]:
        """The memories' ids."""
        return self.column("id")

    @property
    def alive(self) -> npt.NDArray[np.bool_]:
        """Whether a row's memory is still there."""
        return self.column("alive")

    @property
    def superseded(self) -> npt.NDArray[np.bool_]:
        """Whether another memory took its place."""
        return self.column("superseded")

    @property
    def shelf(self) -> npt.NDArray[np.int32]:
        """Numbers of `shelves`."""
        return self.column("shelf")

    @property
    def shelves(self) -> Sequence[Any]:
        """The visibility classes."""
        return self._shelves.names

    @property
    def namespace(self) -> npt.NDArray[np.int32]:
        """Numbers of `namespaces`."""
        return self.column("namespace")

    @property
    def namespaces(self) -> Sequence[str]:
        """The namespaces."""
        return self._namespaces.names

    @property
    def author(self) -> npt.NDArray[np.int32]:
        """Numbers of `authors`."""
        return self.column("author")

    @property
    def authors(self) -> Sequence[str]:
        """The authors' names."""
        return self._authors.names

    @property
    def kind(self) -> npt.NDArray[np.int32]:
        """Numbers of `kinds`."""
        return self.column("kind")

    @property
    def kinds(self) -> Sequence[str]:
        """The kinds of memories."""
        return self._kinds.names

    @property
    def conversation(self) -> npt.NDArray[np.int32]:
        """Numbers of `conversations`, -1 for none."""
        return self.column("conversation")

    @property
    def conversations(self) -> Sequence[str]:
        """The conversations."""
        return self._conversations.names

    @property
    def position(self) -> npt.NDArray[np.int64]:
        """Places in the conversation as given, `NO_POSITION` for none."""
        return self.column("position")

    @property
    def created(self) -> npt.NDArray[np.int64]:
        """When the entry was first written, in microseconds since 1970."""
        return self.column("created")

    @property
    def updated(self) -> npt.NDArray[np.int64]:
        """When this version was written, in microseconds since 1970."""
        return self.column("updated")

    @property
    def expires(self) -> npt.NDArray[np.int64]:
        """From when on it is no longer there, in microseconds since 1970; `FOREVER` for never."""
        return self.column("expires")

    @property
    def last_used(self) -> npt.NDArray[np.int64]:
        """When it was last used, in microseconds since 1970; `NEVER` for never."""
        return self.column("last_used")

    @property
    def importance(self) -> npt.NDArray[np.float32]:
        """0 to 1."""
        return self.column("importance")

    @property
    def rating(self) -> npt.NDArray[np.float32]:
        """-1 to 1, 0 for none."""
        return self.column("rating")

    @property
    def uses(self) -> npt.NDArray[np.uint32]:
        """How often it was used."""
        return self.column("uses")

    @property
    def flags(self) -> npt.NDArray[np.uint8]:
        """QUESTION and TEMPORAL."""
        return self.column("flags")

    def lengths(self, field: Field) -> npt.NDArray[np.uint32]:
        """Return the number of posted occurrences of a field, by row."""
        return self.column(f"length.{field}")

    # -- neighbours --------------------------------------------------------

    def neighbours(self, mask: npt.NDArray[np.bool_]) -> Neighbours:
        """Return who stands next to whom among the rows of ``mask`` only, and each row's place."""
        return neighbours(self._ordered(), self.conversation, mask)

    @property
    def previous(self) -> npt.NDArray[np.int32]:
        """The living row before each in its conversation, -1 for none."""
        return self._living().previous

    @property
    def following(self) -> npt.NDArray[np.int32]:
        """The living row after each in its conversation, -1 for none."""
        return self._living().following

    def _living(self) -> Neighbours:
        if self._neighbours is None or self._neighbours[0] != self.generation:
            self._neighbours = self.generation, self.neighbours(self.alive)
        return self._neighbours[1]

    def _ordered(self) -> npt.NDArray[np.int32]:
        if self._order is None or self._order[0] != self.size:
            self._order = self.size, conversation_order(self.conversation, self.position)
        return self._order[1]

    # -- terms -------------------------------------------------------------

    def postings(self, field: Field, term: str) -> Postings:
        """Return the rows that hold ``term``, ascending, and how often; dead rows may be among them."""
        found = self._tail.postings(field, term)
        return (_NO_ROWS, _NO_TIMES) if found is None else found

    def vocabulary(self, field: Field) -> Iterator[Sequence[str]]:
        """Yield the terms of a field in blocks; a term may come twice, and may have no living row."""
        remaining = iter(self._tail.fields[field])
        while block := list(islice(remaining, BLOCK)):
            yield block

    # -- vectors -----------------------------------------------------------

    def spaces(self) -> list[str]:
        """Return the spaces in which rows have vectors."""
        return list(self._matrices)

    def vectors(
        self, space: str
    ) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32], npt.NDArray[np.bool_]] | None:
        """Return the vectors by row, their scales, and which rows have one; None for an unknown space."""
        matrix = self._matrices.get(space)
        return None if matrix is None else matrix.view(self.size)

    def token_vectors(self, space: str, rows: Sequence[int]) -> list[npt.NDArray[np.int8] | None]:
        """Return the vectors of each row's tokens, or None for a row that has none."""
        fetch = self.fetch_tokens
        return [None if fetch is None else fetch(space, int(self.ids[row])) for row in rows]

    def without_vectors(self, space: str, limit: int) -> list[int]:
        """Return ids of living memories that have no vector in ``space``, oldest first."""
        alive = self.alive
        matrix = self._matrices.get(space)
        missing = alive if matrix is None else alive & ~matrix.view(self.size)[2]
        return [int(number) for number in self.ids[np.flatnonzero(missing)[:limit]]]

    def resident_bytes(self) -> int:
        """Return an estimate of the memory in use, in bytes."""
        vectors = sum(matrix.resident_bytes(self.size) for matrix in self._matrices.values())
        return self._columns.resident_bytes() + self._tail.resident_bytes + vectors + 100 * self.size

    def _add_row(self, document: Document, analysed: Analysed) -> int:
        known = self._row_of.get(document.id)
        assert known is None, f"memory {document.id} is in the index already"
        conversation = document.conversation
        values: dict[str, Any] = {
            "id": document.id,
            "created": document.created_at,
            "updated": document.updated_at,
            "position": NO_POSITION if document.position is None else document.position,
            "shelf": self._shelves.number(document.shelf),
            "namespace": self._namespaces.number(document.namespace),
            "author": self._authors.number(document.author),
            "kind": self._kinds.number(document.kind),
            "conversation": -1 if conversation is None else self._conversations.number(conversation),
            "flags": analysed.flags,
            "length.text": 0,
            "length.key": 0,
            "length.tags": 0,
            "length.author": 0,
            "length.labels": 0,
            "alive": True,
            "superseded": document.superseded,
            "importance": document.importance,
            "rating": document.rating,
            "uses": document.uses,
            "last_used": NEVER if document.last_used is None else document.last_used,
            "expires": FOREVER if document.expires_at is None else document.expires_at,
        }
        row = self._row_of[document.id] = self._columns.append(values.items())
        self.generation += 1
        return row
