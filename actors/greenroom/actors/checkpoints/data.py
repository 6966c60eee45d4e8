"""What serializers wrote, as records: what is too large for one lies in several."""

from __future__ import annotations

from typing import Final

import msgspec

from greenroom.actors.schemas.checkpoints import CheckpointValue
from greenroom.actors.sessions.checkpoints import records
from greenroom.actors.sessions.checkpoints.records import StoredData
from greenroom.runtime import Context

RECORD_BYTES: Final = 1 << 20
"""Bytes of data in one record; more would want that many pages side by side in the file."""


class _Rest(msgspec.Struct, frozen=True, array_like=True):
    data: bytes


def put_data(context: Context, key: bytes, value: CheckpointValue) -> StoredData:
    """Stage what does not fit into the record at ``key``, and return what does."""
    data = value.data
    rest = range(RECORD_BYTES, len(data), RECORD_BYTES)
    for number, start in enumerate(rest):
        context.put(records.rest_key(key, number), _Rest(data[start : start + RECORD_BYTES]))
    return StoredData(value.type, data[:RECORD_BYTES], len(rest))


def get_data(context: Context, key: bytes, stored: StoredData) -> CheckpointValue:
    """Return what `put_data` put."""
    if not stored.rest:
        return CheckpointValue(stored.type, stored.data)
    parts = [stored.data]
    for number in range(stored.rest):
        rest = context.get(records.rest_key(key, number), _Rest)
        assert rest is not None, "it came with the first part, and a repair keeps all of an actor or nothing"
        parts.append(rest.data)
    return CheckpointValue(stored.type, b"".join(parts))


def delete_data(context: Context, key: bytes, stored: StoredData) -> None:
    """Stage the removal of a record and of what did not fit into it."""
    context.delete(key)
    for number in range(stored.rest):
        context.delete(records.rest_key(key, number))
