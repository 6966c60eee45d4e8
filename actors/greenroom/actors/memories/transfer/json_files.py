"""JSON files of server-memory and of mem0.

@modelcontextprotocol/server-memory has entities with observations, and relations between them. It writes a
line for each, ``{"type": "entity", …}``; older versions write one object with both lists. Each observation
becomes a memory that begins with its entity's name. The observations of one entity are a conversation, so
that they are found together. A relation becomes a memory of three words.

mem0 exports the JSON of `get_all`, or its list, or one memory per line. A memory's id becomes its key,
``memory`` its content, ``categories`` its tags, ``run_id`` its conversation, and ``actor_id``, else
``agent_id``, else ``user_id`` its author.

"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NamedTuple

from greenroom.actors.memories.transfer import json_records, text_files
from greenroom.actors.memories.transfer.json_records import Record
from greenroom.actors.memories.transfer.normalize import (
    MAX_WHOLE_BYTES,
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

MARKER: Final = "_aim"
"""The type of a line that only names the program that wrote the file."""
_OF_LISTS: Final = {"entities": "entity", "relations": "relation"}


class _Memory(NamedTuple):
    """A line with its key and content, to detect repetitions."""

    key: str
    content: str
    line: SourceLine


def read_server_memory(path: Path) -> Iterator[Item]:
    """Yield a memory for each observation and relation, and for an entity without observations."""
    seen: dict[str, bytes] = {}
    for found, passed in _records(path):
        for each in _memories(found, passed) if isinstance(found, Record) else (found,):
            if not isinstance(each, _Memory):
                yield each
                continue
            mark = blake2b(each.content.encode(errors="surrogatepass"), digest_size=8).digest()
            if seen.get(each.key) != mark:  # skip repetitions
                seen.setdefault(each.key, mark)
                yield each.line


def _records(path: Path) -> Iterator[tuple[Record | BadRecord | Remark, int]]:
    """Yield the records of a file, line by line, unless a value spans several lines."""
    is_first = True
    for line in text_files.lines(path):
        if not isinstance(line, text_files.TextLine):
            yield line, line.passed
            continue
        is_of_lines = not is_first or json_records.begins_with_object(line.text)
        if not is_of_lines and path.stat().st_size <= MAX_WHOLE_BYTES:
            yield from _whole(path)
            return
        is_first = False
        for each in json_records.in_line(f"line {line.number}", line.text, line.passed):
            yield each, line.passed


def _whole(path: Path) -> Iterator[tuple[Record | BadRecord | Remark, int]]:
    size = path.stat().st_size
    with text_files.open_text(path) as file:
        data = read_whole(file, str(path))
    try:
        text, is_guess = text_files.narrow_text(data)
    except RecordError as error:
        raise SourceError(f"{path}: {error}") from None
    if is_guess:
        yield Remark("", text_files.GUESSED, 0), 0
    for each in json_records.in_text(text, size):
        yield each, size


def _memories(record: Record, passed: int) -> Iterator[_Memory | BadRecord]:
    place, item = record
    try:
        if not isinstance(item, dict):
            raise wrong_type("record", "an object", item)
        kind = item.get("type", "entity" if "entityType" in item else None)
        if kind is None and item.keys() & _OF_LISTS.keys():
            yield from _graph(item, passed)
        elif kind == "entity":
            yield from _entity(place, passed, item)
        elif kind == "relation" or (kind is None and "relationType" in item):
            yield _relation(place, passed, item)
        elif kind != MARKER:
            raise wrong_type("type", "entity or relation", kind)
    except RecordError as error:
        yield BadRecord(place, str(error), passed)


def _graph(graph: dict[str, Any], passed: int) -> Iterator[_Memory | BadRecord]:
    for name, kind in _OF_LISTS.items():
        items = graph.get(name) or []
        if not isinstance(items, list):
            yield BadRecord(name, str(wrong_type(name, "a list", items)), passed)
            continue
        for number, item in enumerate(items, start=1):
            typed = {**item, "type": kind} if isinstance(item, dict) else item
            yield from _memories(Record(f"{kind} {number}", typed), passed)


def _entity(place: str, passed: int, item: dict[str, Any]) -> Iterator[_Memory | BadRecord]:
    name, kind = text_in(item, "name"), item.get("entityType")
    observations = item.get("observations") or []
    if not isinstance(observations, list):
        raise wrong_type("observations", "a list", observations)
    about = {"entity": name, "entityType": kind}
    kind = kind if isinstance(kind, str) else ""
    tags = tags_of(["entity", kind])
    if not observations:
        key, content = key_of(name), f"{name} ({kind})" if kind else name
        yield _Memory(
            key, content, source_line(place, passed, key=key, content=content, tags=tags, metadata=about)
        )
    for number, observation in enumerate(observations, start=1):
        at = f"{place}, observation {number}"
        text = observation.get("content") if isinstance(observation, dict) else observation
        if not isinstance(text, str) or not text:
            yield BadRecord(at, str(wrong_type("observation", "text", observation)), passed)
            continue
        mark = key_of(text + "\n").rpartition("~")[2]  # a digest, since the places of observations change
        key, content = key_of(name, mark), f"{name}: {text}"
        try:
            made = source_line(
                at,
                passed,
                key=key,
                content=content,
                conversation_id=name,
                position=number - 1,
                tags=tags,
                metadata=about,
            )
        except RecordError as error:
            yield BadRecord(at, str(error), passed)
        else:
            yield _Memory(key, content, made)


def _relation(place: str, passed: int, item: dict[str, Any]) -> _Memory:
    source, relation, target = (text_in(item, name) for name in ("from", "relationType", "to"))
    key, content = key_of(source, relation, target), f"{source} {relation.replace('_', ' ')} {target}"
    line = source_line(
        place,
        passed,
        key=key,
        content=content,
        tags=tags_of(["relation", relation]),
        metadata={"from": source, "relationType": relation, "to": target},
    )
    return _Memory(key, content, line)


_KEPT = ("user_id", "agent_id", "app_id", "run_id", "actor_id", "role", "hash", "structured_attributes")
MEM0_LISTS = ("results", "memories")


def read_mem0(path: Path) -> Iterator[Item]:
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
    found = _listed(path, list(json_records.in_text(text, size)))
    for number, each in enumerate(found, start=1):
        passed = size if not number % 100 else 0
        if not isinstance(each, Record):
            yield each
            continue
        try:
            yield _mem0_line(*each, passed)
        except RecordError as error:
            yield BadRecord(each.place, str(error), passed)


def _listed(path: Path, records: Sequence[Record | BadRecord]) -> Iterator[Record | BadRecord]:
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
        (whole[name] for name in MEM0_LISTS if name in whole), [] if broken and relations else None
    )
    if not isinstance(memories, list) or not isinstance(relations, list):
        raise SourceError(f"{path} is no export of mem0: it holds no list of memories")
    yield from (Record(f"memory {number}", memory) for number, memory in enumerate(memories, 1))
    yield from (Record(f"relation {number}", relation) for number, relation in enumerate(relations, 1))
    yield from broken


def _mem0_line(place: str, memory: Any, passed: int) -> SourceLine:
    if not isinstance(memory, dict):
        raise wrong_type("memory", "an object", memory)
    if place.startswith("relation"):
        return _mem0_relation(place, memory, passed)
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


def _mem0_relation(place: str, relation: dict[str, Any], passed: int) -> SourceLine:
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
