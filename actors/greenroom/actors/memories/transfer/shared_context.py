"""SQLite files of shared-context-server: its tables ``agent_memory``, ``messages`` and ``sessions``.

The importing agent's own values go into its namespace under the same key, where `get_memory` finds them.
Values of other agents, and the messages of all sessions, become memories of the user, with their author. A
session is a conversation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from greenroom.actors.core.auth import namespaces as names
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.memories.transfer.normalize import (
    BadRecord,
    Item,
    RecordError,
    SourceError,
    SourceLine,
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
from greenroom.actors.memories.transfer.sqlite_file import open_sqlite, remarks, rows, tables_of

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


def read(path: Path, principal: Principal) -> Iterator[Item]:
    """Yield the memories of agents, then the sessions' purposes and messages, in their order."""
    tables = tables_of(path)
    if not {"agent_memory", "messages"} & tables:
        raise SourceError(f"{path} is no file of shared-context-server: it has no table agent_memory")
    with open_sqlite(path) as connection:
        wanted = [table for table in _COLUMNS if table in tables]
        for table in wanted:
            columns = {row["name"] for row in connection.execute(f"PRAGMA table_info({table})")}
            if missing := sorted(_COLUMNS[table] - columns):
                raise SourceError(
                    f"{path} is no file of shared-context-server: its {table} have no {', '.join(missing)}"
                )
        counts = [connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in wanted]  # noqa: S608
        size, total, number = path.stat().st_size, sum(counts) or 1, 0
        for table in wanted:
            for row in rows(connection, table):
                number += 1
                passed = size * number // total
                place = f"{table}, row {row.number}"
                try:
                    line = _LINES[table](place, row.values, passed, principal)
                except RecordError as error:
                    yield BadRecord(place, str(error), passed)
                else:
                    yield from remarks(place, row, passed)
                    yield line


def _memory(place: str, row: dict[str, Any], passed: int, principal: Principal) -> SourceLine:
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


_LINES: Final = {"agent_memory": _memory, "sessions": _session, "messages": _message}
