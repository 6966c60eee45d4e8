"""What the memory service takes and returns."""

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
        namespace: Where it is.
        key: Its key.
        value: What was stored; a text that another tool stored comes as ``{"content": …}``.
        memory_type: What kind of memory it is.
        metadata: A dictionary of what JSON can hold.
        version: Counts from 1.
        created_by: Who wrote the first version.
        updated_by: Who wrote this one.
        created_at: When the first version was written.
        updated_at: When this one was written.
        expires_at: When it ends, None for never.
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
    """One entry of a memory's history: who wrote which version when, and for which task.

    Attributes:
        id: As in `Memory`.
        memory_id: As in `Memory`. A key that was deleted and taken anew has versions of several.
        version: Counts from 1 for each memory.
        author: Who wrote it.
        stored_at: When.
        task_id: For which task.
        deleted_at: When the memory was deleted, None for one that is there.
    """

    id: int
    memory_id: str
    version: int
    author: str | None
    stored_at: datetime
    task_id: str | None
    deleted_at: datetime | None


class ListedMemories(ServiceResult):
    """Some of several memories.

    Attributes:
        memories: They.
        next_cursor: Leads to the next ones; None where there are no more.
    """

    memories: list[Memory]
    next_cursor: str | None


class MemoryChange(msgspec.Struct, frozen=True, kw_only=True):
    """One of several changes of memories.

    Attributes:
        namespace: Where.
        key: Under which key.
        value: What the memory says from now on, as a dictionary, whether or not there was one; None: it goes
            for good, with its history.
        metadata: A dictionary, in the place of what there was.
        expires_in: When it ends, in seconds from now, up to 100 years; None for never.
    """

    namespace: str
    key: str
    value: Mapping[str, Any] | None
    metadata: Mapping[str, Any] | None = None
    expires_in: float | None = None


class MemoryLease(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that is to last longer: until ``expires_in`` seconds from now."""

    namespace: str
    key: str
    expires_in: float
