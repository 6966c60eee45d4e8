"""Checkpoints of graphs: the messages to the actor of a thread, and its answers. None of them is a tool."""

from __future__ import annotations

from typing import Final

import msgspec

from greenroom.runtime import Address, Message

KIND: Final = "checkpoints"
MOST_BYTES: Final = 64 << 20
"""Bytes of all values in one message that writes."""
PAGE_BYTES: Final = 16 << 20
"""After so many bytes of values an answer ends, and goes on in the next one."""
MOST_ID_BYTES: Final = 128
"""Of a checkpoint's id, in UTF-8: ids are the order of checkpoints, so they are kept as they are."""
MOST_METADATA_BYTES: Final = 1 << 20

Version = str | int | float


class CheckpointValue(msgspec.Struct, frozen=True, array_like=True):
    """A value as a serializer wrote it: the name that it gave to the type, and bytes."""

    type: str
    data: bytes


class ChannelValue(msgspec.Struct, frozen=True, array_like=True):
    """The value of a channel; None: the channel is empty."""

    channel: str
    value: CheckpointValue | None


class CheckpointWrite(msgspec.Struct, frozen=True, array_like=True):
    """A write of a task to a channel that no checkpoint has yet.

    Attributes:
        task_path: Where the task is in the graph; writes of a checkpoint sort by it first.
        index: Its number among the writes of the task; negative for what may be written anew.
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
    """Answers `ReadCheckpoint`.

    Attributes:
        values: The values of channels, or some of them.
        writes: Those that are pending, or some of them.
        next: How many values and writes there were so far, where there are more; else None.
    """

    namespace: str
    checkpoint_id: str
    parent_id: str | None
    checkpoint: CheckpointValue
    metadata: CheckpointValue
    values: list[ChannelValue]
    writes: list[CheckpointWrite]
    next: int | None


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Some of a thread's records, and the key after which there are more."""

    records: list[tuple[bytes, bytes]]
    next: bytes | None


class PutCheckpoint(Message[None], frozen=True, kw_only=True):
    """Keep a checkpoint and the values that are new in it; one with the same id is replaced.

    Attributes:
        thread_id: As the caller names the thread.
        namespace: Empty for a graph, else the path of a graph within it.
        parent_id: The checkpoint before it.
        checkpoint: It, without the values of channels.
        run_id: The run that made it.
        versions: The version of each channel that it has.
        values: Those that are new, at these versions.
        deltas: Channels whose value follows from writes since an earlier checkpoint.
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
    """Keep writes of tasks beside a checkpoint, which may come later; one that is there already stays.

    One with a negative number replaces the earlier one.
    """

    thread_id: str
    namespace: str
    checkpoint_id: str
    writes: list[CheckpointWrite]


class ReadCheckpoint(Message[CheckpointRead | None], frozen=True, kw_only=True):
    """Read a checkpoint with its values and writes; without an id the newest one.

    Attributes:
        channels: Only values of these channels, and writes to them.
        skip: How many values and writes were read already.
    """

    namespace: str
    checkpoint_id: str | None = None
    channels: list[str] | None = None
    skip: int = 0


class ListCheckpoints(Message[list[CheckpointHead]], frozen=True, kw_only=True):
    """List checkpoints, the newest first.

    Attributes:
        namespace: Only those of this one.
        checkpoint_id: Only those with this id.
        before: Only those with smaller ids.
        after: The last one that was listed: its id and its namespace.
        limit: How many at most.
    """

    namespace: str | None = None
    checkpoint_id: str | None = None
    before: str | None = None
    after: tuple[str, str] | None = None
    limit: int = 100


class DeleteThread(Message[bool], frozen=True, kw_only=True):
    """Delete all that is kept of a thread; answered with whether there is more, so that it is asked again."""


class DeleteRuns(Message[bool], frozen=True, kw_only=True):
    """Delete the checkpoints that some runs made; answered as `DeleteThread`."""

    run_ids: list[str]


class PruneThread(Message[bool], frozen=True, kw_only=True):
    """Delete all but the newest checkpoint of each namespace, and what that one needs; as `DeleteThread`."""


class ReadPart(Message[Part], frozen=True, kw_only=True):
    """Read records of a thread as they are stored; `CopyPart` asks this."""

    after: bytes | None = None


class CopyPart(Message[bytes | None], frozen=True, kw_only=True):
    """Copy records of another thread of the same owner; answered with the key after which there are more.

    Attributes:
        source: The key of the actor of the thread to copy.
        thread_id: As the caller names this thread.
        after: What was answered before.
    """

    source: str
    thread_id: str
    after: bytes | None = None

    def precheck(self) -> tuple[Address, ReadPart]:
        """Ask the other thread for them."""
        return Address(KIND, self.source), ReadPart(after=self.after)
