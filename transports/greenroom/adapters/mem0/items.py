"""Memories and their histories in mem0's form, and mem0's payloads as metadata."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, NamedTuple
from uuid import UUID, uuid5

import msgspec
from msgspec import UNSET

from greenroom.actors import MemoryHit, MemoryView, VersionView

PROMOTED = ("user_id", "agent_id", "run_id", "actor_id", "role", "attributed_to", "expiration_date")
FIXED = frozenset({"user_id", "agent_id", "run_id", "actor_id"})
"""Members that only arguments and messages set, and that never change."""
_CORE = frozenset({"data", "hash", "created_at", "updated_at", "id", "text_lemmatized"})
_MEANT = re.compile(r"_*(?:tags|importance|expiry|scope)")
_ESCAPED = re.compile(r"_+(?:tags|importance|expiry|scope)")


class Item(NamedTuple):
    """A memory."""

    id: str
    text: str
    payload: dict[str, Any]  # ids of the owner and metadata, as in mem0
    created_at: datetime  # of the first version
    updated_at: datetime  # of this version

    @property
    def is_expired(self) -> bool:
        """Whether the memory's last day is over; an invalid day counts as not over."""
        try:
            until = expiration(self.payload.get("expiration_date"))
        except ValueError:
            return False
        return until is not None and date.fromisoformat(until) < datetime.now(UTC).date()

    def to_mem0(self) -> dict[str, Any]:
        """Return the memory in mem0's form, without a score."""
        more = {
            name: value for name, value in self.payload.items() if name not in _CORE and name not in PROMOTED
        }
        return {
            "id": self.id,
            "memory": self.text,
            "hash": hashlib.md5(self.text.encode(), usedforsecurity=False).hexdigest(),
            "metadata": more or None,
            "created_at": self.created_at.isoformat(),
            "updated_at": self.updated_at.isoformat(),
            **{name: self.payload[name] for name in PROMOTED if name in self.payload},
        }


def item(memory: MemoryView | MemoryHit) -> Item:
    """Convert a memory that was read, listed or found with its whole text."""
    raw = {} if memory.metadata is UNSET else msgspec.json.decode(memory.metadata)
    payload = {name[1:] if _ESCAPED.fullmatch(name) else name: value for name, value in raw.items()}
    text = memory.content
    if not isinstance(text, str):
        text = "" if memory.value is UNSET else bytes(memory.value).decode()
    return Item(memory.memory_id, text, payload, memory.created_at, memory.updated_at)


def metadata_of(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return a payload as metadata; a name that means something there gets a leading ``_``."""
    return {f"_{name}" if _MEANT.fullmatch(name) else name: value for name, value in payload.items()}


def expiration(value: Any) -> str | None:
    """Return a day as ``YYYY-MM-DD``."""
    if value is None:
        return None
    if isinstance(value, datetime):
        return value.date().isoformat()
    if isinstance(value, date):
        return value.isoformat()
    try:
        return date.fromisoformat(value).isoformat()
    except (TypeError, ValueError) as error:
        raise ValueError("expiration_date must be a valid date in YYYY-MM-DD format.") from error


def history(
    versions: Sequence[VersionView], texts: Sequence[str | None], payload: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the history of a memory in mem0's form, oldest first."""
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
