"""Journals: rows that are only ever appended, each linked to the one before by a key that the store lacks.

    INDEXES  "!journal" NUL name NUL number    link, then the row: when, how often, what
    META     "journal" NUL name NUL "head"     how many rows there were, and the last one's link
             "journal" NUL name NUL "start"    the first row that is still there, and the link before it

1. A row gets its number and its link in the commit of what it tells of, in the writer's thread. So numbers
   have no gaps, and no two rows have one number, whatever crashes.
2. link = HMAC-SHA256(key, link before | number | row), its first 16 bytes (RFC 2104, section 5). The key
   follows from the store's secret. Who has the store alone can take rows away at the end together with what
   is known of them; everything else shows. For the end there are checkpoints, kept apart from the store.
3. A row can be redacted: it keeps its link, so the chain goes on over it, and a signature over its place, its
   link and what it still says vouches that it was a row of this chain.
4. Head and start are signed in the same way. They are checkpoints, too: what retention removed is behind one.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from greenroom.runtime.base.address import Address
from greenroom.runtime.base.errors import ConfigurationError, Refusal
from greenroom.runtime.journal.secrets import Secret
from greenroom.runtime.lmdb import keys as lmdb_keys
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
"""The number of rows that have none, or one that no server comes to."""


class Journal(NamedTuple):
    """A journal of a runtime.

    Attributes:
        name: 1-32 characters.
        ttl: After how many microseconds a row may go; None for never.
        max_bytes: How many bytes of rows are kept; the oldest go first. None for all.
        lost: Makes the row that tells how many notes were dropped for want of room.
        broken: Makes the row that tells from which number to which rows are gone that were seen before.
        denied: Makes the row that tells of a `Refusal` that is a denial, from who asked, the actor (None
            for a query), what was asked, and the refusal. None for a journal that tells nothing of that.
    """

    name: str
    ttl: int | None = None
    max_bytes: int | None = None
    lost: Callable[[int], Any] = int
    broken: Callable[[int, int], Any] = range
    denied: Callable[[Any, Address | None, Any, Refusal], Any] | None = None


class JournalRow(NamedTuple, Generic[T]):
    """A row of a journal.

    Attributes:
        number: Its place, counted from 1.
        time: When, in microseconds since 1970 UTC.
        times: How often the same happened about then.
        value: What.
        is_redacted: Whether it does not say any more what it said.
    """

    number: int
    time: int
    times: int
    value: T
    is_redacted: bool


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """What a journal was at one moment.

    Attributes:
        journal: Its name.
        count: How many rows it had had.
        link: The last one's, hexadecimal.
        time: That row's, in microseconds since 1970 UTC.
        signature: Made with a key of the store's secret, hexadecimal.
    """

    journal: str
    count: int
    link: str
    time: int
    signature: str = ""


class ChainPosition(msgspec.Struct, frozen=True, array_like=True):
    """Where a journal's end or start is. ``size`` counts the bytes of all rows before it, ever."""

    count: int = 0
    link: bytes = NO_LINK
    size: int = 0
    time: int = 0
    mac: bytes = b""


class _Stored(msgspec.Struct, frozen=True, array_like=True):
    """A row without its link.

    Attributes:
        time: As `JournalRow` has it.
        times: Likewise.
        value: What it says; of a redacted row what it still says.
        size: How many bytes a redacted row had; 0 for one that is as it was written.
        seal: Signs that a row of this link stood here, before it was redacted.
    """

    time: int
    times: int
    value: msgspec.Raw
    size: int = 0
    seal: bytes = b""


class JournalKeys:
    """The keys of one journal.

    Args:
        name: The journal's.
        secret: The store's.
    """

    def __init__(self, name: str, secret: Secret) -> None:
        self.name = name
        self.link = secret.derive(f"journal/{name}/link")
        self._sign = secret.derive(f"journal/{name}/sign")
        self.prefix = journal_prefix(name)
        self.head = head_key(name)
        self.start = _META + name.encode() + b"\0start"

    def linked(self, before: bytes, number: int, row: bytes) -> bytes:
        """Return the link of a row."""
        return hmac.digest(self.link, before + number.to_bytes(NUMBER_BYTES) + row, "sha256")[:LINK_BYTES]

    def is_linked(self, before: bytes, number: int, record: bytes) -> bool:
        """Return whether a stored row is what was written behind the row with the link ``before``."""
        link, row = record[:LINK_BYTES], record[LINK_BYTES:]
        if hmac.compare_digest(self.linked(before, number, row), link):
            return True
        stored = _redacted(row)
        return stored is not None and hmac.compare_digest(
            self._seal(before, number, link, stored), stored.seal
        )

    def redacted(self, before: bytes, number: int, record: bytes, value: Any) -> bytes:
        """Return a stored row that says ``value`` instead of what it said; its link stays, and so do others.

        A row that is not what was written gets no seal, so that the next check tells of it as before.
        """
        link, row = record[:LINK_BYTES], record[LINK_BYTES:]
        was = lmdb_keys.decode(row, _Stored)
        said = msgspec.Raw(lmdb_keys.encode(value))
        stored = _Stored(was.time, was.times, said, was.size or len(row))
        if self.is_linked(before, number, record):
            stored = msgspec.structs.replace(stored, seal=self._seal(before, number, link, stored))
        return link + lmdb_keys.encode(stored)

    def _seal(self, before: bytes, number: int, link: bytes, stored: _Stored) -> bytes:
        bare = lmdb_keys.encode(msgspec.structs.replace(stored, seal=b""))
        return self._signature(b"redacted\0" + before + number.to_bytes(NUMBER_BYTES) + link + bare)

    def signed(self, key: bytes, state: ChainPosition) -> ChainPosition:
        """Return a state that is to be stored under ``key``, with its signature."""
        bare = msgspec.structs.replace(state, mac=b"")
        return msgspec.structs.replace(bare, mac=self._signature(key + lmdb_keys.encode(bare)))

    def read(self, key: bytes, payload: bytes | None) -> ChainPosition | None:
        """Return the state that was stored under ``key``, or None if there is none, or another wrote it."""
        if payload is None:
            return None
        try:
            state = msgspec.msgpack.decode(payload, type=ChainPosition)
        except msgspec.DecodeError:
            return None
        return state if hmac.compare_digest(self.signed(key, state).mac, state.mac) else None

    def checkpoint(self, state: ChainPosition) -> Checkpoint:
        """Return a state as a checkpoint."""
        bare = Checkpoint(
            journal=self.name, count=state.count, link=state.link.hex(), time=state.time, signature=""
        )
        return msgspec.structs.replace(bare, signature=self._of_checkpoint(bare))

    def made(self, checkpoint: Checkpoint) -> bool:
        """Return whether a checkpoint is of this journal and nobody changed it."""
        return checkpoint.journal == self.name and hmac.compare_digest(
            self._of_checkpoint(msgspec.structs.replace(checkpoint, signature="")).encode(),
            checkpoint.signature.encode(),
        )

    def _of_checkpoint(self, bare: Checkpoint) -> str:
        return self._signature(b"checkpoint\0" + lmdb_keys.encode_json(bare)).hex()

    def _signature(self, text: bytes) -> bytes:
        return hmac.digest(self._sign, text, "sha256")[:LINK_BYTES]


class Appended(NamedTuple):
    """What appending comes to: rows for INDEXES, heads for META, and where the journals end then."""

    rows: list[tuple[bytes, bytes]]
    heads: list[tuple[bytes, bytes]]
    ends: dict[str, ChainPosition]


class HashChains:
    """The ends of all journals, for the thread that commits.

    Args:
        keys: Those of each journal.
        snapshot: The store as it is found.
    """

    def __init__(self, keys: Iterable[JournalKeys], snapshot: Snapshot) -> None:
        self._keys = {each.name: each for each in keys}
        self._ends = {name: end_of(each, snapshot) for name, each in self._keys.items()}

    def append(self, entries: Sequence[JournalEntry]) -> Appended:
        """Return what to put for these rows; nothing is taken note of as yet."""
        ends = dict(self._ends)
        rows: list[tuple[bytes, bytes]] = []
        for name, time, row in entries:
            keys, end = self._keys[name], ends[name]
            number = end.count + 1
            link = keys.linked(end.link, number, row)
            rows.append((keys.prefix + number.to_bytes(NUMBER_BYTES), link + row))
            ends[name] = ChainPosition(number, link, end.size + len(row), time)
        heads = [
            (keys.head, lmdb_keys.encode(keys.signed(keys.head, ends[name])))
            for name, keys in self._keys.items()
            if ends[name] is not self._ends[name]
        ]
        return Appended(rows, heads, ends)

    def advance(self, appended: Appended) -> None:
        """Go on from there: it is on disk."""
        self._ends = appended.ends


def head_key(name: str) -> bytes:
    """Return the key under which a store says where a journal ends."""
    return _META + name.encode() + b"\0head"


def journal_prefix(name: str) -> bytes:
    """Return the bytes before the number of each row of a journal."""
    return _PREFIX + name.encode() + b"\0"


def entry(journal: str, time: int, times: int, value: Any) -> JournalEntry:
    """Return a row as it is staged."""
    return journal, time, lmdb_keys.encode((time, times, value))


def decoded(number: int, record: bytes, of: type[T]) -> JournalRow[T]:
    """Return a stored row.

    Raises:
        StoreDamagedError: it is none, or of another type.
    """
    stored = lmdb_keys.decode(record[LINK_BYTES:], _Stored)
    value = lmdb_keys.decode(stored.value, of)
    return JournalRow(number, stored.time, stored.times, value, stored.size > 0)


def _redacted(row: bytes) -> _Stored | None:
    """Return a row without its link if it is a redacted one."""
    try:
        stored = msgspec.msgpack.decode(row, type=_Stored)
    except msgspec.DecodeError:
        return None
    return stored if stored.size else None


def is_redacted(record: bytes) -> bool:
    """Return whether a stored row does not say any more what it said."""
    return _redacted(record[LINK_BYTES:]) is not None


def size_of(record: bytes) -> int:
    """Return how many bytes a stored row had when it was written, without its link."""
    stored = _redacted(record[LINK_BYTES:])
    return len(record) - LINK_BYTES if stored is None else stored.size


def scan(
    snapshot: Snapshot, name: str, *, start: int | None = None, reverse: bool = False
) -> Iterator[tuple[int, bytes]]:
    """Yield the rows of a journal with their numbers, from ``start`` on, inclusive.

    What no server writes is among them with the number `STRANGE`.
    """
    prefix = journal_prefix(name)
    first = None if start is None else prefix + start.to_bytes(NUMBER_BYTES)
    for key, record in snapshot.scan(INDEXES, prefix, start=first, reverse=reverse):
        yield _number_in(key, prefix), record


def _number_in(key: bytes, prefix: bytes) -> int:
    number = key[len(prefix) :]
    return min(STRANGE, int.from_bytes(number)) if len(number) == NUMBER_BYTES else STRANGE


def end_of(keys: JournalKeys, snapshot: Snapshot) -> ChainPosition:
    """Return from where a journal goes on.

    Where the head is missing, not of this secret, or an older one, the journal goes on behind its last row
    without a link to it, which the next check tells.
    """
    head = keys.read(keys.head, snapshot.get(META, keys.head))
    there = (_number_in(key, keys.prefix) for key in snapshot.keys(INDEXES, keys.prefix, reverse=True))
    number = next((each for each in there if each != STRANGE), 0)
    if head is not None and head.count >= number:
        return head
    start = start_of(keys, snapshot)
    if number == 0:
        return start
    return ChainPosition(
        max(number, start.count), NO_LINK, start.size if head is None else head.size, start.time
    )


def start_of(keys: JournalKeys, snapshot: Snapshot) -> ChainPosition:
    """Return what was before the first row of a journal that retention has left."""
    return keys.read(keys.start, snapshot.get(META, keys.start)) or ChainPosition()


def journal_table(journals: Iterable[Journal]) -> dict[str, Journal]:
    """Return the journals by name.

    Raises:
        ConfigurationError: a name is empty, too long or used twice.
    """
    table: dict[str, Journal] = {}
    for journal in journals:
        name = journal.name.encode()
        if not 0 < len(name) <= lmdb_keys.MAX_INDEX_NAME_BYTES or 0 in name or journal.name in table:
            raise ConfigurationError(f"{journal.name!r} is no name for a journal, or is used twice")
        table[journal.name] = journal
    return table
