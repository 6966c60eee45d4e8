"""Reads over shared indexes, outside any actor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from greenroom.runtime import _rows
from greenroom.runtime._address import Address
from greenroom.runtime._errors import UnknownKindError
from greenroom.runtime._store import ACTORS, INDEXES

if TYPE_CHECKING:
    from greenroom.runtime._actor import Slices
    from greenroom.runtime._context import Domain
    from greenroom.runtime._reading import Reading

R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")


class IndexReader:
    """What a query reads: committed rows of the shared indexes, as they were when it began.

    Attributes:
        principal: Who asks.
        now: The wall clock in microseconds since 1970 UTC.
    """

    def __init__(self, domain: Domain, reading: Reading, principal: Any, now: int) -> None:
        self._domain = domain
        self._reading = reading
        self.principal = principal
        self.now = now

    def slice_over(self) -> bool:
        """Return whether a generator query should yield now, so that others get the event loop."""
        return self._domain.slice_over()

    def get(self, index: str, sort_key: bytes, address: Address, of: type[T]) -> T | None:
        """Return the row that the actor at ``address`` wrote at ``sort_key``, or None."""
        self._check(index)
        payload = self._reading.get(INDEXES, _rows.row_key(index, sort_key, _rows.address_tag(address)))
        return None if payload is None else _rows.decode(_rows.decode(payload, _rows.RowRecord).value, of)

    def rows(
        self,
        index: str,
        of: type[T],
        *,
        prefix: bytes = b"",
        start: bytes | None = None,
        reverse: bool = False,
    ) -> Iterator[_rows.Row[T]]:
        """Yield the rows whose sort key begins with ``prefix``, in the order of sort keys.

        Args:
            index: The name of the index.
            of: The type of the rows' values.
            prefix: What the sort keys begin with.
            start: The first sort key wanted, inclusive; with ``reverse`` the highest.
            reverse: From the highest sort key down.
        """
        self._check(index)
        name = _rows.index_prefix(index)
        bound = None if start is None else name + _rows.sortable(start)
        if bound is not None and reverse:
            bound += _rows.END_OF_SORT_KEY + b"\xff" * _rows.TAG_BYTES
        stored = self._reading.scan(INDEXES, name + _rows.sortable(prefix), start=bound, reverse=reverse)
        for key, payload in stored:
            record = _rows.decode(payload, _rows.RowRecord)
            value = _rows.decode(record.value, of)
            yield _rows.Row(_rows.sort_key_of(index, key), Address(record.kind, record.key), value)

    def addresses(self, kind: str) -> Iterator[Address]:
        """Yield the actors of a kind that have records of their own, in the order of their keys.

        They are looked up one by one among the records, so this is for an operator's rare questions.
        """
        prefix = start = kind.encode() + b"\0"
        while (found := next(self._reading.keys(ACTORS, prefix, start=start), None)) is not None:
            key = found[len(prefix) :].partition(b"\0")[0]
            yield Address(kind, key.decode())
            start = prefix + key + b"\1"

    def _check(self, index: str) -> None:
        if index not in self._domain.indexes:
            raise UnknownKindError(f"no index {index!r} was given to open_runtime")


class Query(msgspec.Struct, Generic[R_co], frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A read over shared indexes whose answer is an ``R``: subclass ``Query[int]`` and define `run`.

    It sees what is committed. Whose rows the asker may see is the query's own affair.
    """

    def run(self, reader: IndexReader) -> R_co | Slices[R_co]:
        """Return the answer, or be a generator that yields whenever `IndexReader.slice_over` says so."""
        raise NotImplementedError(f"{type(self).__name__} does not define run()")
