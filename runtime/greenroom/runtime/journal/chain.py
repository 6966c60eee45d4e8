"""Journals: append-only rows, each linked to the one before by a secret key.

    INDEXES  "!journal" NUL name NUL number    link, then the row: time, times, value
    META     "journal" NUL name NUL "head"     the number of rows ever, and the last one's link
             "journal" NUL name NUL "start"    the first row that is left, and the link before it

1. The commit of a message gives its rows their numbers and links, in the writer's thread. So numbers have no
   gaps and no duplicates, even after crashes.
2. link = HMAC-SHA256(key, link before | number | row), its first 16 bytes (RFC 2104, section 5). The key is
   derived from the store's secret. Someone who has only the store can remove rows at the end undetected; any
   other change is detected. Checkpoints, kept apart from the store, protect the end.
3. A row can be redacted: it keeps its link, so the chain continues. A signature of its place, link and
   remaining value proves that it was a row of this chain.
4. Head and start are signed in the same way, and serve as checkpoints for the rows that retention removed.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from greenroom.runtime.base.address import Address
from greenroom.runtime.base.errors import ConfigurationError, RecordDamagedError, Refusal
from greenroom.runtime.journal.secrets import Secret
from greenroom.runtime.lmdb import keys as lmdb_keys
from greenroom.runtime.lmdb.codec import pass_over
from greenroom.runtime.lmdb.environment import INDEXES, META
from greenroom.runtime.lmdb.snapshot import Snapshot
from greenroom.runtime.lmdb.write_batch import JournalEntry

T = TypeVar("T")

LINK_BYTES: Final = 16
NO_LINK: Final = bytes(LINK_BYTES)
_PREFIX: Final = b"!journal\0"
_META: Final = b"journal\0"
NUMBER_BYTES: Final = 8
STRANGE: Final = 1 << 62
"""The number that stands for an invalid row number."""


class Journal(NamedTuple):
    """A journal of a runtime.

    Attributes:
        name: 1-32 characters.
        ttl: The age, in microseconds, from which a row may be removed; None if rows stay forever.
        max_bytes: The most bytes of rows; the oldest are removed first. None for no limit.
        lost: Returns the row that reports a number of dropped rows.
        broken: Returns the row that reports missing rows, by their first and last number.
        denied: Returns the row for a `Refusal` that is a denial, from the principal, the actor (None for a
            query), the request and the refusal. None for a journal without denials.
    """

    name: str
    ttl: int | None = None
    max_bytes: int | None = None
    lost: Callable[[int], Any] = int
    broken: Callable[[int, int], Any] = range
    denied: Callable[[Any, Address | None, Any, Refusal], Any] | None = None


class JournalRow(NamedTuple, Generic[T]):
    """A row of a journal, at its number from 1 on.

    ``time`` is in microseconds since 1970 UTC; ``times`` is how often the same happened at about that time.
    """

    number: int
    time: int
    times: int
    value: T
    is_redacted: bool


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The signed state of a journal at one moment.

    The link and the time (microseconds since 1970 UTC) come from the last row. Link and signature are
    hexadecimal.
    """

    journal: str
    count: int
    link: str
    time: int
    signature: str = ""


class ChainPosition(msgspec.Struct, frozen=True, array_like=True):
    """A journal's end or start; ``size`` counts the bytes of all earlier rows."""

    count: int = 0
    link: bytes = NO_LINK
    size: int = 0
    time: int = 0
    mac: bytes = b""


class _Stored(msgspec.Struct, frozen=True, array_like=True):
    """A row without its link; a redacted row has its original size and a seal."""

    time: int
    times: int
    value: msgspec.Raw
    size: int = 0
    seal: bytes = b""


class JournalKeys:
    """The keys of one journal."""

    def __init__(self, name: str, secret: Secret) -> None:
        self.name = name
        self.link = secret.derive(f"journal/{name}/link")
        self._sign = secret.derive(f"journal/{name}/sign")
        self.prefix = journal_prefix(name)
        self.head = head_key(name)
        self.start = _META + name.encode() + b"\0start"

    def make_link(self, before: bytes, number: int, row: bytes) -> bytes:
        """Return the link of a row."""
        return hmac.digest(self.link, before + number.to_bytes(NUMBER_BYTES) + row, "sha256")[:LINK_BYTES]

    def is_linked(self, before: bytes, number: int, record: bytes) -> bool:
        """Return whether a stored row was written after the row with the link ``before``."""
        link, row = record[:LINK_BYTES], record[LINK_BYTES:]
        if hmac.compare_digest(self.make_link(before, number, row), link):
            return True
        stored = _parse_redacted(row)
        return stored is not None and hmac.compare_digest(
            self._seal(before, number, link, stored), stored.seal
        )

    def redact(self, before: bytes, number: int, record: bytes, value: Any) -> bytes:
        """Return a stored row with ``value`` instead of its content; links stay valid.

        A row that was changed since it was written gets no seal, so the next check still reports it.
        """
        link, row = record[:LINK_BYTES], record[LINK_BYTES:]
        was = lmdb_keys.decode(row, _Stored)
        remaining = msgspec.Raw(lmdb_keys.encode(value))
        stored = _Stored(was.time, was.times, remaining, was.size or len(row))
        if self.is_linked(before, number, record):
            stored = msgspec.structs.replace(stored, seal=self._seal(before, number, link, stored))
        return link + lmdb_keys.encode(stored)

    def _seal(self, before: bytes, number: int, link: bytes, stored: _Stored) -> bytes:
        bare = lmdb_keys.encode(msgspec.structs.replace(stored, seal=b""))
        return self._signature(b"redacted\0" + before + number.to_bytes(NUMBER_BYTES) + link + bare)

    def sign_state(self, key: bytes, state: ChainPosition) -> ChainPosition:
        """Return a state to store under ``key``, with its signature."""
        bare = msgspec.structs.replace(state, mac=b"")
        return msgspec.structs.replace(bare, mac=self._signature(key + lmdb_keys.encode(bare)))

    def read(self, key: bytes, payload: bytes | None) -> ChainPosition | None:
        """Return the state stored under ``key``; None if missing or not signed by this secret."""
        if payload is None:
            return None
        try:
            state = msgspec.msgpack.decode(payload, type=ChainPosition)
        except msgspec.DecodeError:
            return None
        return state if hmac.compare_digest(self.sign_state(key, state).mac, state.mac) else None

    def checkpoint(self, state: ChainPosition) -> Checkpoint:
        """Return a state as a checkpoint."""
        bare = Checkpoint(
            journal=self.name, count=state.count, link=state.link.hex(), time=state.time, signature=""
        )
        return msgspec.structs.replace(bare, signature=self._sign_checkpoint(bare))

    def is_genuine(self, checkpoint: Checkpoint) -> bool:
        """Return whether a checkpoint belongs to this journal and is unchanged."""
        return checkpoint.journal == self.name and hmac.compare_digest(
            self._sign_checkpoint(msgspec.structs.replace(checkpoint, signature="")).encode(),
            checkpoint.signature.encode(),
        )

    def _sign_checkpoint(self, bare: Checkpoint) -> str:
        return self._signature(b"checkpoint\0" + lmdb_keys.encode_json(bare)).hex()

    def _signature(self, text: bytes) -> bytes:
        return hmac.digest(self._sign, text, "sha256")[:LINK_BYTES]


class ChainUpdate(NamedTuple):
    """The result of appending: rows for INDEXES, heads for META, new ends."""

    rows: list[tuple[bytes, bytes]]
    heads: list[tuple[bytes, bytes]]
    ends: dict[str, ChainPosition]


class HashChains:
    """The ends of all journals, for the thread that commits."""

    def __init__(self, keys: Iterable[JournalKeys], snapshot: Snapshot) -> None:
        self._keys = {each.name: each for each in keys}
        self._ends = {name: end_of(each, snapshot) for name, each in self._keys.items()}

    def append(self, entries: Sequence[JournalEntry]) -> ChainUpdate:
        """Return what to store for these rows, without advancing."""
        ends = dict(self._ends)
        rows: list[tuple[bytes, bytes]] = []
        for name, time, row in entries:
            keys, end = self._keys[name], ends[name]
            number = end.count + 1
            link = keys.make_link(end.link, number, row)
            rows.append((keys.prefix + number.to_bytes(NUMBER_BYTES), link + row))
            ends[name] = ChainPosition(number, link, end.size + len(row), time)
        heads = [
            (keys.head, lmdb_keys.encode(keys.sign_state(keys.head, ends[name])))
            for name, keys in self._keys.items()
            if ends[name] is not self._ends[name]
        ]
        return ChainUpdate(rows, heads, ends)

    def advance(self, update: ChainUpdate) -> None:
        """Continue from an update that is on disk."""
        self._ends = update.ends


def head_key(name: str) -> bytes:
    """Return the key of a journal's head."""
    return _META + name.encode() + b"\0head"


def journal_prefix(name: str) -> bytes:
    """Return the bytes before the number of each row of a journal."""
    return _PREFIX + name.encode() + b"\0"


def entry(journal: str, time: int, times: int, value: Any) -> JournalEntry:
    """Encode a row to stage."""
    return journal, time, lmdb_keys.encode((time, times, value))


def decode_row(number: int, record: bytes, of: type[T]) -> JournalRow[T]:
    """Decode a stored row."""
    stored = lmdb_keys.decode(record[LINK_BYTES:], _Stored)
    value = lmdb_keys.decode(stored.value, of)
    return JournalRow(number, stored.time, stored.times, value, stored.size > 0)


def _parse_redacted(row: bytes) -> _Stored | None:
    """Decode a row without its link if it is redacted; else None."""
    try:
        stored = msgspec.msgpack.decode(row, type=_Stored)
    except msgspec.DecodeError:
        return None
    return stored if stored.size else None


def is_redacted(record: bytes) -> bool:
    """Return whether a stored row was redacted."""
    return _parse_redacted(record[LINK_BYTES:]) is not None


def size_of(record: bytes) -> int:
    """Return the original bytes of a stored row, without its link."""
    stored = _parse_redacted(record[LINK_BYTES:])
    return len(record) - LINK_BYTES if stored is None else stored.size


def scan(
    snapshot: Snapshot, name: str, *, start: int | None = None, reverse: bool = False
) -> Iterator[tuple[int, bytes]]:
    """Yield the rows of a journal with their numbers, from ``start`` on, inclusive.

    Rows that no server writes have the number `STRANGE`.
    """
    prefix = journal_prefix(name)
    first = None if start is None else prefix + start.to_bytes(NUMBER_BYTES)
    for key, record in snapshot.scan(INDEXES, prefix, start=first, reverse=reverse):
        yield _number_in(key, prefix), record


def _number_in(key: bytes, prefix: bytes) -> int:
    number = key[len(prefix) :]
    return min(STRANGE, int.from_bytes(number)) if len(number) == NUMBER_BYTES else STRANGE


def end_of(keys: JournalKeys, snapshot: Snapshot) -> ChainPosition:
    """Return the end of a journal, after which new rows follow.

    If the head is missing, damaged, outdated or of another secret, the next row follows the last row without
    a link to it, and the next check reports that.
    """
    head = head_of(keys, snapshot)
    rows = snapshot.scan(INDEXES, keys.prefix, reverse=True, on_damage=pass_over)
    there = (_number_in(key, keys.prefix) for key, _ in rows)
    number = next((each for each in there if each != STRANGE), 0)
    if head is not None and head.count >= number:
        return head
    try:
        start = start_of(keys, snapshot)
    except RecordDamagedError:
        start = ChainPosition()
    if number == 0:
        return start
    return ChainPosition(
        max(number, start.count), NO_LINK, start.size if head is None else head.size, start.time
    )


def head_of(keys: JournalKeys, snapshot: Snapshot) -> ChainPosition | None:
    """Return the head of a journal; None if missing, damaged or not signed."""
    try:
        return keys.read(keys.head, snapshot.get(META, keys.head))
    except RecordDamagedError:
        return None


def start_of(keys: JournalKeys, snapshot: Snapshot) -> ChainPosition:
    """Return the position before the first remaining row of a journal."""
    return keys.read(keys.start, snapshot.get(META, keys.start)) or ChainPosition()


def journal_table(journals: Iterable[Journal]) -> dict[str, Journal]:
    """Return the journals by name."""
    table: dict[str, Journal] = {}
    for journal in journals:
        name = journal.name.encode()
        if not 0 < len(name) <= lmdb_keys.MAX_INDEX_NAME_BYTES or 0 in name or journal.name in table:
            raise ConfigurationError(f"{journal.name!r} is no name for a journal, or is used twice")
        table[journal.name] = journal
    return table
