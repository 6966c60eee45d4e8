"""A memory's records and keys.

    e scope hash            an entry, without its values
    v entry version         one version's value
    o scope update          the entry updated so-manyth, by scope
    a update                the same over all scopes
    x time entry version    a version that expires
    d entry                 the versions of a deleted entry that are still on disk

Entries and updates are numbered by one counter. A key may have 1,020 bytes and the store's
take 200, so an entry lies under a digest of its key.
"""

from __future__ import annotations

import functools
from hashlib import blake2b

import msgspec

from greenroom.actors._times import optional_datetime, to_datetime
from greenroom.actors.requests import _replies as replies

UPDATES = b"a"
EXPIRIES = b"x"
DELETED = b"d"
GLOBAL = b"g"


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """A key's current state. ``number`` is the entry's for good, ``update`` that of its newest version."""

    key: str
    session_id: str | None
    number: int
    update: int
    version: int
    created_at: int
    updated_at: int
    expires_at: int | None
    value_size: int


class Version(msgspec.Struct, frozen=True, array_like=True):
    """One value; both JSON texts are as received."""

    stored_at: int
    expires_at: int | None
    metadata: bytes
    value: bytes


class Ends(msgspec.Struct, frozen=True, array_like=True):
    """A version of which only the end is read; its value may be large."""

    stored_at: int
    expires_at: int | None


def scope_bytes(session_id: str | None) -> bytes:
    """Return what tells scopes apart in keys."""
    return GLOBAL if session_id is None else b"s" + session_id.encode() + b"\0"


def scope_name(session_id: str | None) -> replies.Scope:
    """Return the scope's name on the wire."""
    return "global" if session_id is None else "session"


@functools.lru_cache(maxsize=1_024)
def entry_key(session_id: str | None, key: str) -> bytes:
    """Return where an entry lies."""
    return b"e" + scope_bytes(session_id) + blake2b(key.encode(), digest_size=32).digest()


def versions_prefix(number: int) -> bytes:
    """Return the bytes before the version numbers of an entry's values."""
    return b"v" + number.to_bytes(8)


def version_key(number: int, version: int) -> bytes:
    """Return where a value lies."""
    return versions_prefix(number) + version.to_bytes(8)


def updates_prefix(session_id: str | None) -> bytes:
    """Return the bytes before the updates of one scope."""
    return b"o" + scope_bytes(session_id)


def order_keys(entry: Entry) -> tuple[bytes, bytes]:
    """Return where the entry stands in its scope's order and in the order of all."""
    update = entry.update.to_bytes(8)
    return updates_prefix(entry.session_id) + update, UPDATES + update


def expiry_key(expires_at: int, number: int, version: int) -> bytes:
    """Return where it is noted that a version expires."""
    return EXPIRIES + expires_at.to_bytes(8) + number.to_bytes(8) + version.to_bytes(8)


def deleted_key(number: int) -> bytes:
    """Return where it is noted that a deleted entry has versions left on disk."""
    return DELETED + number.to_bytes(8)


def is_live(expires_at: int | None, now: int) -> bool:
    """Return whether something is there for readers: no longer from the very moment it expires."""
    return expires_at is None or now < expires_at


def view(entry: Entry) -> replies.MemoryEntry:
    """Return an entry as its owner gets it in a listing."""
    return replies.MemoryEntry(
        key=entry.key,
        scope=scope_name(entry.session_id),
        session_id=entry.session_id,
        version=entry.version,
        created_at=to_datetime(entry.created_at),
        updated_at=to_datetime(entry.updated_at),
        expires_at=optional_datetime(entry.expires_at),
        value_size=entry.value_size,
    )
