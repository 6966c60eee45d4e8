"""The layout of the store: keys and records of actors and shared indexes.

    ACTORS   kind NUL key NUL "u" own key          an actor's own records
             kind NUL key NUL "t" timer name       the row of that timer
    INDEXES  index NUL sort key NUL NUL actor tag  a row of a shared index (a NUL of the key: NUL 0xff)
             "!timer" NUL due, actor tag           a message to deliver at its time
             "!outbox" NUL number                  a message to deliver after its sender's commit
             "!dead" NUL number                    a message that could not be delivered
             "!answer" NUL request tag             the reply to an idempotent request
             "!relay" NUL relay id, number         the reply to a message that another process relayed

Index names that begin with "!" are the runtime's own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from greenroom.runtime.base.address import Address
from greenroom.runtime.base.errors import ConfigurationError, StoreDamagedError
from greenroom.runtime.lmdb.key_blinding import KeyBlinder, Names, no_names

T = TypeVar("T")
OWN = b"u"
TIMER_BY_NAME = b"t"
TIMERS = b"!timer\0"
OUTBOX = b"!outbox\0"
DEAD = b"!dead\0"
ANSWERS = b"!answer\0"
RELAYED = b"!relay\0"
NUMBER_BYTES = 8
ANSWER_TIMES = "!answer-time"

TAG_BYTES = 16
END_OF_SORT_KEY = b"\0\0"
MAX_KEY_BYTES = 200
MAX_INDEX_NAME_BYTES = 32


class Index(NamedTuple):
    """A shared index: rows that actors write in their own commits and queries read.

    Attributes:
        name: 1-32 characters, not beginning with ``!``.
        names: Returns the spans of sort keys that are names; an encrypted store hides them; see `Names`. The
            result must not change for stored rows.
        ttl: If given, sort keys begin with a time (8 bytes, big-endian, microseconds since 1970), and rows
            older than ``ttl`` microseconds are removed.
    """

    name: str
    ttl: int | None = None
    names: Names = no_names


class Row(NamedTuple, Generic[T]):
    """A row of a shared index.

    ``place`` orders the rows: it is the sort key; in an encrypted store, the names in it are blinded.
    """

    sort_key: bytes
    address: Address
    value: T
    place: bytes


class RowRecord(msgspec.Struct, frozen=True, array_like=True):
    """A stored row of a shared index; ``value`` is msgpack, ``sort_key`` set if hidden."""

    kind: str
    key: str
    value: msgspec.Raw
    sort_key: bytes = b""


class StoredMessage(msgspec.Struct, frozen=True, array_like=True):
    """A stored tell, timer or dead letter; ``body`` is JSON."""

    kind: str
    key: str
    message: str
    body: bytes
    name: str = ""
    reason: str = ""


class StoredAnswer(msgspec.Struct, frozen=True, array_like=True):
    """The stored reply to an idempotent request: its JSON, or its refusal."""

    fingerprint: bytes
    body: bytes
    refusal: str = ""
    sentence: str = ""


class RelayedAnswer(msgspec.Struct, frozen=True, array_like=True):
    """The stored reply to a relayed message: its time (microseconds since 1970) and JSON."""

    time: int
    body: bytes
    variant: str = ""


def row_head(address: Address) -> bytes:
    """Return the beginning of each `RowRecord` of an actor; the encoded value follows."""
    return b"\x93" + encode(address.kind) + encode(address.key)  # an array of three


def with_sort_key(record: bytes, sort_key: bytes) -> bytes:
    """Return a `RowRecord` that also contains its original sort key, which the key hides."""
    return b"\x94" + record[1:] + encode(sort_key)  # an array of four


def index_prefix(name: str) -> bytes:
    """Return the bytes before each row of the index ``name``."""
    return name.encode() + b"\0"


def sortable(sort_key: bytes) -> bytes:
    r"""Escape ``sort_key`` so that a suffix keeps the order: NUL becomes ``NUL 0xff``."""
    return sort_key.replace(b"\0", b"\0\xff")


def prefix_of(address: Address, blinder: KeyBlinder | None) -> bytes:
    """Return the prefix of the keys of an actor's records in a store."""
    return address.prefix() if blinder is None else blinder.prefix(address.prefix())


def tag_of(address: Address, blinder: KeyBlinder | None) -> bytes:
    """Return the suffix of the keys of an actor's rows in a store."""
    return address_tag(address) if blinder is None else blinder.tag(address_tag(address))


def row_key(index: str, sort_key: bytes, tag: bytes) -> bytes:
    """Return the key of a row: at ``sort_key`` of an index, with the actor's `address_tag`."""
    return index_prefix(index) + sortable(sort_key) + END_OF_SORT_KEY + tag


def sort_key_of(index: str, key: bytes) -> bytes:
    """Return the sort key within a row's key."""
    escaped = key[len(index.encode()) + 1 : -len(END_OF_SORT_KEY) - TAG_BYTES]
    return escaped.replace(b"\0\xff", b"\0")


def address_tag(address: Address) -> bytes:
    """Return the 16-byte digest of an address that ends a shared row's key."""
    return hashlib.blake2b(address.prefix(), digest_size=TAG_BYTES).digest()


def timer_tag(address: Address, name: str, number: int) -> bytes:
    """Return the 16-byte digest of one setting of an actor's timer."""
    return hashlib.blake2b(
        address.prefix() + name.encode() + number.to_bytes(8), digest_size=TAG_BYTES
    ).digest()


def timer_key(due: int, tag: bytes) -> bytes:
    """Return the key of a timer's row: by due time, then by its `timer_tag`."""
    return TIMERS + due.to_bytes(8) + tag


def timer_due(row: bytes) -> int:
    """Return when the timer with this row is due."""
    return int.from_bytes(row[len(TIMERS) : len(TIMERS) + 8])


def timer_name_key(prefix: bytes, name: str, blinder: KeyBlinder | None) -> bytes:
    """Return the key under which an actor finds the row of its timer ``name``."""
    key = name.encode()
    if len(key) > MAX_KEY_BYTES:
        raise too_long("a timer's name", key)
    return prefix + TIMER_BY_NAME + (key if blinder is None else blinder.tag(prefix + key))


def too_long(what: str, key: bytes) -> ValueError:
    """Return the error for a key that is too long."""
    return ValueError(f"{what} of {len(key)} bytes is over the limit of {MAX_KEY_BYTES} bytes; hash its tail")


def index_table(indexes: Iterable[Index]) -> dict[str, Index]:
    """Return the indexes by name."""
    table: dict[str, Index] = {}
    for index in indexes:
        name = index.name.encode()
        if not 0 < len(name) <= MAX_INDEX_NAME_BYTES or name[0:1] == b"!" or 0 in name or index.name in table:
            raise ConfigurationError(f"{index.name!r} is no name for an index, or is used twice")
        table[index.name] = index
    return table


encode = msgspec.msgpack.Encoder().encode
encode_json = msgspec.json.Encoder().encode


class _Decoders(dict[Any, Callable[[bytes], Any]]):
    """The decoders, by type of record."""

    def __missing__(self, of: Any) -> Callable[[bytes], Any]:
        decode = self[of] = msgspec.msgpack.Decoder(of).decode
        return decode


_DECODERS = _Decoders()


def decode(payload: bytes, of: type[T]) -> T:
    """Decode a stored record."""
    try:
        value: T = _DECODERS[of](payload)
    except msgspec.DecodeError as error:
        raise StoreDamagedError(
            f"a stored record does not fit {of}: {error}; "
            "run `greenroom verify`, then `greenroom restore FILE`"
        ) from error
    return value
