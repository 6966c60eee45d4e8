"""Client tools, and migrations of a session between them: current tool, log, index rows.

    w                       the tool that the session is in, and since when
    g time number           one migration
    l tag                   when the user of this tag created or last resumed the session, as in the index

The index lists a user's sessions of a project, the last resumed session first. Its sort keys are:

    tag of the user, tag of the project, time (inverted)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import blake2b
from typing import Final, NamedTuple

import msgspec

from greenroom.actors.core.replies.damage import damaged_entry, filter_damage, note_damage
from greenroom.actors.core.validation.times import with_datetime
from greenroom.actors.sessions.requests import handover, session_context
from greenroom.runtime import Context, RecordDamagedError, pass_over

INDEX: Final = "work"
TOOL_STATE: Final = b"w"
MIGRATIONS: Final = b"g"
RECENT: Final = b"l"
_TAG_BYTES: Final = 8
_INVERTED: Final = (1 << 64) - 1


class ToolState(msgspec.Struct, frozen=True, array_like=True):
    """The tool that a session is in, and the clients that work in it.

    Attributes:
        importing: The attempt of the memory import that the restoring commit decided.
        holders: The clients that began to work in it, oldest first. They may have left since.
    """

    tool: str
    original_tool: str | None
    workspace_path: str | None
    at: int
    attempt: str | None = None
    messages: int = 0
    importing: str | None = None
    holders: list[handover.Holder] = []


class StoredMigration(msgspec.Struct, frozen=True, array_like=True):
    """One migration of a session."""

    from_tool: str | None
    to_tool: str | None
    at: int
    outcome: session_context.MigrationOutcome
    by: str
    session_id: str
    server: str | None
    note: str | None


class RecentSessionRow(msgspec.Struct, frozen=True, array_like=True):
    """The tool, or agent, that last resumed the session, and when."""

    tool: str
    at: int


def migrations(context: Context) -> list[session_context.Migration]:
    """Return the migrations of the session, oldest first."""
    return [with_datetime(session_context.Migration, move) for _, move in _sound(context)]


def _sound(context: Context) -> Iterator[tuple[bytes, StoredMigration]]:
    def report(error: RecordDamagedError) -> None:
        note_damage(context, damaged_entry(error, "a step of the session's way"))

    return context.scan(
        StoredMigration, prefix=MIGRATIONS, on_damage=filter_damage(context, MIGRATIONS, report)
    )


def find_tool(context: Context, otherwise: str) -> str:
    """Return the tool that the session is in, or ``otherwise`` if it is in none."""
    work = context.get(TOOL_STATE, ToolState)
    return otherwise if work is None else work.tool


def log_migration(
    context: Context,
    outcome: session_context.MigrationOutcome,
    from_tool: str | None,
    to_tool: str | None,
    note: str | None = None,
) -> None:
    """Stage a migration by the sender at this time."""
    agent, session_id = context.principal.agent_id, context.address.key
    put_migration(
        context,
        StoredMigration(from_tool, to_tool, context.now, outcome, agent, session_id, None, note),
    )


def put_migration(context: Context, move: StoredMigration) -> None:
    """Stage a migration; beyond the limit delete the oldest."""
    keys = list(context.keys(MIGRATIONS))
    prefix = MIGRATIONS + max(0, move.at).to_bytes(8)
    number = 0
    while (key := prefix + number.to_bytes(2)) in keys:
        number += 1
    context.put(key, move)
    if len(keys) >= session_context.MOST_MIGRATIONS:
        context.delete(keys[0])


def put_recent(context: Context, owner: str, project_id: str | None, tool: str) -> None:
    """Stage that a user has resumed the session."""
    remove_recent(context, owner, project_id)
    context.put(RECENT + _tag(owner), context.now)
    context.put_row(INDEX, _position(owner, project_id, context.now), RecentSessionRow(tool, context.now))


def remove_recent(context: Context, owner: str, project_id: str | None) -> None:
    """Stage that the session is no longer offered to a user."""
    old = listed_at(context, owner) or None
    if old is not None:
        context.delete_row(INDEX, _position(owner, project_id, old))
        context.delete(RECENT + _tag(owner))


def remove_all_recent(context: Context, project_id: str | None) -> None:
    """Stage that the session is no longer offered to any user."""
    for key, at in list(context.scan(int, prefix=RECENT, on_damage=pass_over)):
        context.delete_row(INDEX, key[len(RECENT) :] + _tag(project_id or "") + _inverted(at))
        context.delete(key)


def list_again(context: Context, project_id: str | None, tool: str) -> None:
    """Stage the lost index rows of the session again."""
    for key, at in context.scan(int, prefix=RECENT, on_damage=pass_over):
        context.put_row(
            INDEX, key[len(RECENT) :] + _tag(project_id or "") + _inverted(at), RecentSessionRow(tool, at)
        )


def listed_at(context: Context, owner: str) -> int:
    """Return when a user last resumed the session, or 0 (microseconds since 1970)."""
    try:
        return context.get(RECENT + _tag(owner), int) or 0
    except RecordDamagedError:
        return 0


def names_in(key: bytes) -> tuple[tuple[int, int], ...]:
    """Return the spans of the tags in a sort key of the index."""
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


UNKNOWN: Final = "unknown"
_RULED_OUT: Final = re.compile(r"[^a-z0-9_.-]+")
_BY_WAY_OF: Final = re.compile(
    r"\s*\(via [^)]*\)|-via-mcp-remote.*|-mcp-client$|\s*v?\d+(\.\d+)+$", re.IGNORECASE
)


class ClientTool(NamedTuple):
    """A client tool.

    Attributes:
        names: Its names in ``clientInfo``, as `_plain` writes them.
        mention: The form in which it mentions a file, with ``{}`` for the path.
    """

    tool_id: str
    title: str
    names: tuple[str, ...] = ()
    mention: str = "`{}`"
    rules: str | None = None


ADAPTERS: Final = (
    ClientTool("claude-desktop", "Claude Desktop", ("claude-ai", "claude-desktop", "claude")),
    ClientTool("claude-code", "Claude Code", ("claude-code",), "@{}", "CLAUDE.md"),
    ClientTool("cursor", "Cursor", ("cursor", "cursor-vscode", "cursor-agent"), "@{}", ".cursor/rules"),
    ClientTool(
        "vscode",
        "VS Code",
        ("visual-studio-code", "visual-studio-code-insiders", "vscode", "vs-code", "code"),
        "#file:{}",
        ".github/copilot-instructions.md",
    ),
    ClientTool("windsurf", "Windsurf", ("windsurf", "windsurf-client", "codeium"), "@{}", ".windsurf/rules"),
    ClientTool("zed", "Zed", ("zed", "zed-editor"), "@{}", ".rules"),
    ClientTool(
        "continue",
        "Continue",
        ("continue", "continue-client", "continue-cli-client"),
        "@{}",
        ".continue/rules",
    ),
    ClientTool("cline", "Cline", ("cline", "cline-bot"), "@/{}", ".clinerules"),
)
"""The known tools. Any other tool has its own name as its id, and mentions files by path."""
_BY_NAME: Final = {name: adapter for adapter in ADAPTERS for name in (adapter.tool_id, *adapter.names)}


def client_tool(name: str | None) -> ClientTool:
    """Return the tool of this name."""
    plain = _plain(name or "")
    known = _BY_NAME.get(plain)
    return (
        known
        if known is not None
        else ClientTool(plain or UNKNOWN, (name or "").strip()[:100] or "this tool")
    )


def _plain(name: str) -> str:
    """Normalize a name: lower case, without versions and the names of proxies."""
    short = _BY_WAY_OF.sub("", name.strip())
    return _RULED_OUT.sub("-", short.lower()).strip("-.")[:100]
