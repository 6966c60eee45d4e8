"""What becomes of the API keys of a damaged store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from greenroom.actors.auth.grants import Grant, KeyRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

LOST: Final = KeyRecord(
    key_id="lost",
    digest=b"",
    grant=Grant(name="keys lost in a repair", scopes=frozenset()),
    created=0,
    created_by=None,
    expires=0,
)
"""Stands for keys of which nothing is left: without any key a server would let everybody in."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(KeyRecord).decode


def revoked(records: Mapping[bytes, bytes], *, key: bytes, now: int) -> dict[bytes, bytes]:
    """Return the records of a keeper that may lack some: with every key revoked, and at least one there.

    Nobody can say of a key that is still there what else was to be known of it.

    Args:
        records: Those that are sound.
        key: What the keys of the keys' own records begin with.
        now: The time in microseconds since 1970.
    """
    mended = dict(records)
    keys = {place: _decode(record) for place, record in records.items() if place.startswith(key)}
    for place, record in (keys or {key + LOST.key_id.encode(): LOST}).items():
        mended[place] = _encode(msgspec.structs.replace(record, revoked=record.revoked or now))
    return mended
