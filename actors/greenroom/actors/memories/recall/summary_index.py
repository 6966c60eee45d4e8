"""The summaries of all namespace roots, in memory, for searches over many of them.

A `SummaryFollower` follows the rows of `storage.directory` and `storage.root_summary` in the owner of the
store: before a search it reads again what changed since the last one. A root's memories in one partition are
a *unit*. Roots and units get ascending numbers, which are never reused. So the visibility of each is computed
once for each reader.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from greenroom.actors.content.text.analyze import current_rules
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.namespaces import MAX_ADDRESS, root_at, tag_of_root
from greenroom.actors.core.auth.policy import MemoryPartition
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.memories.storage import directory, root_summary
from greenroom.actors.memories.storage.directory import NamespaceRow
from greenroom.actors.memories.storage.root_summary import SummaryHeader, SummaryRow, VectorRow
from greenroom.runtime import WAITING, Address, IndexReader, RecordDamagedError, Row, Slices

READERS = 64
"""The number of readers for which visibility is cached."""
_MOST_DEAD = 4_096  # dead units, and half of all, above which everything is loaded anew
_BLOCK = 4_096  # words


class _Known:
    """A root: its summary, and how far its rows were read."""

    __slots__ = ("last", "last_vector", "meta", "name", "number", "units")

    def __init__(self, number: int, name: str) -> None:
        self.number = number
        self.name = name
        self.meta: SummaryHeader | None = None
        self.last = self.last_vector = -1
        self.units: dict[int, int] = {}


class Space:
    """Comparable vectors: the unit, the scale and the values of each."""

    __slots__ = ("dimensions", "scales", "units", "values")

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.units = array("l")
        self.scales = bytearray()
        self.values = bytearray()


class Seen:
    """What one reader may see, by directory row and by partition."""

    def __init__(self) -> None:
        self.listings = bytearray()
        self.partitions = bytearray()


class SummaryIndex:
    """The roots, their units, and the terms, days and vectors of each unit.

    Args:
        number: The number of the last change that the loading reader sees.

    Attributes:
        listing: By root, the number of its directory row, as in `Seen`; -1 for none.
        complete: By root, whether its summary is complete.
        unit_root: By unit, its root; -1 for a dead unit.
        unit_partition: By unit, its partition, as in `Seen`.
        newest: By unit, when its newest memory was made.
        terms: By term, the units that hold it.
        days: By day, the units with a memory made on it.
        spaces: By space, the vectors of units.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self._read: dict[Address, int] = {}
        self._roots: dict[Address, _Known] = {}
        self._by_number: list[_Known] = []
        self._listings: list[NamespaceRow] = []
        self.listing = array("l")
        self.complete = bytearray()
        self._partitions: dict[MemoryPartition, int] = {}
        self._partition_list: list[MemoryPartition] = []
        self.unit_root = array("l")
        self.unit_partition = array("l")
        self.newest = array("q")
        self._dead = 0
        self.terms: dict[str, array[int]] = {}
        self.days: dict[int, array[int]] = {}
        self.spaces: dict[str, Space] = {}
        self._words: list[str] = []
        self._new_words: list[str] = []
        self._readers: OrderedDict[Principal, Seen] = OrderedDict()

    # -- reading rows --------------------------------------------------------

    def load(self, reader: IndexReader) -> Slices[None]:
        """Read all rows, the first time."""
        for listed in directory.rows(reader):
            self._list(listed.address, listed.value)
            yield
        kinds: tuple[tuple[bytes, Any, Callable[[_Known, Any], None]], ...] = (
            (root_summary.META, SummaryHeader, lambda known, row: self._set_meta(known, row.value)),
            (root_summary.PARTS, SummaryRow, self._take),
            (root_summary.ROWS, SummaryRow, self._take),
            (root_summary.CENTROIDS, VectorRow, self._take_vectors),
            (root_summary.VECTORS, VectorRow, self._take_vectors),
        )
        met: list[RecordDamagedError] = []
        for prefix, of, take in kinds:
            for row in reader.rows(root_summary.INDEX, of, prefix=prefix, on_damage=met.append):
                if (known := self._roots.get(row.address)) is not None:
                    take(known, row)
                yield
        for address, known in self._roots.items():
            self._doubt(reader, met, address, known)

    def _doubt(
        self, reader: IndexReader, met: list[RecordDamagedError], address: Address, known: _Known
    ) -> None:
        """Treat a root with a damaged row as one without a summary."""
        if any(reader.is_of(error, address) for error in met):
            self._set_meta(known, None)

    def listed(self, reader: IndexReader, address: Address) -> Slices[NamespaceRow | None]:
        """Return the directory row of one actor; None for none."""
        known = self._roots.get(address)
        if known is not None:
            return directory.row_of(reader, known.name, address)
        if len(address.key) < MAX_ADDRESS:
            return directory.row_of(reader, root_at(address.key), address)
        for row in directory.rows(reader):  # the address has an abridged name
            if row.address == address:
                return row.value
            yield
        return None

    def has_read(self, address: Address, number: int) -> bool:
        """Return whether an actor's rows up to a change were read."""
        return max(self._number, self._read.get(address, 0)) >= number

    def read_again(
        self, reader: IndexReader, address: Address, listed: NamespaceRow | None, number: int
    ) -> None:
        """Read an actor's new rows, up to the change with this number."""
        self._read[address] = number
        known = self._roots.get(address)
        if listed is None:
            if known is not None:
                self._drop_units(known)
                self._set_meta(known, None)
                self.listing[known.number] = -1
            return
        tag = tag_of_root(listed.root)
        known = self._list(address, listed)
        met: list[RecordDamagedError] = []
        try:
            meta = reader.get(root_summary.INDEX, root_summary.META + tag, address, SummaryHeader)
        except RecordDamagedError:
            meta = None
        if meta != known.meta:
            self._drop_units(known)
            self._set_meta(known, meta)
            parts, centroids = root_summary.PARTS + tag, root_summary.CENTROIDS + tag
            for row in reader.rows(root_summary.INDEX, SummaryRow, prefix=parts, on_damage=met.append):
                self._take(known, row)
            for vectors in reader.rows(root_summary.INDEX, VectorRow, prefix=centroids, on_damage=met.append):
                self._take_vectors(known, vectors)
        after = -1 if meta is None else meta.upto
        start = root_summary.ROWS + tag + (max(known.last, after) + 1).to_bytes(8)
        own = root_summary.ROWS + tag
        for row in reader.rows(root_summary.INDEX, SummaryRow, prefix=own, start=start, on_damage=met.append):
            self._take(known, row)
        start = root_summary.VECTORS + tag + (max(known.last_vector, after) + 1).to_bytes(8)
        for vectors in reader.rows(
            root_summary.INDEX,
            VectorRow,
            prefix=root_summary.VECTORS + tag,
            start=start,
            on_damage=met.append,
        ):
            self._take_vectors(known, vectors)
        self._doubt(reader, met, address, known)

    def _list(self, address: Address, row: NamespaceRow) -> _Known:
        known = self._roots.get(address)
        if known is None:
            known = self._roots[address] = _Known(len(self._by_number), row.root)
            self._by_number.append(known)
            self.listing.append(-1)
            self.complete.append(False)
        at = self.listing[known.number]
        if at < 0 or self._listings[at] != row:
            self.listing[known.number] = len(self._listings)
            self._listings.append(row)
        return known

    def _set_meta(self, known: _Known, meta: SummaryHeader | None) -> None:
        known.meta = meta
        self.complete[known.number] = meta is not None and meta.rules == current_rules().name

    def _drop_units(self, known: _Known) -> None:
        for unit in known.units.values():
            self.unit_root[unit] = -1
        self._dead += len(known.units)
        known.units = {}
        known.last = known.last_vector = -1

    def _take(self, known: _Known, row: Row[SummaryRow]) -> None:
        """Add the contents of a row; a repetition does no harm."""
        value = row.value
        unit = self._unit(known, value.partition)
        self.newest[unit] = max(self.newest[unit], value.newest)
        if row.sort_key.startswith(root_summary.ROWS):
            known.last = int.from_bytes(row.sort_key[-8:])
        for term in value.terms:
            units = self.terms.get(term)
            if units is None:
                units = self.terms[term] = array("l")
                self._new_words.append(term)
            units.append(unit)
        for day in value.days:
            self.days.setdefault(day, array("l")).append(unit)

    def _take_vectors(self, known: _Known, row: Row[VectorRow]) -> None:
        value = row.value
        count = len(value.scales) // 4
        unit = self._unit(known, value.partition)
        if row.sort_key.startswith(root_summary.VECTORS):
            known.last_vector = int.from_bytes(row.sort_key[-8:])
        space = self.spaces.setdefault(value.space, Space(len(value.values) // count))
        if len(value.values) == count * space.dimensions:
            space.units.extend([unit] * count)
            space.scales += value.scales
            space.values += value.values

    def _unit(self, known: _Known, partition: MemoryPartition) -> int:
        """Return the number of a root's unit in a partition; number a new one."""
        number = self._partitions.setdefault(partition, len(self._partitions))
        if number == len(self._partition_list):
            self._partition_list.append(partition)
        unit = known.units.get(number)
        if unit is None:
            unit = known.units[number] = len(self.unit_root)
            self.unit_root.append(known.number)
            self.unit_partition.append(number)
            self.newest.append(0)
        return unit

    # -- reading -----------------------------------------------------------

    @property
    def is_worn(self) -> bool:
        """Whether so many units are dead that everything should be loaded anew."""
        return self._dead > max(_MOST_DEAD, len(self.unit_root) // 2)

    def name(self, number: int) -> str:
        """Return the name of the root with this number."""
        return self._by_number[number].name

    def words(self) -> Iterator[Sequence[str]]:
        """Yield all terms in blocks, each sorted."""
        if self._new_words:
            self._words = sorted(self._words + self._new_words)  # the old ones are sorted already
            self._new_words = []
        for start in range(0, len(self._words), _BLOCK):
            yield self._words[start : start + _BLOCK]

    def visibility(self, principal: Principal) -> Seen:
        """Return what a reader may see of the current rows and partitions."""
        principal = principal.sight
        seen = self._readers.pop(principal, None) or Seen()
        self._readers[principal] = seen
        if len(self._readers) > READERS:
            self._readers.popitem(last=False)
        for row in self._listings[len(seen.listings) :]:
            seen.listings.append(directory.may_have_something(principal, row))
        for partition in self._partition_list[len(seen.partitions) :]:
            seen.partitions.append(policy.may_see_memory(principal, partition))
        return seen


class SummaryFollower:
    """Keep the summary index up to date for searches."""

    def __init__(self) -> None:
        self._overview: SummaryIndex | None = None
        self._number = 0
        self._is_loading = False
        self._dirty: dict[Address, int] = {}

    def update(self, reader: IndexReader) -> Slices[SummaryIndex]:
        """Return the index with all changes that ``reader`` sees; the reader has not yielded before."""
        mine, _ = reader.changed_since(root_summary.INDEX, None)
        reader.changed_since(directory.INDEX, None)
        while True:
            while self._is_loading:
                yield WAITING
            overview = self._overview
            number, of_summaries = reader.changed_since(root_summary.INDEX, self._number)
            _, of_directory = reader.changed_since(directory.INDEX, self._number)
            if overview is None or overview.is_worn or of_summaries is None or of_directory is None:
                return (yield from self._load(reader, mine))
            self._number = number
            self._dirty.update(dict.fromkeys((*of_summaries, *of_directory), number))
            yield from self._follow(overview, reader, mine)
            if overview is self._overview:  # otherwise a reader that sees less has loaded another one
                return overview

    def _follow(self, overview: SummaryIndex, reader: IndexReader, mine: int) -> Slices[None]:
        """Read the changed rows again, unless a reader that sees more did."""
        for address in list(self._dirty):
            if address in self._dirty and not overview.has_read(address, mine):
                listed = yield from overview.listed(reader, address)
                if not overview.has_read(address, mine):
                    overview.read_again(reader, address, listed, mine)
            if overview is not self._overview:
                return
            if self._dirty.get(address, mine + 1) <= mine:
                del self._dirty[address]
            yield

    def _load(self, reader: IndexReader, number: int) -> Slices[SummaryIndex]:
        self._is_loading = True
        try:
            overview = SummaryIndex(number)
            yield from overview.load(reader)
            self._overview, self._number = overview, number
            self._dirty.clear()
        finally:
            self._is_loading = False
        return overview
