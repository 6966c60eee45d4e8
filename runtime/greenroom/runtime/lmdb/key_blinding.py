"""Key blinding: hide names in the keys of an encrypted store.

Keys cannot be sealed, because they must be found and must sort. So each kind of actor and each shared index
declares which parts of its keys are names. An encrypted store replaces such a part by a MAC of 16 bytes;
numbers and times stay. A name has a different MAC in each actor and index, so it does not link records of
several actors. Within an index its MAC is the same for all actors, because searches need that.

The original key is sealed with its record, for scans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from hashlib import blake2b
from typing import Final

NAME_BYTES: Final = 16
_REMEMBERED: Final = 8_192

Span = tuple[int, int]
Names = Callable[[bytes], Iterable[Span]]
"""Returns the spans of a key that are names, in order.

It also gets prefixes of keys, for scans; if one ends within a name, the span ends beyond the prefix."""


def no_names(_key: bytes) -> Iterable[Span]:
    """Return no spans: a key without names."""
    return ()


class KeyBlinder:
    """Replace the names in keys by their MACs (a blind index).

    The key has 32 bytes, which the file alone does not reveal. Keyed BLAKE2b computes a MAC in one pass.
    """

    __slots__ = ("_key", "_mac")

    def __init__(self, key: bytes) -> None:
        self._key = key
        # A session writes to the same few audiences over and over.
        self._mac = lru_cache(maxsize=_REMEMBERED)(self._new_mac)

    def tag(self, tag: bytes) -> bytes:
        """Return the blinded form of a digest of a name."""
        return blake2b(tag, digest_size=NAME_BYTES, key=self._key, person=b"tag").digest()

    def prefix(self, prefix: bytes) -> bytes:
        """Return the blinded form of an actor's prefix; its kind stays."""
        kind = prefix[: prefix.index(0) + 1]
        return kind + blake2b(prefix, digest_size=NAME_BYTES, key=self._key, person=b"address").digest()

    def blind(self, within: bytes, key: bytes, names: Names) -> bytes:
        """Return a key, or the prefix of a scan, with its names blinded.

        MACs differ between actors and indexes (``within``). Raises ValueError for a prefix that ends within a
        name, because such a prefix finds no keys.
        """
        hidden = b""
        done = 0
        for start, end in names(key):
            if end > len(key):
                raise ValueError(f"a key or a scan ends within a name: {key!r}")
            hidden += key[done:start] + self._mac(within, key[start:end])
            done = end
        return hidden + key[done:] if done else key

    def _new_mac(self, within: bytes, name: bytes) -> bytes:
        mac = blake2b(within, digest_size=NAME_BYTES, key=self._key, person=b"name")
        mac.update(name)
        return mac.digest()


def with_plain_key(key: bytes, hidden: bytes, payload: bytes) -> bytes:
    """Return an actor's record to seal: its original key, if hidden, and the payload."""
    return b"\0" + payload if hidden == key else len(key).to_bytes() + key + payload


def strip_plain_key(record: bytes) -> bytes:
    """Return the payload of a record of `with_plain_key`."""
    return record[1 + record[0] :]


def plain_key(record: bytes, stored: bytes) -> bytes:
    """Return the original key of a record of `with_plain_key` that lies at ``stored``."""
    return record[1 : 1 + record[0]] or stored
