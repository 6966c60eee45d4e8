"""The history of a memory in mem0's form, made of the memory's versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from greenroom.actors import VersionView


def history(
    versions: Sequence[VersionView], texts: Sequence[str | None], payload: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the history of a memory in mem0's form, oldest first.

    Args:
        versions: Its versions, oldest first, at least one.
        texts: The text of each; None for one that is gone.
        payload: The payload of the newest one.
    """
    rows: list[dict[str, Any]] = []
    created_at = versions[0].stored_at.isoformat()
    before: str | None = None
    for version, text in zip(versions, texts, strict=True):
        event = "UPDATE" if rows else "ADD"
        rows.append(_row(version, str(version.version), event, before, text, version.stored_at))
        before = text
    last = versions[-1]
    if last.deleted_at is not None:
        rows.append(_row(last, "deleted", "DELETE", before, None, last.deleted_at))
    speaker = {"actor_id": payload.get("actor_id"), "role": payload.get("role")}
    return [{**row, "created_at": created_at, **speaker} for row in rows]


def _row(
    version: VersionView, name: str, event: str, before: str | None, after: str | None, at: datetime
) -> dict[str, Any]:
    return {
        "id": str(uuid5(UUID(version.memory_id), name)),
        "memory_id": version.memory_id,
        "old_memory": before,
        "new_memory": after,
        "event": event,
        "updated_at": at.isoformat(),
        "is_deleted": event == "DELETE",
    }
