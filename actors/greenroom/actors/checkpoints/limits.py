"""What a message to the actor of a thread may bring, checked before it travels and where it arrives."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from greenroom.actors.core.auth.errors import invalid, not_serializable
from greenroom.actors.schemas.checkpoints import (
    MOST_BYTES,
    MOST_ID_BYTES,
    MOST_METADATA_BYTES,
    CheckpointValue,
    PutCheckpoint,
    PutWrites,
)


def check_checkpoint(request: PutCheckpoint) -> int:
    """Check a checkpoint that is to be kept, and return how many bytes it brings.

    Raises:
        Refusal: ``VALIDATION_ERROR``: its id does not fit, it is too large, or a value has no version.
    """
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
    """Check writes that are to be kept, and return how many bytes they bring.

    Raises:
        Refusal: ``VALIDATION_ERROR``: the id of the checkpoint does not fit, or they are too large.
    """
    of_tasks = [(each.task_path, each.task_id, each.channel) for each in request.writes]
    check_names([request.thread_id, request.namespace, *chain.from_iterable(of_tasks)])
    _check_id(request.checkpoint_id)
    return _check_size("writes", [each.value for each in request.writes], MOST_BYTES)


def check_names(names: Iterable[str | None]) -> None:
    """Check that names are texts that can be kept.

    Raises:
        Refusal: ``SERIALIZATION_ERROR``: one holds a lone surrogate.
    """
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
