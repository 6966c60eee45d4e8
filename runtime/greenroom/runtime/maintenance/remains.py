"""The remains of an actor that may lack records, and rules to keep some records.

A repair does not know which records belong together, or which one marks another as deleted. So a kind of
actor has a `RepairRule`, a pure function of the sound records. It may keep an entry only if no missing record
could have forgotten, replaced, erased or hidden it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from greenroom.runtime.base.address import Address
from greenroom.runtime.lmdb import keys
from greenroom.runtime.lmdb.key_blinding import KeyBlinder, Names, no_names
from greenroom.runtime.maintenance.damaged_store import Gap

_TIMES: Final = keys.index_prefix(keys.ANSWER_TIMES)
_NO_END: Final = b"\xff" * 512
"""Sorts after every key of a store."""


class Remains:
    """The sound records of an actor that may lack other records."""

    def __init__(
        self,
        address: Address,
        records: Mapping[bytes, bytes],
        gaps: Iterable[Gap],
        own: bytes,
        hide: Callable[[bytes], bytes],
    ) -> None:
        self.address = address
        self.records = records
        self._gaps = sorted(gaps)
        self._ends = [_NO_END if gap.end is None else gap.end for gap in self._gaps]
        self._own = own
        self._hide = hide

    def may_lack(self, first: bytes, last: bytes | None = None) -> bool:
        """Return whether a record may be missing between two keys, inclusive, or at a prefix."""
        low = self._own + self._hide(first)
        place = bisect_right(self._ends, low)  # the first gap that does not end before ``low``
        if place == len(self._gaps):
            return False
        start = self._gaps[place].start
        if last is None:
            return start <= low or start.startswith(low)
        return start <= self._own + self._hide(last)

    def unread(self, prefix: bytes = b"") -> bool:
        """Return whether a damaged page may have keys with ``prefix``, or a damaged key does.

        A damaged key may read as another key, so use this only to name missing entries, not for decisions.
        """
        return any(not gap.keys and gap.touches(self._own + prefix) for gap in self._gaps) or any(
            key.startswith(prefix) for key in self.damaged()
        )

    def damaged(self) -> list[bytes]:
        """Return the keys of the damaged records as they read, with blinded names."""
        return [key[len(self._own) :] for gap in self._gaps for key in gap.keys if key.startswith(self._own)]


class KeptRecords(NamedTuple):
    """The kept records of an actor; if none are kept, the actor is set aside.

    ``undone`` describes stored replies to idempotent requests whose effects are not kept, by fields of their
    JSON. If such a request is repeated, it is carried out again.
    """

    records: Mapping[bytes, bytes]
    left_out: Sequence[str]
    undone: Sequence[Mapping[str, Any]] = ()


class UndoneAnswers:
    """The stored replies to idempotent requests whose effects a repair does not keep."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], set[tuple[bytes, ...]]] = {}
        self._taken: set[bytes] = set()

    def add(self, undone: Iterable[Mapping[str, Any]]) -> None:
        """Add replies by their fields, all of which must match."""
        for fields in undone:
            self._known.setdefault(tuple(fields), set()).add(_values(fields, fields))

    def takes(self, key: bytes, read: Callable[[], bytes]) -> bool:
        """Return whether a row is such a reply, or its time; times come after replies."""
        if key.startswith(_TIMES):
            return key[-keys.TAG_BYTES :] in self._taken
        is_one = key.startswith(keys.ANSWERS) and self._has(read())
        if is_one:
            self._taken.add(key[len(keys.ANSWERS) :])
        return is_one

    def _has(self, record: bytes) -> bool:
        answer = keys.decode(record, keys.StoredAnswer)
        if answer.refusal:  # a refusal has no effect
            return False
        reply = msgspec.json.decode(answer.body)
        return isinstance(reply, dict) and any(
            reply.keys() >= set(fields) and _values(reply, fields) in known
            for fields, known in self._known.items()
        )


def _values(reply: Mapping[str, Any], fields: Iterable[str]) -> tuple[bytes, ...]:
    return tuple(keys.encode_json(reply[field]) for field in fields)


class RepairRule(NamedTuple):
    """The rule by which a kind of actor keeps sound records.

    The actor rewrites its rows in the shared ``indexes`` on `Restate`.
    """

    keep: Callable[[Remains], KeptRecords]
    names: Names = no_names
    indexes: Collection[str] = ()

    def hide(self, blinder: KeyBlinder | None, own: bytes, key: bytes) -> bytes:
        """Return the stored form of an actor's own key; ``own`` is the actor's prefix."""
        return key if blinder is None else blinder.blind(own, key, self.names)
