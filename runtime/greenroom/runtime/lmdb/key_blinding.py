"""Key blinding: how names are hidden in the keys of an encrypted store.

A key cannot be sealed: it must be found again, and what is in it must sort. So each kind of actor and each
shared index says which parts of its keys are names, and in an encrypted store 16 bytes stand for such a
part, a MAC of it. The numbers and times between them stay, and sort as ever. A name looks different in every
actor and every index, so what several actors keep of one name cannot be brought together by it. Within
an index it looks the same, since there it is looked for over all actors.

What a key was is sealed with its record, so that a scan can tell.
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
"""Says which parts of a key are names, from where to where, in order.

It gets beginnings of keys, too, as scans have them. Where one ends within a name the part ends beyond it."""


def no_names(_key: bytes) -> Iterable[Span]:
    """Say that there are no names in a key."""
    return ()


class KeyBlinder:
    """Replaces the names in keys by MACs of them (a blind index).

    Args:
        key: 32 bytes that nobody has who has the file alone. Keyed BLAKE2b is a MAC, in one pass.
    """

    __slots__ = ("_key", "_mac")

    def __init__(self, key: bytes) -> None:
        self._key = key
        # A session writes to the same few audiences over and over.
        self._mac = lru_cache(maxsize=_REMEMBERED)(self._new_mac)

    def tag(self, tag: bytes) -> bytes:
        """Return what stands for a digest of a name."""
        return blake2b(tag, digest_size=NAME_BYTES, key=self._key, person=b"tag").digest()

    def prefix(self, prefix: bytes) -> bytes:
        """Return what stands for an actor's prefix; its kind stays."""
        kind = prefix[: prefix.index(0) + 1]
        return kind + blake2b(prefix, digest_size=NAME_BYTES, key=self._key, person=b"address").digest()

    def blind(self, within: bytes, key: bytes, names: Names) -> bytes:
        """Return a key with what stands for the names in it.

        Args:
            within: What the key belongs to: the same name gives something else in another.
            key: A key, or what the keys of a scan begin with.
            names: Which of its parts are names.

        Raises:
            ValueError: it ends within a name, so that nobody could say which keys begin like it.
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
    """Return what is sealed as an actor's record: what its key was, if it is hidden, and the payload."""
    return b"\0" + payload if hidden == key else len(key).to_bytes() + key + payload


def strip_plain_key(record: bytes) -> bytes:
    """Return the payload of what `wrapped` made."""
    return record[1 + record[0] :]


def plain_key(record: bytes, stored: bytes) -> bytes:
    """Return the key of what `wrapped` made and lies at ``stored``."""
    return record[1 : 1 + record[0]] or stored
