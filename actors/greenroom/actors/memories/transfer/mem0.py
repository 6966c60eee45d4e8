"""Exports of mem0: the JSON of `get_all`, or its list, or one memory per line.

A memory's id becomes its key, ``memory`` its content, ``categories`` its tags, ``run_id`` its conversation,
and ``actor_id``, else ``agent_id``, else ``user_id`` its author.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from greenroom.actors.memories.transfer import json_records, text_files
from greenroom.actors.memories.transfer.json_records import Record
from greenroom.actors.memories.transfer.normalize import (
    BadRecord,
    Item,
    RecordError,
    Remark,
    SourceError,
    SourceLine,
    id_in,
    key_of,
    name_of,
    object_of,
    read_whole,
    source_line,
    tags_of,
    text_in,
    time_of,
    wrong_type,
)

_KEPT = ("user_id", "agent_id", "app_id", "run_id", "actor_id", "role", "hash", "structured_attributes")
LISTS = ("results", "memories")


def read(path: Path) -> Iterator[Item]:
    """Yield the memories of an export."""
    size = path.stat().st_size
    with path.open("rb") as file:
        data = read_whole(file, str(path))
    try:
        text, is_guess = text_files.text_of(data)
    except RecordError as error:
        raise SourceError(f"{path}: {error}") from None
    if is_guess:
        yield Remark("", text_files.GUESSED, 0)
    found = _memories(path, list(json_records.in_text(text, size)))
    for number, each in enumerate(found, start=1):
        passed = size if not number % 100 else 0
        if not isinstance(each, Record):
            yield each
            continue
        try:
            yield _line(*each, passed)
        except RecordError as error:
            yield BadRecord(each.place, str(error), passed)


def _memories(path: Path, records: Sequence[Record | BadRecord]) -> Iterator[Record | BadRecord]:
    """Yield the memories and relations among the records of a file."""
    broken = [each for each in records if isinstance(each, BadRecord)]
    if broken and len(broken) == len(records):
        raise SourceError(f"{path}, {broken[0].place}: {broken[0].sentence}")
    sound = [each.value for each in records if isinstance(each, Record)]
    whole = sound[0] if len(sound) == 1 and isinstance(sound[0], dict) else None
    if whole is None or whole.keys() & {"id", "memory"}:
        yield from records
        return
    relations = whole.get("relations") or []
    memories: Any = next(
        (whole[name] for name in LISTS if name in whole), [] if broken and relations else None
    )
    if not isinstance(memories, list) or not isinstance(relations, list):
        raise SourceError(f"{path} is no export of mem0: it holds no list of memories")
    yield from (Record(f"memory {number}", memory) for number, memory in enumerate(memories, 1))
    yield from (Record(f"relation {number}", relation) for number, relation in enumerate(relations, 1))
    yield from broken


def _line(place: str, memory: Any, passed: int) -> SourceLine:
    if not isinstance(memory, dict):
        raise wrong_type("memory", "an object", memory)
    if place.startswith("relation"):
        return _relation(place, memory, passed)
    metadata = object_of(memory.get("metadata"))
    metadata.update({name: memory[name] for name in _KEPT if memory.get(name) is not None})
    author = next((memory[name] for name in ("actor_id", "agent_id", "user_id") if memory.get(name)), None)
    return source_line(
        place,
        passed,
        key=key_of(id_in(memory, "id")),
        content=text_in(memory, "memory" if "memory" in memory else "text"),
        created_at=time_of(memory.get("created_at")),
        updated_at=time_of(memory.get("updated_at")),
        created_by=name_of(author),
        conversation_id=name_of(memory.get("run_id")),
        tags=tags_of(memory.get("categories")),
        expires_at=time_of(memory.get("expiration_date")),
        metadata=metadata or None,
    )


def _relation(place: str, relation: dict[str, Any], passed: int) -> SourceLine:
    source = text_in(relation, "source")
    target = text_in(relation, "target" if "target" in relation else "destination")
    kind = text_in(relation, "relationship" if "relationship" in relation else "relation")
    return source_line(
        place,
        passed,
        key=key_of(source, kind, target),
        content=f"{source} {kind} {target}",
        tags=tags_of(["relation", kind]),
        metadata={"source": source, "relationship": kind, "target": target},
    )
