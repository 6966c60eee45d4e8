"""Exports of mem0: what `get_all` answers, as JSON, or the list in it, or one memory a line.

A memory's id becomes its key, ``memory`` its content, ``categories`` its tags, ``run_id`` its
conversation, and who said it (``actor_id``, else ``agent_id``, else ``user_id``) its author.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from greenroom.actors.transfer.normalize import (
    SourceError,
    SourceLine,
    key_of,
    name_of,
    object_of,
    parsed,
    read_whole,
    source_line,
    tags_of,
    time_of,
)

_KEPT = ("user_id", "agent_id", "app_id", "run_id", "actor_id", "role", "hash", "structured_attributes")


def read(path: Path) -> Iterator[SourceLine]:
    """Yield the memories of an export."""
    with path.open("rb") as file:
        data = read_whole(file, str(path))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"{path} is not UTF-8: {error.reason} at byte {error.start}") from None
    size = len(text)
    for number, (place, memory) in enumerate(_memories(path, text), start=1):
        yield _line(place, size if not number % 100 else 0, memory)


def _memories(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    try:
        whole = parsed(text)
    except ValueError as error:
        whole = [
            _parsed(path, number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()
        ]
        if len(whole) <= 1:
            raise SourceError(f"{path} is no JSON: {error}") from None
    relations: list[Any] = []
    if isinstance(whole, dict):
        relations = whole.get("relations") or []
        whole = whole.get("results", whole.get("memories", [whole] if "memory" in whole else None))
    if not isinstance(whole, list) or not isinstance(relations, list):
        raise SourceError(f"{path} is no export of mem0: it holds no list of memories")
    for number, memory in enumerate(whole, start=1):
        yield f"memory {number}", memory
    for number, relation in enumerate(relations, start=1):
        yield f"relation {number}", relation


def _parsed(path: Path, number: int, line: str) -> Any:
    try:
        return parsed(line)
    except ValueError as error:
        raise SourceError(f"{path}, line {number}: this is no JSON: {error}") from None


def _line(place: str, passed: int, memory: Any) -> SourceLine:
    if not isinstance(memory, dict):
        raise SourceError(f"{place} is no object")
    if place.startswith("relation"):
        source, target = memory.get("source"), memory.get("target", memory.get("destination"))
        relation = memory.get("relationship", memory.get("relation"))
        return source_line(
            place,
            passed,
            key=key_of(source, relation, target),
            content=f"{source} {relation} {target}",
            tags=tags_of(["relation", relation]),
            metadata={"source": source, "relationship": relation, "target": target},
        )
    metadata = object_of(memory.get("metadata"))
    metadata.update({name: memory[name] for name in _KEPT if memory.get(name) is not None})
    created = time_of(memory.get("created_at"))
    updated = time_of(memory.get("updated_at"))
    author = next((memory[name] for name in ("actor_id", "agent_id", "user_id") if memory.get(name)), None)
    return source_line(
        place,
        passed,
        key=key_of(memory.get("id", "")),
        content=memory.get("memory", memory.get("text")),
        created_at=created,
        updated_at=updated,
        created_by=name_of(author),
        conversation_id=name_of(memory.get("run_id")),
        tags=tags_of(memory.get("categories")),
        expires_at=time_of(memory.get("expiration_date")),
        metadata=metadata or None,
    )
