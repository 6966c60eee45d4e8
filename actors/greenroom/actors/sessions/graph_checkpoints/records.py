"""Records of a thread's actor, and its row in the directory.

t                                       the thread, as the caller names it
c namespace id                          a checkpoint, without the values of its channels
b namespace channel                     the value of a channel at a version
w checkpoint task index                 a pending write
p key number                            the rest of the data of one of these records

Keys have digests of namespaces, channels with versions, checkpoints and tasks. Ids of checkpoints are
unchanged, since they define the order. Large data takes several records.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Final

import msgspec

from greenroom.actors.core.auth.namespaces import user_namespace
from greenroom.actors.sessions.graph_checkpoints.requests import CheckpointValue
from greenroom.runtime import Context, IndexReader, Procedure, Slices

THREAD: Final = b"t"
CHECKPOINTS: Final = b"c"
VALUES: Final = b"b"
WRITES: Final = b"w"
REST: Final = b"p"
DIGEST_BYTES: Final = 16
_HALF: Final = 1 << 31


class StoredData(msgspec.Struct, frozen=True, array_like=True):
    """Serialized data: type, first bytes, and the number of records with the rest."""

    type: str
    data: bytes
    rest: int = 0


class StoredCheckpoint(msgspec.Struct, frozen=True, array_like=True):
    """A checkpoint.

    Attributes:
        values: For each channel the digest that `value_key` takes; an empty channel has no record.
        deltas: Channels with a value that results from writes since an earlier checkpoint.
    """

    namespace: str
    checkpoint_id: str
    parent_id: str | None
    run_id: str | None
    values: dict[str, bytes]
    deltas: list[str]
    metadata: CheckpointValue
    data: StoredData


class StoredValue(msgspec.Struct, frozen=True, array_like=True):
    """The value of a channel at a version."""

    channel: str
    data: StoredData


class StoredWrite(msgspec.Struct, frozen=True, array_like=True):
    """A pending write; see `CheckpointWrite`."""

    task_path: str
    task_id: str
    index: int
    channel: str
    data: StoredData


def digest(*parts: Any) -> bytes:
    """Return a digest of texts and numbers."""
    return blake2b(msgspec.json.encode(parts), digest_size=DIGEST_BYTES).digest()


def checkpoint_key(namespace: str, checkpoint_id: str) -> bytes:
    """Return the key of a checkpoint; with an empty id the prefix of a namespace."""
    return CHECKPOINTS + digest(namespace) + checkpoint_id.encode()


def value_key(namespace: str, value: bytes) -> bytes:
    """Return the key of a value, by the digest of its channel and version."""
    return VALUES + digest(namespace) + value


def writes_key(namespace: str, checkpoint_id: str) -> bytes:
    """Return the prefix of the writes of a checkpoint."""
    return WRITES + digest(namespace, checkpoint_id)


def write_key(namespace: str, checkpoint_id: str, task_id: str, index: int) -> bytes:
    """Return the key of a write."""
    return writes_key(namespace, checkpoint_id) + digest(task_id) + (index + _HALF).to_bytes(4)


def rest_key(key: bytes, number: int) -> bytes:
    """Return the key of a record that has more data of the record at ``key``."""
    return REST + key + number.to_bytes(2)


def names_in(key: bytes) -> tuple[tuple[int, int], ...]:
    """Return the spans of digests in a key."""
    at = len(REST) if key.startswith(REST) else 0
    kind = key[at : at + 1]
    if not kind or kind == THREAD:
        return ()
    first = at + 1
    spans = [(first, first + DIGEST_BYTES)]
    if kind != CHECKPOINTS:
        spans.append((first + DIGEST_BYTES, first + 2 * DIGEST_BYTES))
    return tuple(span for span in spans if span[0] < len(key))


INDEX: Final = "threads"
"""The directory: one index row for each thread with data."""
_OWNER_BYTES: Final = 16
RECORD_BYTES: Final = 1 << 20
"""The most bytes of data in one record, so that a record needs few contiguous pages."""


class _Rest(msgspec.Struct, frozen=True, array_like=True):
    data: bytes


def put_data(context: Context, key: bytes, value: CheckpointValue) -> StoredData:
    """Stage the data beyond the first record; return the data to store at ``key``."""
    data = value.data
    rest = range(RECORD_BYTES, len(data), RECORD_BYTES)
    for number, start in enumerate(rest):
        context.put(rest_key(key, number), _Rest(data[start : start + RECORD_BYTES]))
    return StoredData(value.type, data[:RECORD_BYTES], len(rest))


def get_data(context: Context, key: bytes, stored: StoredData) -> CheckpointValue:
    """Return the data that `put_data` stored."""
    if not stored.rest:
        return CheckpointValue(stored.type, stored.data)
    parts = [stored.data]
    for number in range(stored.rest):
        rest = context.get(rest_key(key, number), _Rest)
        assert rest is not None, "one commit wrote all parts, and a repair keeps all of an actor or nothing"
        parts.append(rest.data)
    return CheckpointValue(stored.type, b"".join(parts))


def delete_data(context: Context, key: bytes, stored: StoredData) -> None:
    """Stage the removal of a record with the rest of its data."""
    context.delete(key)
    for number in range(stored.rest):
        context.delete(rest_key(key, number))


class ThreadRow(msgspec.Struct, frozen=True, array_like=True):
    """A thread with its owner: the namespace of a user or agent."""

    owner: str
    thread_id: str


def row_names(key: bytes) -> tuple[tuple[int, int], ...]:
    """Return the whole sort key as a name."""
    return ((0, len(key)),) if key else ()


def put_row(context: Context, owner: str, thread_id: str) -> None:
    """Stage the row of a thread."""
    context.put_row(INDEX, _of_owner(owner), ThreadRow(owner, thread_id))


def remove_row(context: Context, owner: str) -> None:
    """Stage the removal of the row of a thread."""
    context.delete_row(INDEX, _of_owner(owner))


def _of_owner(owner: str) -> bytes:
    return blake2b(owner.encode(), digest_size=_OWNER_BYTES, person=b"greenroom owner").digest()


class ListThreads(Procedure[list[str]], frozen=True, kw_only=True):
    """List the threads of the caller's user that have checkpoints, unordered; internal."""

    runs = "snapshot"

    def run(self, reader: IndexReader) -> Slices[list[str]]:
        """Read the directory."""
        owner = user_namespace(reader.principal)
        found: list[str] = []
        for row in reader.rows(INDEX, ThreadRow, prefix=_of_owner(owner)):
            if row.value.owner == owner:
                found.append(row.value.thread_id)
            yield
        return found
