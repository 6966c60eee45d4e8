"""SQLite files of shared-context-server: its tables ``agent_memory``, ``messages`` and ``sessions``.

What the importing agent had stored goes into its own namespace under the same key, where `get_memory`
finds it. What other agents had stored, and the messages of all sessions, become memories of the user,
with their author; a session is a conversation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from greenroom.actors.auth import namespaces as names
from greenroom.actors.auth.principal import Principal
from greenroom.actors.transfer.normalize import (
    SourceError,
    SourceLine,
    key_of,
    name_of,
    object_of,
    parsed,
    source_line,
    tags_of,
    time_of,
)
from greenroom.actors.transfer.sqlite_file import opened, rows, tables_of

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


def read(path: Path, principal: Principal) -> Iterator[SourceLine]:
    """Yield the memories of agents, then the sessions' purposes and messages, in their order."""
    tables = tables_of(path)
    if not {"agent_memory", "messages"} & tables:
        raise SourceError(f"{path} is no file of shared-context-server: it has no table agent_memory")
    with opened(path) as connection:
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
            for row in rows(connection, table, "rowid"):
                number += 1
                passed = size * number // total
                if table == "agent_memory":
                    yield _memory(row, passed, principal)
                else:
                    yield (_session if table == "sessions" else _message)(row, passed)


def _memory(row: dict[str, Any], passed: int, principal: Principal) -> SourceLine:
    agent, session, value = row["agent_id"], row["session_id"], row["value"]
    try:
        content, text = parsed(value), value.encode()
    except (ValueError, TypeError):  # that server takes any text, and SQLite any type
        content, text = value, json.dumps(value).encode()
    is_own = agent == principal.agent_id
    key = row["key"] if session is None else f"{session}.{row['key']}"
    return source_line(
        f"agent_memory {row['id']}",
        passed,
        key=key_of(key) if is_own else key_of(agent, key),
        value=msgspec.Raw(text) if is_own or not isinstance(content, str) else None,
        content=None if is_own or not isinstance(content, str) else content,
        namespace=names.agent_namespace(principal) if is_own else None,
        created_at=time_of(row["created_at"]),
        updated_at=time_of(row["updated_at"]),
        expires_at=time_of(row["expires_at"]),
        created_by=name_of(agent),
        conversation_id=name_of(session),
        metadata=object_of(row["metadata"]) or None,
    )


def _session(row: dict[str, Any], passed: int) -> SourceLine:
    return source_line(
        f"session {row['id']}",
        passed,
        key=key_of(row["id"], "purpose"),
        content=row["purpose"],
        kind="episodic",
        created_at=time_of(row["created_at"]),
        created_by=name_of(row["created_by"]),
        conversation_id=name_of(row["id"]),
        position=0,
        tags=["session"],
        metadata=object_of(row["metadata"]) or None,
    )


def _message(row: dict[str, Any], passed: int) -> SourceLine:
    metadata = object_of(row["metadata"])
    metadata["visibility"] = row["visibility"]
    if row.get("parent_message_id") is not None:
        metadata["parent_message_id"] = row["parent_message_id"]
    return source_line(
        f"message {row['id']}",
        passed,
        key=key_of(row["session_id"], row["id"]),
        content=row["content"],
        kind="episodic",
        created_at=time_of(row["timestamp"]),
        created_by=name_of(row["sender"]),
        conversation_id=name_of(row["session_id"]),
        position=row["id"],
        tags=tags_of([row["message_type"]]),
        metadata=metadata,
    )
