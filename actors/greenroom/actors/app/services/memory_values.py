"""Arguments and results of the memory service."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from greenroom.actors.app.services.base import ServiceResult
from greenroom.actors.core.replies.memory_types import MemoryKind


class Memory(ServiceResult):
    """One version of a memory.

    Attributes:
        id: The number of this version, unique below the namespace's root.
        memory_id: The UUID of the memory, the same for all its versions.
        value: The stored value; a text stored by another tool is ``{"content": …}``.
        version: Counts from 1.
        created_by: The author of the first version.
        updated_by: The author of this version.
        created_at: When the first version was stored.
        updated_at: When this version was stored.
        expires_at: When it expires; None for never.
    """

    id: int
    memory_id: str
    namespace: str
    key: str
    value: Any
    memory_type: MemoryKind
    metadata: dict[str, Any]
    version: int
    created_by: str | None
    updated_by: str | None
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None


class MemoryVersion(ServiceResult):
    """An entry of a memory's history: author, version, time and task.

    Attributes:
        id: As in `Memory`.
        memory_id: As in `Memory`. A key that was deleted and reused has versions of several memories.
        version: Counts from 1 for each memory.
        deleted_at: When the memory was deleted; None if it was not.
    """

    id: int
    memory_id: str
    version: int
    author: str | None
    stored_at: datetime
    task_id: str | None
    deleted_at: datetime | None


class ListedMemories(ServiceResult):
    """A page of memories.

    Attributes:
        next_cursor: The cursor of the next page; None after the last.
    """

    memories: list[Memory]
    next_cursor: str | None


class MemoryChange(msgspec.Struct, frozen=True, kw_only=True):
    """One of several changes of memories.

    Attributes:
        value: The new value, a dictionary, whether or not the memory exists; None removes it with its
            history.
        expires_in: Seconds until it expires, up to 100 years; None for never.
    """

    namespace: str
    key: str
    value: Mapping[str, Any] | None
    metadata: Mapping[str, Any] | None = None
    expires_in: float | None = None


class MemoryLease(msgspec.Struct, frozen=True, kw_only=True):
    """An extended expiry of a memory: ``expires_in`` seconds from now."""

    namespace: str
    key: str
    expires_in: float
