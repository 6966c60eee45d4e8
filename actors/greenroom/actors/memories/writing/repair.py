"""Repair a root: keep each memory that no lost record could hide.

An entry records its partition, whether it was forgotten, and what it supersedes; a purged entry has no
record. So a sound entry is right, unless a later entry supersedes it. All later entries and links to them
must be sound and kept; if records were lost, none of them may have been such an entry or link. All entries
need the header.

Lists, ids, links and expiry are derived from the entries. The index is built at its next use, as for a store
of an older program.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from greenroom.actors.core.auth import namespaces as names
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.memories.storage import directory, records
from greenroom.actors.memories.storage.derived_records import LOST
from greenroom.actors.memories.storage.records import (
    PLAIN,
    Entry,
    EntryDetails,
    Quality,
    Rating,
    RootHeader,
    VersionTimes,
)
from greenroom.actors.memories.storage.repository import NEWEST, StoredEntry, has_several_owners
from greenroom.actors.memories.writing import import_staging
from greenroom.actors.search.embedding import rows as embedding
from greenroom.runtime import KeptRecords, Remains, RepairRule

_encode: Final = msgspec.msgpack.encode
_decode: Final = msgspec.msgpack.decode
_FAR: Final = 1 << 32
"""New numbers begin this far above the known ones, since lost records may have numbers, too."""


def keep(remains: Remains) -> KeptRecords:
    """Return the records of one root to keep; none if its header is lost."""
    header = remains.records.get(records.HEADER)
    if header is not None:
        return _Root(remains, _decode(header, type=RootHeader)).select()
    tag = names.tag_of_root(names.root_at(remains.address.key))
    ids = [records.memory_id(tag, tail) for tail in _live_tails(remains.records)]
    return KeptRecords({}, (), [{"memory_id": each} for each in ids])


RULE: Final = RepairRule(
    keep, records.names_in, frozenset({directory.INDEX, directory.SUMMARIES, embedding.INDEX})
)


class _Root:
    """The sound memories below one root."""

    def __init__(self, remains: Remains, header: RootHeader) -> None:
        self._remains = remains
        self._header = header
        self._found: dict[bytes, dict[bytes, bytes]] = defaultdict(dict)
        for key, record in remains.records.items():
            self._found[key[:1]][key] = record
        self._entries: dict[int, StoredEntry] = {}
        for where, record in self._found[records.ENTRIES].items():
            entry = _decode(record, type=Entry)
            self._entries[entry.number] = StoredEntry(where, entry)
        self._has_all_entries = not remains.may_lack(records.ENTRIES)
        self._kept: set[int] = set()

    def select(self) -> KeptRecords:
        """Return the kept records, and the names of what is lost."""
        self._kept = self._select_visible({number for number in self._entries if self._is_whole(number)})
        made = {
            records.HEADER: _encode(msgspec.structs.replace(self._header, indexed_to=0)),
            NEWEST: _encode(self._highest() + _FAR),
            **self._found[records.ENDED],
        }
        for number, stored in self._entries.items():
            made |= self._place(stored) if number in self._kept else self._block_versions(stored.entry, made)
        made |= self._lost_ends(made)
        for letter in (records.RATINGS, records.QUALITIES):
            made |= {key: found for key, found in self._found[letter].items() if _number(key) in self._kept}
        for number in {_number(key) for key in self._found[records.RATINGS]} & self._kept:
            made[records.quality_key(number)] = self._quality(number)
        for key, record in self._found[records.PAIRS].items():
            if {_number(key), _last(key)} <= self._kept:
                made[key] = record
        for key, record in self._found[records.VERSIONS].items():
            number = _number(key)
            if number in self._kept:
                made[key] = record
                expires_at = _decode(record, type=VersionTimes).expires_at
                if expires_at is not None:
                    where = records.expiry_key(expires_at, number, _last(key))
                    made[where] = _encode(self._entries[number].record_key)
        staged, broken = _select_staged(self._found[import_staging.STAGED])
        return KeptRecords(made | staged, [*self._list_lost(), *broken], list(self._lost_replies()))

    # -- which entries -----------------------------------------------------

    def _is_whole(self, number: int) -> bool:
        """Return whether an entry has all its own records."""
        entry = self._entries[number].entry
        is_placed = entry.details is None or entry.details.partition < len(self._header.partitions)
        return is_placed and records.version_key(number, entry.version) in self._found[records.VERSIONS]

    def _select_visible(self, numbers: set[int]) -> set[int]:
        """Return the entries whose superseding entries are known and kept."""
        superseded = self._find_superseded()
        kept = {number for number in numbers if self._knows_successors(number)}
        lost = [
            later
            for later in superseded
            if later not in kept and (later in self._entries or not self._has_all_entries)
        ]
        while lost:
            gone = superseded[lost.pop()] & kept
            kept -= gone
            lost += (number for number in gone if number in superseded)
        return kept

    def _find_superseded(self) -> dict[int, set[int]]:
        """Map the number of each superseding entry to the entries that it supersedes."""
        superseded: dict[int, set[int]] = defaultdict(set)
        for number, stored in self._entries.items():
            earlier = _details(stored.entry).supersedes
            if earlier is not None:
                superseded[number].add(earlier)
        for key in self._found[records.SUCCESSORS]:
            superseded[_last(key)].add(_number(key))
        return superseded

    def _knows_successors(self, number: int) -> bool:
        """Return whether all entries that supersede an entry are known."""
        return (
            _details(self._entries[number].entry).superseded_by is None
            or self._has_all_entries
            or not self._remains.may_lack(records.successors_prefix(number))
        )

    # -- records -----------------------------------------------------------

    def _place(self, stored: StoredEntry) -> dict[bytes, bytes]:
        """Return an entry with the rows that lead to it."""
        where, entry = stored
        details, place = _details(entry), _encode(where)
        rows = {
            where: self._found[records.ENTRIES][where],
            records.id_key(self._tail(entry.number)): place,
        }
        if entry.deleted_at is None:
            rows |= dict.fromkeys(records.order_keys(entry), place)
        if details.supersedes in self._kept:
            link = records.successor_key(details.supersedes, details.partition, entry.number)
            rows[link] = _encode(True)
        return rows

    def _block_versions(self, entry: Entry, made: dict[bytes, bytes]) -> dict[bytes, bytes]:
        """Return the row that blocks the version numbers of a lost entry."""
        key = records.entry_key(entry.session_id, entry.key, entry.sub)
        where = records.ended_key(None if has_several_owners(self._header.root) else key)
        before = _decode(made[where], type=int) if where in made else 0
        return {where: _encode(max(before, entry.version))}

    def _lost_ends(self, made: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
        """Return rows that block the version numbers of entries with lost keys.

        If such a row may be lost, it blocks all numbers in use, since each version took a number.
        """
        several = has_several_owners(self._header.root)
        groups = [records.ended_key(None)] if several else records.ended_keys()
        version = 0 if self._has_all_entries else self._lost_version()
        ends: dict[bytes, bytes] = {}
        for where in groups:
            before = _decode(made[where], type=int) if where in made else 0
            lost = self._bound() if self._remains.may_lack(where, where) else version
            if lost > before:
                ends[where] = _encode(lost)
        return ends

    def _lost_version(self) -> int:
        """Return the highest version of entries without a sound record."""
        if self._remains.may_lack(records.VERSIONS):
            return self._bound()
        found = self._found[records.VERSIONS]
        return max((_last(key) for key in found if _number(key) not in self._entries), default=0)

    def _bound(self) -> int:
        """Return an upper bound of all numbers in use."""
        is_known = not any(map(self._remains.may_lack, (NEWEST, records.UPDATES, records.VERSIONS)))
        return self._highest() + (0 if is_known else _FAR)

    def _quality(self, number: int) -> bytes:
        """Return an entry's quality: known uses, and the sum of its ratings."""
        where, prefix = records.quality_key(number), records.ratings_prefix(number)
        stored = self._found[records.QUALITIES].get(where)
        if stored is not None and not self._remains.may_lack(prefix):
            return stored
        ratings = [
            _decode(record, type=Rating).rating
            for key, record in self._found[records.RATINGS].items()
            if key.startswith(prefix)
        ]
        known = Quality() if stored is None else _decode(stored, type=Quality)
        return _encode(msgspec.structs.replace(known, rated=sum(ratings), ratings=len(ratings)))

    def _highest(self) -> int:
        """Return the highest number that is known to be in use."""
        numbers = [stored.entry.update for stored in self._entries.values()]
        numbers += (_number(key) for letter in _NUMBERED for key in self._found[letter])
        newest = self._remains.records.get(NEWEST)
        return max(0, *numbers, 0 if newest is None else _decode(newest, type=int))

    # -- names -------------------------------------------------------------

    def _list_lost(self) -> list[str]:
        """Return the keys of lost memories, or their ids if the keys are unknown."""
        tag = names.tag_of_root(self._header.root)
        purged = {_number(key) for key in self._found[records.DELETED]}
        numbers = {_number(key) for key in self._found[records.VERSIONS]} | self._entries.keys()
        tails = {key[1:] for key in self._found[records.IDS]}
        tails -= {self._tail(number) for number in numbers}
        keys = [self._entries[number].entry.key for number in self._entries.keys() - self._kept]
        tails |= {self._tail(number) for number in numbers - self._entries.keys() - purged}
        keys += (records.memory_id(tag, tail) for tail in tails)
        return [*keys, *(f"{key} (older versions)" for key in self._find_shortened())]

    def _lost_replies(self) -> Iterator[dict[str, Any]]:
        """Yield fields of the stored replies to requests that wrote a lost, visible memory.

        A repeat of such a request must run again. Forgotten or superseded memories are excluded, so that a
        repeat does not bring them back.
        """
        tails = _live_tails(self._remains.records)
        tails -= {
            self._tail(number) for number in set().union(*self._find_superseded().values()) | self._kept
        }
        tag = names.tag_of_root(self._header.root)
        yield from ({"memory_id": records.memory_id(tag, tail)} for tail in tails)
        stored = [
            (_number(key), _last(key), _decode(record, type=VersionTimes).stored_at)
            for key, record in self._found[records.VERSIONS].items()
        ]
        stored += ((each.number, each.version, each.updated_at) for _, each in self._entries.values())
        for number, version, stored_at in stored:
            if self._tail(number) in tails:  # the reply to `SetMemory` has no id
                yield {"version": version, "stored_at": to_datetime(stored_at)}

    def _find_shortened(self) -> list[str]:
        """Return the keys of kept entries that may have lost older versions."""
        counts = Counter(_number(key) for key in self._found[records.VERSIONS])
        return [
            entry.key
            for number in self._kept
            if counts[number] < (entry := self._entries[number].entry).versions
            and self._remains.may_lack(
                records.versions_prefix(number), records.version_key(number, entry.version)
            )
        ]

    def _tail(self, number: int) -> bytes:
        return records.tail_of_number(self._header.secret, number)


def _live_tails(found: Mapping[bytes, bytes]) -> set[bytes]:
    """Return the id tails of entries that are live according to sound rows."""
    live = {_decode(place, type=bytes) for key, place in found.items() if key.startswith(records.UPDATES)} - {
        LOST
    }
    return {
        key[len(records.IDS) :]
        for key, place in found.items()
        if key.startswith(records.IDS) and _decode(place, type=bytes) in live
    }


def _select_staged(found: Mapping[bytes, bytes]) -> tuple[dict[bytes, bytes], list[str]]:
    """Return the staged lines to keep, and the names of damaged imports.

    The import continues with the remaining lines; the header counts the waiting lines among them.
    """
    made: dict[bytes, bytes] = {}
    left_out: list[str] = []
    for key in {key[: import_staging.HEAD_BYTES] for key in found}:
        mine = {place: record for place, record in found.items() if place.startswith(key)}
        name = f"import {key[1:].hex()}"
        if key not in mine:
            left_out.append(name)
            continue
        head = _decode(mine[key], type=import_staging.ImportHeader)
        waiting = sum(place.startswith(key + import_staging.WAITING) for place in mine)
        batches = len(mine) - waiting - 1
        if (waiting, batches) != (head.waiting, head.staged - head.applied):
            left_out.append(f"{name} (some lines)")
        made |= mine
        made[key] = _encode(msgspec.structs.replace(head, waiting=waiting))
    return made, left_out


_NUMBERED: Final = (
    records.UPDATES,
    records.VERSIONS,
    records.QUALITIES,
    records.RATINGS,
    records.DELETED,
    records.SUCCESSORS,
)


def _details(entry: Entry) -> EntryDetails:
    return entry.details or PLAIN


def _number(key: bytes) -> int:
    return int.from_bytes(key[1:9])


def _last(key: bytes) -> int:
    """Return the number at the end of a key: a version, or another entry's number."""
    return int.from_bytes(key[-8:])
