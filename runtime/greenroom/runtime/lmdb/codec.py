"""How a payload becomes the record that lies on disk, and back.

This is the one place between the runtime's bytes and the store's: in an encrypted store `SealedCodec` of
`record_cipher` takes the place of `PlainCodec`.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, Protocol
from zlib import crc32

from greenroom.runtime.base.errors import StoreDamagedError

RECORD_VERSION: Final = 1
_HEADER: Final = Struct(">BI")  # record version, CRC-32 over key and payload


class RecordCodec(Protocol):
    """Turns payloads into records. The key takes part, so that a record under a wrong key is found out."""

    def seal(self, key: bytes, payload: bytes) -> bytes:
        """Return the record to store under ``key``. Runs in the writer's thread."""
        ...

    def open(self, key: bytes, record: bytes) -> bytes:
        """Return the payload of a record read from under ``key``. Runs in any thread.

        Raises:
            StoreDamagedError: the record is not what `seal` made for this key.
        """
        ...


class PlainCodec:
    """A version byte, a CRC-32 over key and payload, and the payload as it is."""

    def seal(self, key: bytes, payload: bytes) -> bytes:
        """Return ``version, checksum, payload``."""
        return _HEADER.pack(RECORD_VERSION, crc32(payload, crc32(key))) + payload

    def open(self, key: bytes, record: bytes) -> bytes:
        """Return the payload after checking it.

        Raises:
            StoreDamagedError: the record is cut short, its checksum is wrong or its version is unknown: what
                a newer program wrote lies in a store whose format is newer, and is not opened.
        """
        if len(record) < _HEADER.size:
            raise damaged(key, f"has {len(record)} bytes and needs {_HEADER.size} at least")
        version, checksum = _HEADER.unpack_from(record)
        payload = record[_HEADER.size :]
        if version != RECORD_VERSION:
            raise damaged(key, f"has the unknown version {version}")
        if crc32(payload, crc32(key)) != checksum:
            raise damaged(key, "does not match its checksum")
        return payload


def damaged(key: bytes, what: str) -> StoreDamagedError:
    """Return the error for a record that is not what it was."""
    return StoreDamagedError(
        f"the record {key!r} {what}; see what else is damaged with `greenroom verify`, "
        "then bring back a backup with `greenroom restore`"
    )
