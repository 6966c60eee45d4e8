"""Files of @modelcontextprotocol/server-memory: entities with observations, and relations between them.

The server writes a line for each, ``{"type": "entity", …}``; older versions write one object with both lists.
Each observation becomes a memory that begins with its entity's name. The observations of one entity are a
conversation, so that they are found together. A relation becomes a memory of three words.
"""

from __future__ import annotations

from collections.abc import Iterator
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
    key_of,
    read_whole,
    source_line,
    tags_of,
    text_in,
    wrong_type,
)

MARKER: Final = "_aim"
"""The type of a line that only names the program of the file."""
_OF_LISTS: Final = {"entities": "entity", "relations": "relation"}


class _Memory(NamedTuple):
    """A line with its key and content, to detect repetitions."""

    key: str
    content: str
    line: SourceLine


def read(path: Path) -> Iterator[Item]:
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
