"""Messages to the actor of a thread of checkpoints; none is a tool."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Final

import msgspec

from greenroom.actors.core.auth.errors import invalid, not_serializable
from greenroom.runtime import Address, Message

KIND: Final = "checkpoints"
MOST_BYTES: Final = 64 << 20
"""The most bytes of all values in one write."""
PAGE_BYTES: Final = 16 << 20
"""A page ends after this many bytes of values."""
MOST_ID_BYTES: Final = 128
"""The most bytes of a checkpoint's id; ids are stored unchanged, since they define the order."""
MOST_METADATA_BYTES: Final = 1 << 20
Version = str | int | float


class CheckpointValue(msgspec.Struct, frozen=True, array_like=True):
    """A serialized value: type name and bytes."""

    type: str
    data: bytes


class ChannelValue(msgspec.Struct, frozen=True, array_like=True):
    """The value of a channel; None if the channel is empty."""

    channel: str
    value: CheckpointValue | None


class CheckpointWrite(msgspec.Struct, frozen=True, array_like=True):
    """A pending write of a task to a channel.

    Attributes:
        task_path: The path of the task in the graph, the first sort key of writes.
        index: The write's number in its task; a write with a negative number may be overwritten.
    """

    task_path: str
    task_id: str
    index: int
    channel: str
    value: CheckpointValue


class CheckpointHead(msgspec.Struct, frozen=True, array_like=True):
    """A checkpoint in a listing."""

    namespace: str
    checkpoint_id: str
    metadata: CheckpointValue


class CheckpointRead(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `ReadCheckpoint`; ``next`` is the ``skip`` of the next page, if there is one."""

    namespace: str
    checkpoint_id: str
    parent_id: str | None
    checkpoint: CheckpointValue
    metadata: CheckpointValue
    values: list[ChannelValue]
    writes: list[CheckpointWrite]
    next: int | None


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A page of a thread's records, and the key to continue after."""

    records: list[tuple[bytes, bytes]]
    next: bytes | None


class PutCheckpoint(Message[None], frozen=True, kw_only=True):
    """Store a checkpoint and its new values; replace a checkpoint with the same id.

    Attributes:
        namespace: Empty for the graph, else the path of a subgraph.
        deltas: Channels with a value that results from writes since an earlier checkpoint.
    """

    thread_id: str
    namespace: str
    checkpoint_id: str
    parent_id: str | None
    checkpoint: CheckpointValue
    metadata: CheckpointValue
    run_id: str | None
    versions: dict[str, Version]
    values: list[ChannelValue]
    deltas: list[str]


class PutWrites(Message[None], frozen=True, kw_only=True):
    """Store writes of tasks for a checkpoint, which may be stored later.

    An existing write stays, unless its number is negative.
    """

    thread_id: str
    namespace: str
    checkpoint_id: str
    writes: list[CheckpointWrite]


class ReadCheckpoint(Message[CheckpointRead | None], frozen=True, kw_only=True):
    """Read a checkpoint, or the newest one, with values and writes of some channels."""

    namespace: str
    checkpoint_id: str | None = None
    channels: list[str] | None = None
    skip: int = 0


class ListCheckpoints(Message[list[CheckpointHead]], frozen=True, kw_only=True):
    """List checkpoints, the newest first.

    ``before`` selects smaller ids. ``after`` is the id and namespace of the last listed checkpoint.
    """

    namespace: str | None = None
    checkpoint_id: str | None = None
    before: str | None = None
    after: tuple[str, str] | None = None
    limit: int = 100


class DeleteThread(Message[bool], frozen=True, kw_only=True):
    """Delete a thread; if the reply is True, more remains, and the sender repeats it."""


class DeleteRuns(Message[bool], frozen=True, kw_only=True):
    """Delete the checkpoints of some runs; the reply is as for `DeleteThread`."""

    run_ids: list[str]


class PruneThread(Message[bool], frozen=True, kw_only=True):
    """Delete checkpoints that no namespace's newest one needs; the reply is as for `DeleteThread`."""


class ReadPart(Message[Part], frozen=True, kw_only=True):
    """Read stored records of a thread, for `CopyPart`."""

    after: bytes | None = None


class CopyPart(Message[bytes | None], frozen=True, kw_only=True):
    """Copy records of another thread of the owner; replies with the key to continue after."""

    source: str
    thread_id: str
    after: bytes | None = None

    def precheck(self) -> tuple[Address, ReadPart]:
        """Read the records from the other thread."""
        return Address(KIND, self.source), ReadPart(after=self.after)


def check_checkpoint(request: PutCheckpoint) -> int:
    """Check a checkpoint to store, and return its bytes."""
    versions = [each for each in request.versions.values() if isinstance(each, str)]
    names = [request.thread_id, request.namespace, request.parent_id, request.run_id]
    check_names([*names, *request.versions, *versions, *request.deltas])
    _check_id(request.checkpoint_id)
    _check_size("metadata", [request.metadata], MOST_METADATA_BYTES)
    for each in request.values:
        if each.channel not in request.versions:
            raise invalid("values", f"values: the channel {each.channel[:40]!r} has no version")
    new = [each.value for each in request.values if each.value is not None]
    return _check_size("checkpoint", [request.checkpoint, request.metadata, *new], MOST_BYTES)


def check_writes(request: PutWrites) -> int:
    """Check writes to store, and return their bytes."""
    of_tasks = [(each.task_path, each.task_id, each.channel) for each in request.writes]
    check_names([request.thread_id, request.namespace, *chain.from_iterable(of_tasks)])
    _check_id(request.checkpoint_id)
    return _check_size("writes", [each.value for each in request.writes], MOST_BYTES)


def check_names(names: Iterable[str | None]) -> None:
    """Check that names have no lone surrogates."""
    for name in names:
        try:
            (name or "").encode()
        except UnicodeEncodeError as error:
            raise not_serializable(f"a name holds a lone surrogate at character {error.start}") from None


def _check_id(checkpoint_id: str) -> None:
    check_names([checkpoint_id])
    size = len(checkpoint_id.encode())
    if not 1 <= size <= MOST_ID_BYTES:
        raise invalid(
            "checkpoint_id",
            f"checkpoint_id: {checkpoint_id[:40]!r} has {size:,} bytes of UTF-8, and it takes 1 to "
            f"{MOST_ID_BYTES}",
            limit=MOST_ID_BYTES,
            size=size,
            unit="bytes",
        )


def _check_size(field: str, values: list[CheckpointValue], most: int) -> int:
    size = sum(len(value.data) for value in values)
    if size > most:
        raise invalid(
            field,
            f"{field}: there are {size:,} bytes, serialized, and the limit is {most:,}; keep what is large "
            "elsewhere, and a reference to it in the state",
            limit=most,
            size=size,
            unit="bytes",
        )
    return size
