"""SQLite files of mcp-memory-service: its table ``memories``, as its SQLite storage writes it.

The content's hash becomes the key, so the same file again changes nothing. Memories that the program had
deleted are left out. A superseded memory stays superseded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from greenroom.actors.memories.transfer.normalize import (
    KINDS,
    BadRecord,
    Item,
    RecordError,
    SourceError,
    SourceLine,
    fraction_of,
    key_of,
    object_of,
    source_line,
    tags_of,
    text_in,
    time_of,
)
from greenroom.actors.memories.transfer.sqlite_file import open_sqlite, remarks, rows, tables_of

_SHOWN = 80
_IMPORTANCE = ("importance_score", "importance", "quality_score")


def read(path: Path) -> Iterator[Item]:
    """Yield the memories that are not deleted, oldest first."""
    if "memories" not in tables_of(path):
        raise SourceError(f"{path} is no file of mcp-memory-service: it has no table memories")
    size = path.stat().st_size
    with open_sqlite(path) as connection:
        columns = {row["name"] for row in connection.execute("PRAGMA table_info(memories)")}
        if not {"content", "content_hash"} <= columns:
            raise SourceError(f"{path} is no file of mcp-memory-service: its memories have no content_hash")
        there = "WHERE deleted_at IS NULL" if "deleted_at" in columns else ""
        (count,) = connection.execute(f"SELECT count(*) FROM memories {there}").fetchone()  # noqa: S608
        successors = _successors(connection, columns)
        number = 0
        for row in rows(connection, "memories"):
            if row.values.get("deleted_at") is not None:
                continue
            number += 1
            name = row.values["content_hash"]
            place = f"row {row.number}" + (f", memory {name[:_SHOWN]}" if isinstance(name, str) else "")
            passed = size * number // max(1, count)
            try:
                line = _line(place, row.values, passed, successors)
            except RecordError as error:
                yield BadRecord(place, str(error), passed)
            else:
                yield from remarks(place, row, passed)
                yield line


def _successors(connection: Any, columns: set[str]) -> dict[Any, Any]:
    """Return the memory that each memory supersedes."""
    if not {"superseded_by", "deleted_at"} <= columns:
        return {}
    query = (
        "SELECT superseded_by, content_hash FROM memories "
        "WHERE superseded_by IS NOT NULL AND deleted_at IS NULL ORDER BY rowid"
    )
    return {row["superseded_by"]: row["content_hash"] for row in connection.execute(query)}


def _line(place: str, row: dict[str, Any], passed: int, successors: dict[Any, Any]) -> SourceLine:
    metadata = object_of(row.get("metadata"))
    importance = next(
        (value for name in _IMPORTANCE if (value := fraction_of(metadata.get(name))) is not None), None
    )
    kind = row.get("memory_type")
    if kind:
        metadata.setdefault("memory_type", kind)
    name = text_in(row, "content_hash")
    superseded = successors.get(name)
    return source_line(
        place,
        passed,
        key=key_of(name),
        content=text_in(row, "content"),
        created_at=time_of(row.get("created_at")) or time_of(row.get("created_at_iso")),
        updated_at=time_of(row.get("updated_at")) or time_of(row.get("updated_at_iso")),
        tags=tags_of(_tags(row.get("tags"))),
        kind=kind if kind in KINDS else None,
        importance=importance,
        metadata=metadata or None,
        supersedes=key_of(superseded) if isinstance(superseded, str) and superseded != name else None,
    )


def _tags(given: Any) -> Any:
    """Return the tags: a text with commas, or a JSON array in some versions."""
    if isinstance(given, str) and re.match(r"\s*\[", given):
        return object_of(given).get("metadata", given)
    return given
