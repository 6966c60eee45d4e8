"""Import sources: detect a file's format, and read its lines.

Readers are generators: they read a file of any size once from the front, and never hold all of it. They raise
`SourceError` for a file in another format. A record that cannot be imported is reported, and the reading
continues. Errors in a single memory are found when its line is checked.

JSON Lines, our own format, come from a text or a file, or as the same objects in one JSON array. Either all
of them are imported or none.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, NamedTuple, get_args

import msgspec

from greenroom.actors.content.documents.kinds import kind_by_name
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.memories.transfer import (
    json_files,
    json_records,
    markdown,
    sqlite_files,
    text_files,
)
from greenroom.actors.memories.transfer.normalize import (
    MAGIC,
    MAX_WHOLE_BYTES,
    Item,
    SourceError,
    SourceLine,
    SourceUnreadableError,
    read_whole,
)

_MARK = b"\xef\xbb\xbf"
Format = Literal[
    "auto",
    "jsonl",
    "mem0",
    "mcp-memory-service",
    "server-memory",
    "shared-context-server",
    "markdown",
]
FORMATS: Final[tuple[str, ...]] = get_args(Format)
_LOOKED_AT_BYTES: Final = 1 << 16
_MEM0: Final = re.compile(r'"memory"|"(?:results|memories)"\s*:\s*\[')
_GRAPH: Final = re.compile(r'"(?:entities|entityType|relationType)"\s*:|"type"\s*:\s*"_aim"')


class Source(NamedTuple):
    """A source of lines to import.

    ``size`` is about its size in bytes; progress is reported as a part of it. ``read`` reads it from the
    front.
    """

    format: str
    size: int
    read: Callable[[], Iterator[Item]]

    @property
    def is_own(self) -> bool:
        """Whether it has our own format, which is imported whole or not at all."""
        return self.format == "jsonl"


def source_of_text(text: str) -> Source:
    """Return the source of JSON Lines in a text."""
    data = text.encode(errors="surrogatepass")  # lone surrogates are refused with the line's number
    return Source("jsonl", len(data), lambda: _read(io.BytesIO(data)))


def file_lines(path: Path) -> Iterator[SourceLine]:
    """Yield the lines of a file."""
    with text_files.open_text(path) as file:
        yield from _read(file)


def _read(file: BinaryIO) -> Iterator[SourceLine]:
    """Yield the lines of a file that are not blank, without a byte order mark."""
    number = passed = 0
    while raw := file.readline(MAX_WHOLE_BYTES + 1):
        number += 1
        passed += len(raw)
        if number == 1:
            raw = raw.removeprefix(_MARK)
        line = raw.strip(b" \t\r\n")
        if number == 1 and line.startswith(b"["):
            file.seek(0)
            data = read_whole(file, "a JSON array", "make JSON Lines of it: jq -c '.[]' FILE")
            yield from _array(data.removeprefix(_MARK))
            return
        if len(raw) > MAX_WHOLE_BYTES:
            raise SourceError(f"line {number} has more than {MAX_WHOLE_BYTES:,} bytes")
        if line:
            yield SourceLine(f"line {number}", line, passed)


def _array(data: bytes) -> Iterator[SourceLine]:
    """Yield the elements of an array, which is read whole."""
    try:
        elements = msgspec.json.decode(data, type=list[msgspec.Raw])
    except RecursionError:
        raise SourceError("this array is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SourceError(f"this is neither JSON Lines nor a JSON array: {error}") from None
    size = len(data)
    for number, element in enumerate(elements, start=1):
        yield SourceLine(f"memory {number}", bytes(element), size * number // len(elements))


def open_source(path: Path, chosen: str, principal: Principal) -> Source:
    """Return the source for a file or a folder.

    Args:
        path: Its path.
        chosen: One of `FORMATS`.
        principal: The importing principal: its agent's values in a file become the agent's own values.

    Raises:
        SourceUnreadableError: It cannot be opened.
        SourceError: It has none of the formats.
    """
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):  # it is read twice, and needs a size
            raise SourceError(f"{path} is neither a file nor a folder")
        found = _detect(path) if chosen == "auto" else chosen
        files = markdown.files(path) if path.is_dir() else [path]
        size = sum(each.stat().st_size for each in files if each.exists() or each == path)
    except OSError as error:
        raise SourceUnreadableError(f"{path} cannot be read: {error.strerror or error}") from None
    readers: dict[str, Callable[[], Iterator[Item]]] = {
        "jsonl": lambda: file_lines(path),
        "mem0": lambda: json_files.read_mem0(path),
        "mcp-memory-service": lambda: sqlite_files.read_memory_service(path),
        "server-memory": lambda: json_files.read_server_memory(path),
        "shared-context-server": lambda: sqlite_files.read_shared_context(path, principal),
        "markdown": lambda: markdown.read(path),
    }
    return Source(found, size, readers[found])


def _detect(path: Path) -> str:
    if path.is_dir() or kind_by_name(path.name) == "markdown":
        return "markdown"
    with path.open("rb") as file:
        begin = file.read(_LOOKED_AT_BYTES)
    if begin.startswith(MAGIC):
        tables = sqlite_files.tables_of(path)
        if "memories" in tables:
            return "mcp-memory-service"
        if {"agent_memory", "messages"} <= tables:
            return "shared-context-server"
        raise SourceError(f"{path} is an SQLite file of none of the known programs: say --format")
    is_wide = begin[:2] in {codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE}
    return _detect_json(begin.decode("utf-16" if is_wide else "utf-8-sig", errors="replace").lstrip())


def _detect_json(begin: str) -> str:
    """Return the format of the first record that has one; broken records are skipped."""
    for line in begin.split("\n"):
        for each in json_records.in_line("", line, 0):
            found = _format_of(each.value) if isinstance(each, json_records.Record) else None
            if found is not None:
                return found
    if begin.startswith(("{", "[")):
        if '"key"' not in begin and _GRAPH.search(begin):
            return "server-memory"
        if '"key"' not in begin and _MEM0.search(begin):
            return "mem0"
    return "jsonl"  # its errors name the line


def _format_of(record: Any) -> str | None:
    if not isinstance(record, dict):
        return None
    kind = record.get("type")
    if kind in ("entity", "relation", json_files.MARKER) or "entities" in record:
        return "server-memory"
    if "key" in record:
        return "jsonl"
    is_list = any(isinstance(record.get(name), list) for name in json_files.MEM0_LISTS)
    return "mem0" if is_list or {"memory", "id"} <= record.keys() else None
