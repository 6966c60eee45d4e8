"""Files of @modelcontextprotocol/server-memory: entities with observations, and relations between them.

The server writes a line for each, ``{"type": "entity", …}``; older ones one object with both lists. Each
observation becomes a memory that begins with its entity's name; those of one entity are a conversation,
so that they are found together. A relation becomes a memory of three words.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from greenroom.actors.transfer.normalize import (
    MAX_WHOLE_BYTES,
    SourceError,
    SourceLine,
    key_of,
    name_of,
    parsed,
    read_whole,
    source_line,
    tags_of,
)


def read(path: Path) -> Iterator[SourceLine]:
    """Yield a memory for each observation and relation, and for an entity without observations."""
    seen: set[str] = set()
    for place, passed, item in _items(path):
        kind = item.get("type")
        if kind == "entity":
            lines = _entity(place, passed, item)
        elif kind == "relation":
            lines = iter([_relation(place, passed, item)])
        else:
            raise SourceError(f"{path}, {place}: the type is {kind!r}, not entity or relation")
        for key, line in lines:
            if key not in seen:  # the server itself takes the first of several
                seen.add(key)
                yield line


def _items(path: Path) -> Iterator[tuple[str, int, dict[str, Any]]]:
    passed = 0
    with path.open("rb") as file:
        for number in itertools.count(1):
            raw = file.readline(MAX_WHOLE_BYTES + 1)
            if not raw:
                return
            if len(raw) > MAX_WHOLE_BYTES:
                raise SourceError(f"{path}, line {number} has more than {MAX_WHOLE_BYTES:,} bytes")
            passed += len(raw)
            text = raw.removeprefix(b"\xef\xbb\xbf").strip() if number == 1 else raw.strip()
            if not text:
                continue
            try:
                item = parsed(text)
            except ValueError as error:
                if number == 1 and text.startswith(b"{"):
                    yield from _whole(path)
                    return
                raise SourceError(f"{path}, line {number}: this is no JSON: {error}") from None
            if not isinstance(item, dict):
                raise SourceError(f"{path}, line {number}: this is no object")
            if "entities" in item and "type" not in item:
                yield from _graph(item, passed)
            else:
                yield f"line {number}", passed, item


def _whole(path: Path) -> Iterator[tuple[str, int, dict[str, Any]]]:
    with path.open("rb") as file:
        data = read_whole(file, str(path))
    try:
        graph = parsed(data)
    except ValueError as error:
        raise SourceError(f"{path} is no JSON: {error}") from None
    if not isinstance(graph, dict) or "entities" not in graph:
        raise SourceError(f"{path} is no file of server-memory: it holds no entities")
    yield from _graph(graph, path.stat().st_size)


def _graph(graph: dict[str, Any], passed: int) -> Iterator[tuple[str, int, dict[str, Any]]]:
    for name, kind in (("entities", "entity"), ("relations", "relation")):
        items = graph.get(name) or []
        if not isinstance(items, list):
            raise SourceError(f"the {name} are no list")
        for number, item in enumerate(items, start=1):
            if not isinstance(item, dict):
                raise SourceError(f"{kind} {number} is no object")
            yield f"{kind} {number}", passed, {**item, "type": kind}


def _entity(place: str, passed: int, item: dict[str, Any]) -> Iterator[tuple[str, SourceLine]]:
    name, kind = item.get("name"), item.get("entityType")
    if not isinstance(name, str) or not name:
        raise SourceError(f"{place}: the entity has no name")
    observations = item.get("observations") or []
    if not isinstance(observations, list):
        raise SourceError(f"{place}: the observations are no list")
    about = {"entity": name, "entityType": kind}
    tags = tags_of(["entity", kind] if kind else ["entity"])
    if not observations:
        key = key_of(name)
        yield key, source_line(place, passed, key=key, content=f"{name} ({kind})", tags=tags, metadata=about)
    for number, observation in enumerate(observations, start=1):
        text = observation.get("content") if isinstance(observation, dict) else observation
        key = key_of(name, _mark(str(text)))
        yield (
            key,
            source_line(
                f"{place}, observation {number}",
                passed,
                key=key,
                content=f"{name}: {text}",
                created_by=None,
                conversation_id=name_of(name),
                position=number - 1,
                tags=tags,
                metadata=about,
            ),
        )


def _mark(text: str) -> str:
    """Return what tells observations of one entity apart: their text, not their place, which moves."""
    return key_of(text + "\n").rpartition("~")[2]


def _relation(place: str, passed: int, item: dict[str, Any]) -> tuple[str, SourceLine]:
    source, relation, target = item.get("from"), item.get("relationType"), item.get("to")
    if not all(isinstance(part, str) and part for part in (source, relation, target)):
        raise SourceError(f"{place}: a relation has from, relationType and to")
    key = key_of(source, relation, target)
    return key, source_line(
        place,
        passed,
        key=key,
        content=f"{source} {str(relation).replace('_', ' ')} {target}",
        tags=tags_of(["relation", relation]),
        metadata={"from": source, "relationType": relation, "to": target},
    )
