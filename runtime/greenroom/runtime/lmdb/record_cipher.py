"""Sealed records, the data key that they are sealed under, and how that key itself is wrapped.

Three keys, each of 256 bits:

- The *key-encryption key* is the operator's and kept outside the store. It wraps the data key and nothing
  else, so that it can be changed without rewriting a record.
- The *data key* is random, made with the store, and never leaves it unwrapped.
- *Sub-keys* follow from the data key: one that hides names in keys (see `key_blinding`), and for records one
  for each 2^30 that one opening of the store seals.

A record is sealed with AES-256-GCM. Its nonce must never come twice under one key, whatever happens: a
backup that is brought back, a crash, a clock that is set back. So each opening draws 12 random bytes, the
sub-keys follow from these, and under a sub-key the nonces count. What must not happen is that a running
process is copied, as a snapshot of a virtual machine does, and both copies write on.

Imported only for a store that is sealed, since `cryptography` takes 40 ms.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from greenroom.runtime.base.errors import StoreDamagedError, StoreKeyError, StoreTooNewError
from greenroom.runtime.lmdb.codec import damaged

KEY_BYTES: Final = 32
SUB_KEY_RECORDS: Final = 1 << 30

_VERSION: Final = b"\x81"
_OPENING_BYTES: Final = 12
_SUB_KEY_BYTES: Final = 2
_NUMBER_BYTES: Final = 4
_SUB_KEY_END: Final = 1 + _OPENING_BYTES + _SUB_KEY_BYTES
_HEAD_BYTES: Final = _SUB_KEY_END + _NUMBER_BYTES
_NONCE: Final = slice(_HEAD_BYTES - 12, _HEAD_BYTES)
_KNOWN_SUB_KEYS: Final = 1_024

_WRAP_VERSION: Final = b"\x01"
_MARK_BYTES: Final = 8
_WRAP_NONCE_BYTES: Final = 12
_WRAPPED: Final = b"greenroom data key"

_Cipher = Callable[[bytes, bytes, bytes], bytes]


def derive(key: bytes, purpose: bytes) -> bytes:
    """Return the key for a purpose: HKDF-SHA256's second step, since what it follows from is random."""
    return hmac.digest(key, purpose + b"\x01", hashlib.sha256)


def mark_of(unlock: bytes) -> str:
    """Return by what a key-encryption key is told from others; nothing follows from it."""
    return derive(unlock, b"greenroom mark")[:_MARK_BYTES].hex()


def check_mark(unlock: bytes, mark: str, name: str) -> None:
    """Compare a key-encryption key with the mark of a store's.

    Raises:
        StoreKeyError: it is another key.
    """
    if mark_of(unlock) != mark:
        raise StoreKeyError(
            f"{name} is encrypted with another key: that one has the mark {mark}, and the one given "
            f"{mark_of(unlock)}; name the right one with --encryption-key (in Python: encryption_key)"
        )


def wrap(data_key: bytes, unlock: bytes) -> bytes:
    """Return the data key wrapped by a key-encryption key, as it lies in the store."""
    nonce = os.urandom(_WRAP_NONCE_BYTES)
    head = _WRAP_VERSION + bytes.fromhex(mark_of(unlock))
    return head + nonce + AESGCM(derive(unlock, _WRAPPED)).encrypt(nonce, data_key, _WRAPPED + head)


def unwrap(wrapped: bytes, unlock: bytes | None, name: str) -> bytes:
    """Return the data key of a store.

    Args:
        wrapped: What lies in the store.
        unlock: The key-encryption key, if there is one.
        name: What sentences call the store.

    Raises:
        StoreKeyError: it is another key, or there is none.
        StoreDamagedError: what lies in the store is not what `wrap` made.
        StoreTooNewError: a newer program wrapped it.
    """
    head = wrapped[: 1 + _MARK_BYTES]
    if wrapped[:1] > _WRAP_VERSION:
        raise StoreTooNewError(
            f"{name} is sealed in a way that this program does not know; upgrade Greenroom"
        )
    mark = head[1:].hex()
    if unlock is None:
        raise StoreKeyError(
            f"{name} is encrypted and no key was given; name the one with the mark {mark} "
            "with --encryption-key (in Python: encryption_key)"
        )
    check_mark(unlock, mark, name)
    nonce = wrapped[len(head) : len(head) + _WRAP_NONCE_BYTES]
    try:
        return AESGCM(derive(unlock, _WRAPPED)).decrypt(
            nonce, wrapped[len(head) + len(nonce) :], _WRAPPED + head
        )
    except (InvalidTag, ValueError) as error:
        raise StoreDamagedError(
            f"the wrapped key of {name} is damaged; bring back a backup with `greenroom restore`"
        ) from error


class SealedCodec:
    """Records sealed with AES-256-GCM; the key that a record lies under is authenticated with it.

    A record is a version byte, 12 random bytes of the opening, the number of the sub-key (2 bytes), that of
    the record under it (4), and then what GCM makes of the payload, with a tag of 16 bytes.

    Args:
        data_key: 32 random bytes.
        sub_key_records: How many records one sub-key seals.
    """

    __slots__ = ("_data_key", "_encrypt", "_head", "_next", "_opening", "_sub_key_records", "_sub_keys")

    def __init__(self, data_key: bytes, *, sub_key_records: int = SUB_KEY_RECORDS) -> None:
        self._data_key = data_key
        self._opening = _VERSION + os.urandom(_OPENING_BYTES)
        self._sub_key_records = sub_key_records
        self._sub_keys: dict[bytes, _Cipher] = {}
        self._head = b""
        self._next = 0
        self._encrypt: _Cipher = self._use_sub_key(0)

    def seal(self, key: bytes, payload: bytes) -> bytes:
        """Return the record to store under ``key``; for one thread at a time."""
        number = self._next
        if number == self._sub_key_records:
            self._encrypt = self._use_sub_key(int.from_bytes(self._head[-_SUB_KEY_BYTES:]) + 1)
            number = 0
        self._next = number + 1
        head = self._head + number.to_bytes(_NUMBER_BYTES)
        return head + self._encrypt(head[_NONCE], payload, key)

    def open(self, key: bytes, record: bytes) -> bytes:
        """Return the payload of a record read from under ``key``; for any thread.

        Raises:
            StoreDamagedError: the record is not what `seal` made for this key.
        """
        which = record[:_SUB_KEY_END]
        decrypt = self._sub_keys.get(which)
        if decrypt is None:
            if not which.startswith(_VERSION) or len(which) < _SUB_KEY_END:
                raise damaged(key, "is not sealed in a way that this program knows")
            decrypt = self._decrypting(which)
        try:
            return decrypt(record[_NONCE], record[_HEAD_BYTES:], key)
        except (InvalidTag, ValueError) as error:
            raise damaged(key, "does not match its seal") from error

    def _use_sub_key(self, number: int) -> _Cipher:
        self._head = self._opening + number.to_bytes(_SUB_KEY_BYTES)
        return self._cipher(self._head).encrypt

    def _decrypting(self, which: bytes) -> _Cipher:
        if len(self._sub_keys) >= _KNOWN_SUB_KEYS:
            self._sub_keys.clear()  # a store that was opened so often; they are made again
        decrypt = self._sub_keys[which] = self._cipher(which).decrypt
        return decrypt

    def _cipher(self, which: bytes) -> AESGCM:
        return AESGCM(derive(self._data_key, b"greenroom records" + which))
