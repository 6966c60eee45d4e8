"""How each client spells its events, and how an answer is spelled for it: one table, and pure functions.

The members are those of the clients' published references: Claude Code's and Gemini CLI's reference of hooks,
the JSON schemas that Codex CLI generates, and Cursor's page of hooks. What is not known is ignored, and what
is missing is empty, for clients add members with each version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple

import msgspec

from greenroom.actors.sessions.requests.hook_events import HookName
from greenroom.transports.clients.hooks.tool_calls import ToolCall, tool_call
from greenroom.transports.hooks.clients import HOOK_CLIENTS
from greenroom.transports.hooks.loose_json import decoded, without_halves

Reader = Literal["messages", "rollout"]
"""How a transcript's lines are spelled: as messages of blocks, or as Codex's items."""


class Transcripts(NamedTuple):
    """Where a client keeps its transcripts, and how they are written.

    Attributes:
        variable: The environment variable that names the client's folder.
        home: That folder below the home folder, unless the variable says so.
        below: The folder in it that has the transcripts.
        reader: How their lines are spelled.
    """

    variable: str
    home: str
    below: str
    reader: Reader


class Dialect(NamedTuple):
    """How a client spells its events, and reads an answer.

    Attributes:
        session: Members that have its session's id; the first that is there counts.
        folder: Likewise the folder that it works in; of a list the first.
        reason: Likewise why a session starts or ends, or a conversation is made shorter.
        given: What stands before and behind the answers of hooks that the client puts before a prompt.
        reply: The member that has what the model said at the end of its turn, where no transcript is read.
        transcripts: Its transcripts; None where they are no lines, for then its events tell what is kept.
        context: The members under which an answer has text for the model.
        message: The member of an answer that the person is shown.
        quiet: Members of an answer that keep it out of the person's sight.
    """

    session: tuple[str, ...] = ("session_id",)
    folder: tuple[str, ...] = ("cwd",)
    reason: tuple[str, ...] = ("source", "reason", "trigger")
    given: tuple[str, str] | None = None
    reply: str = ""
    transcripts: Transcripts | None = None
    context: tuple[str, ...] = ("hookSpecificOutput", "additionalContext")
    message: str = "systemMessage"
    quiet: Mapping[str, bool] = {}


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
"""By the names of `clients`."""


class Said(NamedTuple):
    """What a client said of an event, of whichever client.

    Attributes:
        session: The client's id of its session; empty if it told none.
        folder: The folder that it works in; empty likewise.
        transcript: The path of its transcript; empty likewise.
        prompt: What the person typed.
        reply: What the model said at the end, where no transcript is read.
        reason: Why, in the client's word.
        call: The tool that was called.
    """

    session: str = ""
    folder: str = ""
    transcript: str = ""
    prompt: str = ""
    reply: str = ""
    reason: str = ""
    call: ToolCall | None = None


class NotUnderstoodError(Exception):
    """A client said nothing that can be understood; the sentence says why."""


def read(client: str, data: bytes) -> Said:
    """Return what a client said.

    Raises:
        NotUnderstoodError: It is no JSON object.
    """
    dialect = DIALECTS[client]
    told = decoded(data)
    if not isinstance(told, dict):
        raise NotUnderstoodError("what stands on standard input is no JSON object")
    return Said(
        session=_first(told, dialect.session),
        folder=_first(told, dialect.folder),
        transcript=_first(told, ("transcript_path",)) if dialect.transcripts else "",
        prompt=_typed(_first(told, ("prompt",)), dialect.given),
        reply=_first(told, (dialect.reply,)),
        reason=_first(told, dialect.reason)[:255],
        call=tool_call(told) if "tool_name" in told else None,
    )


def answer(client: str, hook: HookName, context: str, message: str) -> bytes:
    """Return an answer in the client's words; an empty object where there is nothing to say.

    Args:
        client: The client's name.
        hook: The hook that is answered.
        context: Text for the model.
        message: A line for the person.
    """
    dialect = DIALECTS[client]
    event = HOOK_CLIENTS[client].events.get(hook)
    said: dict[str, Any] = {}
    if event is not None and context:
        *outer, name = dialect.context
        holder = said
        for each in outer:
            holder = holder.setdefault(each, {"hookEventName": event.name})
        holder[name] = context
        said |= dialect.quiet
    if message and dialect.message:
        said[dialect.message] = message
    return msgspec.json.encode(said)


def _typed(prompt: str, given: tuple[str, str] | None) -> str:
    """Return a prompt as it was typed: what hooks answered before is not the person's."""
    if given is None or not prompt.startswith(given[0]):
        return prompt
    _, end, typed = prompt.partition(given[1])
    return typed.lstrip() if end else prompt


def _first(told: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next(_texts(told, names), "")


def _texts(told: Mapping[str, Any], names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        value = told.get(name)
        if isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, str) and value:
            yield without_halves(value)
