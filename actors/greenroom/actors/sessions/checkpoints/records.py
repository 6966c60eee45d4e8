"""Records of the actor of a thread.

t                                       the thread, as the caller names it
c namespace id                          a checkpoint, without the values of its channels
b namespace channel                     the value of a channel at a version
w checkpoint task index                 a pending write
p key number                            what one of these records has too much of

Digests stand for namespaces, channels with their versions, checkpoints and tasks. Ids are as they came,
since they are the order of checkpoints.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Final

import msgspec

from greenroom.actors.schemas.checkpoints import CheckpointValue

THREAD: Final = b"t"
CHECKPOINTS: Final = b"c"
VALUES: Final = b"b"
WRITES: Final = b"w"
REST: Final = b"p"
DIGEST_BYTES: Final = 16
_HALF: Final = 1 << 31


class StoredData(msgspec.Struct, frozen=True, array_like=True):
    """What a serializer wrote: a type, the first bytes, and how many records have the rest."""

    type: str
    data: bytes
    rest: int = 0


class StoredCheckpoint(msgspec.Struct, frozen=True, array_like=True):
    """A checkpoint.

    Attributes:
        values: By channel the digest of `value_key`; there is no record where the channel is empty.
        deltas: Channels whose value follows from writes since an earlier checkpoint.
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
    """A pending write; see `schemas.checkpoints.CheckpointWrite`."""

    task_path: str
    task_id: str
    index: int
    channel: str
    data: StoredData


def digest(*parts: Any) -> bytes:
    """Return 16 bytes that stand for some texts and numbers together."""
    return blake2b(msgspec.json.encode(parts), digest_size=DIGEST_BYTES).digest()


def checkpoint_key(namespace: str, checkpoint_id: str) -> bytes:
    """Return the key of a checkpoint; with an empty id what the keys of a namespace begin with."""
    return CHECKPOINTS + digest(namespace) + checkpoint_id.encode()


def value_key(namespace: str, value: bytes) -> bytes:
    """Return the key of a value, by the digest of its channel and version."""
    return VALUES + digest(namespace) + value


def writes_key(namespace: str, checkpoint_id: str) -> bytes:
    """Return what the keys of a checkpoint's writes begin with."""
    return WRITES + digest(namespace, checkpoint_id)


def write_key(namespace: str, checkpoint_id: str, task_id: str, index: int) -> bytes:
    """Return the key of a write."""
    return writes_key(namespace, checkpoint_id) + digest(task_id) + (index + _HALF).to_bytes(4)


def rest_key(key: bytes, number: int) -> bytes:
    """Return the key of a record that has more of the data of another one."""
    return REST + key + number.to_bytes(2)


def names_in(key: bytes) -> tuple[tuple[int, int], ...]:
    """Say where in a key digests are."""
    at = len(REST) if key.startswith(REST) else 0
    kind = key[at : at + 1]
    if not kind or kind == THREAD:
        return ()
    first = at + 1
    spans = [(first, first + DIGEST_BYTES)]
    if kind != CHECKPOINTS:
        spans.append((first + DIGEST_BYTES, first + 2 * DIGEST_BYTES))
    return tuple(span for span in spans if span[0] < len(key))
