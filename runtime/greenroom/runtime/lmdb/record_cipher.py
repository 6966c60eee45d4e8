"""Seal records with AES-256-GCM, and wrap the data key.

Three keys, each of 256 bits:

- The *key-encryption key* belongs to the operator and is kept outside the store. It wraps only the data key,
  so it can be changed without rewriting records.
- The *data key* is random and is created with the store. It never leaves the store unwrapped.
- *Sub-keys* are derived from the data key: one hides names in keys (see `key_blinding`). Others seal records:
  each opening of the store uses one for each 2^30 records.

A nonce must never be used twice under one key, even after a restored backup, a crash or a clock that is set
back. So each opening draws 12 random bytes and derives the sub-keys from them; the nonces under a sub-key
count up. Do not copy a running process, as by a snapshot of a virtual machine, if both copies then write.

Import this module only for an encrypted store, because `cryptography` takes 40 ms.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB

from greenroom.runtime.base.errors import StoreDamagedError, StoreKeyError, StoreTooNewError
from greenroom.runtime.lmdb.codec import damage_error
from greenroom.runtime.lmdb.flipped_bit import Bit, flip, in_ghash

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
_TAG_BYTES: Final = 16
_BLOCK_BYTES: Final = 16
_MOST_BYTES: Final = 1 << 12
"""The largest record in which a flipped bit is searched; the search takes 8 µs a byte, once."""
_KNOWN_DAMAGED: Final = 256

_WRAP_VERSION: Final = b"\x01"
_MARK_BYTES: Final = 8
_WRAP_NONCE_BYTES: Final = 12
_WRAPPED: Final = b"greenroom data key"

_RECORDS: Final = b"greenroom records"

_Cipher = Callable[[bytes, bytes, bytes], bytes]


def derive(key: bytes, purpose: bytes) -> bytes:
    """Return the key for a purpose: the second step of HKDF-SHA256 on a random key."""
    return hmac.digest(key, purpose + b"\x01", hashlib.sha256)


def mark_of(unlock: bytes) -> str:
    """Return the mark of a key-encryption key: it identifies the key and reveals nothing."""
    return derive(unlock, b"greenroom mark")[:_MARK_BYTES].hex()


def check_mark(unlock: bytes, mark: str, name: str) -> None:
    """Check a key-encryption key against the mark of a store."""
    if mark_of(unlock) != mark:
        raise StoreKeyError(
            f"{name} is encrypted with another key: that one has the mark {mark}, and the one given "
            f"{mark_of(unlock)}; name the right one with --encryption-key (in Python: encryption_key)"
        )


def wrap(data_key: bytes, unlock: bytes) -> bytes:
    """Return the data key in stored form, wrapped by a key-encryption key."""
    nonce = os.urandom(_WRAP_NONCE_BYTES)
    head = _WRAP_VERSION + bytes.fromhex(mark_of(unlock))
    return head + nonce + AESGCM(derive(unlock, _WRAPPED)).encrypt(nonce, data_key, _WRAPPED + head)


def unwrap(wrapped: bytes, unlock: bytes | None, name: str) -> bytes:
    """Return the data key of a store."""
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
            f"the wrapped key of {name} is damaged; bring back a backup with `greenroom restore FILE`"
        ) from error


class SealedCodec:
    """Records sealed with AES-256-GCM, which also authenticates their keys.

    A record is a version byte, 12 random bytes of the opening, the number of the sub-key (2 bytes), the
    number of the record under it (4), the encrypted payload, and a tag of 16 bytes.
    """

    __slots__ = (
        "_data_key",
        "_encrypt",
        "_head",
        "_known_damage",
        "_next",
        "_opening",
        "_sub_key_records",
        "_sub_keys",
    )

    def __init__(self, data_key: bytes, *, sub_key_records: int = SUB_KEY_RECORDS) -> None:
        self._data_key = data_key
        self._opening = _VERSION + os.urandom(_OPENING_BYTES)
        self._sub_key_records = sub_key_records
        self._sub_keys: dict[bytes, _Cipher] = {}
        self._known_damage = lru_cache(maxsize=_KNOWN_DAMAGED)(self._find_stored_key)
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
        """Return the payload of a record that lies under ``key``; for any thread."""
        which = record[:_SUB_KEY_END]
        decrypt = self._sub_keys.get(which)
        if decrypt is None:
            if not which.startswith(_VERSION) or len(which) < _SUB_KEY_END:
                what = "is not sealed in a way that this program knows"
                raise damage_error(key, what, self._stored_key(key, record))
            decrypt = self._find_decrypt(which)
        try:
            return decrypt(record[_NONCE], record[_HEAD_BYTES:], key)
        except (InvalidTag, ValueError) as error:
            raise damage_error(key, "does not match its seal", self._stored_key(key, record)) from error

    def mend(self, key: bytes, record: bytes) -> bytes | None:
        """Return the payload if one bit of a short record was flipped."""
        if len(record) > _MOST_BYTES:
            return None
        for bit in range(8 * len(record)):
            tried = flip(record, Bit(bit // 8, 1 << bit % 8))
            with suppress(InvalidTag, ValueError):
                return self._cipher(tried[:_SUB_KEY_END]).decrypt(tried[_NONCE], tried[_HEAD_BYTES:], key)
        return None

    def _stored_key(self, key: bytes, record: bytes) -> bytes | None:
        """Return the key under which a record with one flipped bit was sealed, or None."""
        is_searched = _HEAD_BYTES + _TAG_BYTES <= len(record) <= _MOST_BYTES
        return self._known_damage(key, record) if is_searched else None

    def _find_stored_key(self, key: bytes, record: bytes) -> bytes | None:
        for bit in range(8 * _HEAD_BYTES):
            head = flip(record[:_HEAD_BYTES], Bit(bit // 8, 1 << bit % 8))
            if head.startswith(_VERSION) and self._is_sealed(head, key, record[_HEAD_BYTES:]):
                return key
        return self._find_flipped_bit(key, record) if record.startswith(_VERSION) else None

    def _is_sealed(self, head: bytes, key: bytes, sealed: bytes) -> bool:
        try:
            self._cipher(head[:_SUB_KEY_END]).decrypt(head[_NONCE], sealed, key)
        except InvalidTag:
            return False
        return True

    def _find_flipped_bit(self, key: bytes, record: bytes) -> bytes | None:
        """Return the original key of a record if one bit after its head was flipped.

        GCM's hash is linear; to compute the tag of the current bytes, they are sealed again.
        """
        secret = derive(self._data_key, _RECORDS + record[:_SUB_KEY_END])
        cipher, nonce = AESGCM(secret), record[_NONCE]
        sealed, tag = record[_HEAD_BYTES:-_TAG_BYTES], record[-_TAG_BYTES:]
        stream = cipher.encrypt(nonce, bytes(len(sealed)), None)
        plain = bytes(one ^ other for one, other in zip(sealed, stream, strict=False))
        computed = cipher.encrypt(nonce, plain, key)[-_TAG_BYTES:]
        difference = int.from_bytes(tag) ^ int.from_bytes(computed)
        if difference.bit_count() == 1:  # the flipped bit is in the tag itself
            return key
        factor = int.from_bytes(Cipher(AES(secret), ECB()).encryptor().update(bytes(_BLOCK_BYTES)))  # noqa: S305  GCM's own
        of_key, of_sealed = (-(-len(content) // _BLOCK_BYTES) for content in (key, sealed))
        bit = in_ghash(difference, factor, of_key + of_sealed)
        if bit is None:
            return None
        if bit.place >= _BLOCK_BYTES * of_key:
            return key if bit.place - _BLOCK_BYTES * of_key < len(sealed) else None
        return flip(key, bit) if bit.place < len(key) else None

    def _use_sub_key(self, number: int) -> _Cipher:
        self._head = self._opening + number.to_bytes(_SUB_KEY_BYTES)
        return self._cipher(self._head).encrypt

    def _find_decrypt(self, which: bytes) -> _Cipher:
        if len(self._sub_keys) >= _KNOWN_SUB_KEYS:
            self._sub_keys.clear()  # the store had many openings; sub-keys are derived again
        decrypt = self._sub_keys[which] = self._cipher(which).decrypt
        return decrypt

    def _cipher(self, which: bytes) -> AESGCM:
        return AESGCM(derive(self._data_key, _RECORDS + which))
