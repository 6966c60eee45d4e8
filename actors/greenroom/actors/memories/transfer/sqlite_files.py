"""SQLite files of mcp-memory-service and shared-context-server.

From mcp-memory-service, the table ``memories`` is read. A content's hash becomes the key, so a second import
changes nothing. Memories that the program had deleted are left out. A superseded memory stays superseded.

From shared-context-server, the tables ``agent_memory``, ``messages`` and ``sessions`` are read. The importing
agent's own values go into its namespace under the same key, where `get_memory` finds them. Values of other
agents, and all messages, become memories of the user, with their author. A session is a conversation.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from greenroom.actors.core.auth import namespaces as names
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.memories.transfer.normalize import (
    KINDS,
    MAX_WHOLE_BYTES,
    BadRecord,
    Item,
    RecordError,
    Remark,
    SourceError,
    SourceLine,
    fraction_of,
    id_in,
    key_of,
    name_of,
    object_of,
    parse,
    source_line,
    tags_of,
    text_in,
    time_of,
)
from greenroom.actors.memories.transfer.text_files import GUESSED, narrow_text

_NUMBER: Final = "greenroom_number"
_UNREAD: Final = re.compile(r"[\ud800-\udfff]")
_SHOWN: Final = 80
_IMPORTANCE: Final = ("importance_score", "importance", "quality_score")
_COLUMNS: Final = {
    "agent_memory": {
        *("id", "agent_id", "session_id", "key", "value", "metadata"),
        *("created_at", "updated_at", "expires_at"),
    },
    "sessions": {"id", "purpose", "created_at", "created_by", "metadata"},
    "messages": {
        *("id", "session_id", "sender", "content", "visibility", "message_type", "metadata", "timestamp"),
    },
}


# -- any file ------------------------------------------------------------------------------------


def tables_of(path: Path) -> set[str]:
    """Return the names of an SQLite file's tables."""
    with _open(path) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


@contextmanager
def _open(path: Path) -> Iterator[sqlite3.Connection]:
    """Open an SQLite file read-only; SQLite may write only its own log files beside it.

    Raises:
        SourceError: It is not SQLite, or cannot be read.
    """
    uri = f"{path.absolute().as_uri()}?mode=ro"
    try:  # different threads read from it, one after the other
        with closing(sqlite3.connect(uri, uri=True, check_same_thread=False)) as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_WHOLE_BYTES)  # also for computed values
            connection.row_factory = sqlite3.Row
            connection.text_factory = _escape  # by default, a text that is not UTF-8 would end the reading
            yield connection
    except sqlite3.Error as error:
        raise SourceError(f"{path} cannot be read as SQLite: {error}") from None


def _columns(connection: sqlite3.Connection, table: str) -> set[str]:
    return {row["name"] for row in connection.execute(f"PRAGMA table_info({table})")}


def _count(connection: sqlite3.Connection, table: str) -> int:
    count: int = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608
    return count


class _Row(NamedTuple):
    """A row with its number in the file, and the columns with a guessed encoding."""

    number: int
    values: dict[str, Any]
    guessed: list[str]

    def read(self, place: str, passed: int, make: Callable[..., SourceLine], *more: Any) -> Iterator[Item]:
        """Yield the line that ``make`` returns for the row, and warnings and errors."""
        try:
            line = make(place, self.values, passed, *more)
        except RecordError as error:
            yield BadRecord(place, str(error), passed)
            return
        yield from (Remark(place, f"{name}: {GUESSED}", passed) for name in self.guessed)
        yield line


def _rows(connection: sqlite3.Connection, table: str) -> Iterator[_Row]:
    """Yield a table's rows in order; columns differ between versions of a program.

    Bytes are read as texts. A text in no known encoding is refused where it is used.
    """
    found = connection.execute(f"SELECT rowid AS {_NUMBER}, * FROM {table} ORDER BY rowid")  # noqa: S608
    for row in found:
        values: dict[str, Any] = dict(row)
        number = values.pop(_NUMBER)
        guessed = []
        for name, value in values.items():
            text = _escape(value) if isinstance(value, bytes) else value
            if isinstance(text, str) and _UNREAD.search(text):
                with suppress(RecordError):
                    text, _ = narrow_text(text.encode(errors="surrogateescape"))
                    guessed.append(name)
            values[name] = text
        yield _Row(number, values, guessed)


def _escape(data: bytes) -> str:
    return data.decode(errors="surrogateescape")


# -- mcp-memory-service --------------------------------------------------------------------------


def read_memory_service(path: Path) -> Iterator[Item]:
    """Yield the memories that are not deleted, oldest first."""
    if "memories" not in tables_of(path):
        raise SourceError(f"{path} is no file of mcp-memory-service: it has no table memories")
    size = path.stat().st_size
    with _open(path) as connection:
        columns = _columns(connection, "memories")
        if not {"content", "content_hash"} <= columns:
            raise SourceError(f"{path} is no file of mcp-memory-service: its memories have no content_hash")
        there = "memories WHERE deleted_at IS NULL" if "deleted_at" in columns else "memories"
        count, number = _count(connection, there) or 1, 0
        successors = _successors(connection, columns)
        for row in _rows(connection, "memories"):
            if row.values.get("deleted_at") is not None:
                continue
            number += 1
            name = row.values["content_hash"]
            place = f"row {row.number}" + (f", memory {name[:_SHOWN]}" if isinstance(name, str) else "")
            yield from row.read(place, size * number // count, _service_memory, successors)


def _successors(connection: sqlite3.Connection, columns: set[str]) -> dict[Any, Any]:
    """Return the memory that each memory supersedes."""
    if not {"superseded_by", "deleted_at"} <= columns:
        return {}
    query = (
        "SELECT superseded_by, content_hash FROM memories "
        "WHERE superseded_by IS NOT NULL AND deleted_at IS NULL ORDER BY rowid"
    )
    return {row["superseded_by"]: row["content_hash"] for row in connection.execute(query)}


def _service_memory(place: str, row: dict[str, Any], passed: int, successors: dict[Any, Any]) -> SourceLine:
    metadata = object_of(row.get("metadata"))
    importance = next(
        (value for name in _IMPORTANCE if (value := fraction_of(metadata.get(name))) is not None), None
    )
    kind, tags = row.get("memory_type"), row.get("tags")
    if kind:
        metadata.setdefault("memory_type", kind)
    if isinstance(tags, str) and re.match(r"\s*\[", tags):  # a JSON array in some versions
        tags = object_of(tags).get("metadata", tags)
    name = text_in(row, "content_hash")
    superseded = successors.get(name)
    return source_line(
        place,
        passed,
        key=key_of(name),
        content=text_in(row, "content"),
        created_at=time_of(row.get("created_at")) or time_of(row.get("created_at_iso")),
        updated_at=time_of(row.get("updated_at")) or time_of(row.get("updated_at_iso")),
        tags=tags_of(tags),
        kind=kind if kind in KINDS else None,
        importance=importance,
        metadata=metadata or None,
        supersedes=key_of(superseded) if isinstance(superseded, str) and superseded != name else None,
    )


# -- shared-context-server -----------------------------------------------------------------------


def read_shared_context(path: Path, principal: Principal) -> Iterator[Item]:
    """Yield the memories of agents, then the sessions' purposes and messages, in their order."""
    tables = tables_of(path)
    if not {"agent_memory", "messages"} & tables:
        raise SourceError(f"{path} is no file of shared-context-server: it has no table agent_memory")
    with _open(path) as connection:
        wanted = [table for table in _COLUMNS if table in tables]
        for table in wanted:
            if missing := sorted(_COLUMNS[table] - _columns(connection, table)):
                raise SourceError(
                    f"{path} is no file of shared-context-server: its {table} have no {', '.join(missing)}"
                )
        size, total = path.stat().st_size, sum(_count(connection, table) for table in wanted) or 1
        number = 0
        for table in wanted:
            for row in _rows(connection, table):
                number += 1
                place = f"{table}, row {row.number}"
                yield from row.read(place, size * number // total, _LINES[table], principal)


def _agent_memory(place: str, row: dict[str, Any], passed: int, principal: Principal) -> SourceLine:
    agent, session, key = text_in(row, "agent_id"), row["session_id"], text_in(row, "key")
    content, text = _value(row["value"])
    is_own = agent == principal.agent_id
    if session is not None:
        key = f"{text_in(row, 'session_id')}.{key}"
    return source_line(
        place,
        passed,
        key=key_of(key) if is_own else key_of(agent, key),
        value=msgspec.Raw(text) if is_own or not isinstance(content, str) else None,
        content=None if is_own or not isinstance(content, str) else content,
        namespace=names.agent_namespace(principal) if is_own else None,
        created_at=time_of(row["created_at"]),
        updated_at=time_of(row["updated_at"]),
        expires_at=time_of(row["expires_at"]),
        created_by=agent,
        conversation_id=name_of(session),
        metadata=object_of(row["metadata"]) or None,
    )


def _value(given: Any) -> tuple[Any, bytes]:
    """Return the stored value, of any type, and its JSON."""
    if isinstance(given, str):
        with suppress(ValueError):
            return parse(given), given.encode()
    return given, json.dumps(given).encode()


def _session(place: str, row: dict[str, Any], passed: int, _: Principal) -> SourceLine:
    return source_line(
        place,
        passed,
        key=key_of(text_in(row, "id"), "purpose"),
        content=text_in(row, "purpose"),
        kind="episodic",
        created_at=time_of(row["created_at"]),
        created_by=name_of(row["created_by"]),
        conversation_id=name_of(row["id"]),
        position=0,
        tags=["session"],
        metadata=object_of(row["metadata"]) or None,
    )


def _message(place: str, row: dict[str, Any], passed: int, _: Principal) -> SourceLine:
    metadata = object_of(row["metadata"])
    metadata["visibility"] = row["visibility"]
    if row.get("parent_message_id") is not None:
        metadata["parent_message_id"] = row["parent_message_id"]
    return source_line(
        place,
        passed,
        key=key_of(text_in(row, "session_id"), id_in(row, "id")),
        content=text_in(row, "content"),
        kind="episodic",
        created_at=time_of(row["timestamp"]),
        created_by=name_of(row["sender"]),
        conversation_id=name_of(row["session_id"]),
        position=row["id"],
        tags=tags_of([row["message_type"]]),
        metadata=metadata,
    )


_LINES: Final = {"agent_memory": _agent_memory, "sessions": _session, "messages": _message}
