"""Parsers of each client's hook input, and renderers of its replies. No I/O.

The members follow the published references: the hook pages of Claude Code and Gemini CLI, the JSON schemas
of Codex CLI, and the hook page of Cursor. Unknown members are ignored and missing members are empty,
because clients add members with each version.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from greenroom.actors.content.text.private_parts import cut_private, cut_private_in
from greenroom.transports.clients.hooks.client_json import (
    NotUnderstoodError,
    decode_loosely,
    replace_surrogates,
)
from greenroom.transports.clients.hooks.tool_calls import ToolCall, tool_call

if TYPE_CHECKING:
    from greenroom.actors.sessions.requests.hook_events import HookName
    from greenroom.transports.clients.hooks.switches import Switches
    from greenroom.transports.clients.table import Event

Reader = Literal["messages", "rollout"]
"""The format of a transcript's lines: messages of blocks, or Codex's items."""


class Transcripts(NamedTuple):
    """The location and format of a client's transcripts."""

    variable: str  # the environment variable that may name the client's folder
    home: str  # the default of that folder, below the home folder
    below: str
    reader: Reader


class Dialect(NamedTuple):
    """How a client names the members of its hook input and of a reply."""

    session: tuple[str, ...] = ("session_id",)  # members for the session's id; the first present one counts
    folder: tuple[str, ...] = ("cwd",)  # members with the working folder; of a list, the first item counts
    # Members with the reason of a start, an end or a compaction.
    reason: tuple[str, ...] = ("source", "reason", "trigger")
    # Delimiters of earlier hook replies that the client puts before a prompt.
    given: tuple[str, str] | None = None
    reply: str = ""  # the member with the model's last message, if no transcript is read
    # Its transcripts; None if they are not in lines, and the events have the content.
    transcripts: Transcripts | None = None
    # The path of the reply's text for the model.
    context: tuple[str, ...] = ("hookSpecificOutput", "additionalContext")
    message: str = "systemMessage"  # the reply's member with a line for the user
    quiet: Mapping[str, bool] = {}  # members of a reply that hide it from the user


DIALECTS: Final[Mapping[str, Dialect]] = {
    "claude-code": Dialect(
        transcripts=Transcripts("CLAUDE_CONFIG_DIR", ".claude", "projects", "messages"),
        quiet={"suppressOutput": True},
    ),
    "codex": Dialect(transcripts=Transcripts("CODEX_HOME", ".codex", "sessions", "rollout")),
    "gemini": Dialect(given=("<hook_context>", "</hook_context>"), reply="prompt_response"),
    "cursor": Dialect(
        session=("conversation_id", "session_id"),
        folder=("cwd", "workspace_roots"),
        reason=("reason", "trigger", "status"),
        transcripts=Transcripts("", ".cursor", "projects", "messages"),
        context=("additional_context",),
        message="",
    ),
}
"""The dialects, by the names in `table.CLIENTS`."""


class HookInput(NamedTuple):
    """The input of a hook, from any client."""

    session: str = ""
    folder: str = ""
    transcript: str = ""  # the path of its transcript; empty if missing
    prompt: str = ""
    reply: str = ""  # the model's last message, if no transcript is read
    reason: str = ""
    call: ToolCall | None = None
    id: str = ""  # of its event; empty for a new one
    excludes: Callable[[str], bool] | None = None  # whether nothing about a path is kept
    switches_of: Callable[[str], Switches] | None = None  # what counts in a folder; None for its files alone


def read(client: str, data: bytes) -> HookInput:
    """Parse the input of a hook, without private parts."""
    return interpret(client, decode_loosely(data))


def interpret(client: str, whole: object) -> HookInput:
    """Interpret the decoded input of a hook, without private parts."""
    dialect = DIALECTS[client]
    data_object = cut_private_in(whole)
    if not (isinstance(whole, dict) and isinstance(data_object, dict)):
        raise NotUnderstoodError("standard input has no JSON object")
    return HookInput(
        session=_first(data_object, dialect.session),
        folder=_first(data_object, dialect.folder),
        transcript=_first(data_object, ("transcript_path",)) if dialect.transcripts else "",
        # An earlier reply may contain the private tag; with the reply, the cut would remove typed text, too.
        prompt=cut_private(_typed(_first(whole, ("prompt",)), dialect.given)),
        reply=_first(data_object, (dialect.reply,)),
        reason=_first(data_object, dialect.reason)[:255],
        call=tool_call(data_object) if "tool_name" in data_object else None,
    )


def answer(client: str, hook: HookName, context: str, message: str) -> bytes:
    """Render a reply for a client; an empty object if there is nothing to send."""
    dialect = DIALECTS[client]
    reply: dict[str, Any] = {}
    if context and (event := _event_of(client, hook)) is not None:
        *outer, name = dialect.context
        holder = reply
        for each in outer:
            holder = holder.setdefault(each, {"hookEventName": event.name})
        holder[name] = context
        reply |= dialect.quiet
    if message and dialect.message:
        reply[dialect.message] = message
    return json.dumps(reply, ensure_ascii=False, separators=(",", ":")).encode()


def _event_of(client: str, hook: HookName) -> Event | None:
    from greenroom.transports.clients.table import HOOK_CLIENTS  # noqa: PLC0415 - hooks that only tell do without

    return HOOK_CLIENTS[client].events.get(hook)


def _typed(prompt: str, given: tuple[str, str] | None) -> str:
    """Return the typed part of a prompt, without earlier hook replies."""
    if given is None or not prompt.startswith(given[0]):
        return prompt
    _, end, typed = prompt.partition(given[1])
    return typed.lstrip() if end else prompt


def _first(data: Mapping[str, Any], names: tuple[str, ...]) -> str:
    for name in names:
        value = data.get(name)
        if isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, str) and value:
            return replace_surrogates(value)
    return ""
