"""Encode payloads as records on disk, and decode them.

An encrypted store uses `SealedCodec` of `record_cipher` instead of `PlainCodec`.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import Final, Protocol
from zlib import crc32

from greenroom.runtime.base.errors import RecordDamagedError
from greenroom.runtime.lmdb import flipped_bit

RECORD_VERSION: Final = 1
_HEADER: Final = Struct(">BI")  # record version, CRC-32 over key and payload


class RecordCodec(Protocol):
    """Turn payloads into records, bound to their keys."""

    def seal(self, key: bytes, payload: bytes) -> bytes:
        """Return the record to store under ``key``. Runs in the writer's thread."""
        ...

    def open(self, key: bytes, record: bytes) -> bytes:
        """Return the payload of a record that lies under ``key``. Runs in any thread.

        Raises:
            RecordDamagedError: the record is not what `seal` made for this key. The error has the original
                key if this key can be proven.
        """
        ...

    def mend(self, key: bytes, record: bytes) -> bytes | None:
        """Return the payload of a damaged record under a sound key, or None."""
        ...


class PlainCodec:
    """A version byte, a CRC-32 over key and payload, and the payload as it is."""

    def seal(self, key: bytes, payload: bytes) -> bytes:
        """Return ``version, checksum, payload``."""
        return _HEADER.pack(RECORD_VERSION, crc32(payload, crc32(key))) + payload

    def open(self, key: bytes, record: bytes) -> bytes:
        """Return the payload after checking it."""
        if len(record) < _HEADER.size:
            raise damage_error(key, f"has {len(record)} bytes and needs {_HEADER.size} at least")
        version, checksum = _HEADER.unpack_from(record)
        payload = record[_HEADER.size :]
        if version != RECORD_VERSION:
            what = f"has the unknown version {version}"
            raise damage_error(key, what, key if crc32(payload, crc32(key)) == checksum else None)
        if (computed := crc32(payload, crc32(key))) != checksum:
            raise damage_error(
                key, "does not match its checksum", _stored_key(key, payload, computed ^ checksum)
            )
        return payload

    def mend(self, key: bytes, record: bytes) -> bytes | None:
        """Return the payload if one bit of the record was flipped."""
        if len(record) < _HEADER.size:
            return None
        _, checksum = _HEADER.unpack_from(record)
        payload = record[_HEADER.size :]
        difference = crc32(payload, crc32(key)) ^ checksum
        if difference.bit_count() <= 1:  # the flipped bit is in the version or in the checksum itself
            return payload
        bit = flipped_bit.in_crc(difference, len(key) + len(payload))
        if bit is None or bit.place < len(key):
            return None
        return flipped_bit.flip(key + payload, bit)[len(key) :]


@lru_cache(maxsize=64)  # a record of 64 KiB takes 45 ms, again after each write of its page
def _stored_key(key: bytes, payload: bytes, difference: int) -> bytes | None:
    """Return the key under which a record was stored; None if unknown."""
    if difference.bit_count() == 1:  # the flipped bit is in the checksum itself
        return key
    bit = flipped_bit.in_crc(difference, len(key) + len(payload))
    if bit is None or bit.place >= len(key):
        return None if bit is None else key
    return flipped_bit.flip(key, bit)


def damage_error(key: bytes, what: str, stored_key: bytes | None = None) -> RecordDamagedError:
    """Return the error for a damaged record at ``key``, stored under ``stored_key`` if known."""
    known = key if stored_key is None else stored_key
    return RecordDamagedError(
        known,
        f"the record {known!r} {what}; see what else is damaged with `greenroom verify`, "
        "then bring back a backup with `greenroom restore FILE`",
        lies_at=key,
        is_key_known=stored_key is not None,
    )


def pass_over(_error: RecordDamagedError) -> None:
    """Ignore a damaged record, which the store has already reported."""
