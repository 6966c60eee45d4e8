"""Migrations of a session between tools: its present tool, the log, and the index rows to find it again.

    w                       which tool works in it, and since when
    g time number           one step of its way
    l tag                   when the user of this tag made it or last took it up: its row in the index of work

In the index of work, so that a user's sessions of a project are found, the last one taken up first:

    tag of the user, tag of the project, time (inverted)
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

import msgspec

from greenroom.actors.core.validation.times import with_datetime
from greenroom.actors.sessions.requests import session_context as travel
from greenroom.runtime import Context

INDEX: Final = "work"
WORK: Final = b"w"
LOG: Final = b"g"
LISTED: Final = b"l"
_TAG_BYTES: Final = 8
_INVERTED: Final = (1 << 64) - 1


class ToolState(msgspec.Struct, frozen=True, array_like=True):
    """The tool that a session is in, and the clients that work in it.

    Attributes:
        attempt: By which restoring it was made, if by one.
        at: When it was started or restored here.
        messages: How many messages it had then.
        importing: The attempt at the import of its memories that was decided with it.
        holders: Who began to work in it, oldest first; who of them still does is no record's affair.
    """

    tool: str
    original_tool: str | None
    workspace_path: str | None
    at: int
    attempt: str | None = None
    messages: int = 0
    importing: str | None = None
    holders: list[travel.Holder] = []


class StoredMigration(msgspec.Struct, frozen=True, array_like=True):
    """One step of a session's way."""

    from_tool: str | None
    to_tool: str | None
    at: int
    outcome: travel.MigrationOutcome
    by: str
    session_id: str
    server: str | None
    note: str | None


class RecentSessionRow(msgspec.Struct, frozen=True, array_like=True):
    """In which tool, or by which agent, it was taken up, and when."""

    tool: str
    at: int


def migrations(context: Context) -> list[travel.Migration]:
    """Return the steps of the session's way, oldest first."""
    return [with_datetime(travel.Migration, move) for _, move in context.scan(StoredMigration, prefix=LOG)]


def put_migration(context: Context, move: StoredMigration) -> None:
    """Stage a step; beyond the most there may be, the oldest one goes."""
    keys = [key for key, _ in context.scan(msgspec.Raw, prefix=LOG)]
    prefix = LOG + max(0, move.at).to_bytes(8)
    number = 0
    while (key := prefix + number.to_bytes(2)) in keys:
        number += 1
    context.put(key, move)
    if len(keys) >= travel.MOST_MIGRATIONS:
        context.delete(keys[0])


def put_recent(context: Context, owner: str, project_id: str | None, tool: str) -> None:
    """Stage that a user has taken the session up."""
    remove_recent(context, owner, project_id)
    context.put(LISTED + _tag(owner), context.now)
    context.put_row(INDEX, _position(owner, project_id, context.now), RecentSessionRow(tool, context.now))


def remove_recent(context: Context, owner: str, project_id: str | None) -> None:
    """Stage that a user is not offered the session any more."""
    old = context.get(LISTED + _tag(owner), int)
    if old is not None:
        context.delete_row(INDEX, _position(owner, project_id, old))
        context.delete(LISTED + _tag(owner))


def remove_all_recent(context: Context, project_id: str | None) -> None:
    """Stage that no user is offered the session any more."""
    for key, at in list(context.scan(int, prefix=LISTED)):
        context.delete_row(INDEX, key[len(LISTED) :] + _tag(project_id or "") + _inverted(at))
        context.delete(key)


def list_again(context: Context, project_id: str | None, tool: str) -> None:
    """Stage the rows that say to whom the session is offered, which are lost."""
    for key, at in context.scan(int, prefix=LISTED):
        context.put_row(
            INDEX, key[len(LISTED) :] + _tag(project_id or "") + _inverted(at), RecentSessionRow(tool, at)
        )


def listed_at(context: Context, owner: str) -> int:
    """Return when a user last took the session up, in microseconds since 1970; 0 for never."""
    return context.get(LISTED + _tag(owner), int) or 0


def names_in(key: bytes) -> tuple[tuple[int, int], ...]:
    """Say where in a sort key of the index of work the tags are."""
    return ((0, 2 * _TAG_BYTES),) if key else ()


def prefix_of(owner: str, project_id: str | None) -> bytes:
    """Return the prefix of the sort keys of a user's sessions of a project."""
    return _tag(owner) + _tag(project_id or "")


def _position(owner: str, project_id: str | None, at: int) -> bytes:
    return prefix_of(owner, project_id) + _inverted(at)


def _inverted(at: int) -> bytes:
    return (_INVERTED - at).to_bytes(8)


def _tag(name: str) -> bytes:
    return blake2b(name.encode(), digest_size=_TAG_BYTES).digest()
