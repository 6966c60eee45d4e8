"""Turns in a transcript's lines: messages and tool calls with their results."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal, NamedTuple

from greenroom.actors.content.text.private_parts import cut_private_in
from greenroom.transports.clients.hooks.client_json import decode_loosely, replace_surrogates
from greenroom.transports.clients.hooks.dialects import Reader
from greenroom.transports.clients.hooks.tool_calls import ToolCall, parse_call, with_result

Role = Literal["user", "assistant", "tool"]
_MAX_CALLS: Final = 200
"""At most this many calls are remembered: the newest."""
_REMINDER: Final = "<system-reminder"
_INSERTED: Final = rf"(?s){_REMINDER}\b[^>]*>.*?(?:</system-reminder>|\Z)"  # compiled at first use, as below
_QUERY: Final = ("<user_query>", "</user_query>")
"""Delimiters of the typed text; a private part may have removed the second one."""
_NOT_TYPED: Final = (
    *("<command-", "<local-command-", "<bash-", "<task-notification", "Caveat: The messages below"),
    *("This session is being continued from a previous conversation", "[Request interrupted by user"),
)
"""Prefixes of texts that a client writes in the user's name."""
_NOT_ALONE: Final = (
    *("Implement the following plan", "Stop hook feedback", "Base directory for this skill"),
    "Context from my IDE setup",
)
"""Prefixes of texts that a client wrote, perhaps with the user's words among them."""
_EXPANDED: Final = ("<command-", "<local-command-", "<bash-")
"""Prefixes of blocks beside which a client writes what a command stands for."""
_OF_PROGRAMS: Final = (
    "isMeta",
    "isSidechain",
    "isCompactSummary",
    "isSynthetic",
    "isVisibleInTranscriptOnly",
    "agentId",
    "parent_tool_use_id",
)
"""Members of lines that a client or a sub-agent wrote."""
_OF_TOOLS: Final = ("toolUseResult", "sourceToolUseID", "sourceToolAssistantUUID")
"""Members of lines with a tool's result; text beside it is not the person's."""
_PERSONS: Final[Mapping[str, frozenset[object]]] = {
    "promptSource": frozenset({"typed", "user", "queued"}),
    "entrypoint": frozenset({"cli", "claude-vscode", "claude-jetbrains", "claude-desktop"}),
    "userType": frozenset({"external", "ant"}),
    "planContent": frozenset(),
    "teamName": frozenset(),
    "agentName": frozenset(),
}
"""Members of a line that tell who wrote the message, with the values for the person."""
_PERSONS_OF_CODEX: Final[Mapping[str, frozenset[object]]] = {
    "source": frozenset({"cli", "vscode"}),
    "thread_source": frozenset({"cli", "vscode", "user"}),
}
"""The same in the first line of a rollout, which must name the first of them."""
_AGENTS: Final = frozenset({"subagent", "sub_agent"})
_LONGEST_FOLDER: Final = 4_096


_INSERTED_WHOLE: Final = r"<(?:[a-z]+[-_][a-z_-]+|channel)[\s>]"
"""The prefix of text that is not the user's: an editor's selection, a message of another agent or channel.
Clients use a hyphen or underscore in such tags, unlike any tag of HTML."""


class RawTurn(NamedTuple):
    """A turn as in the transcript."""

    role: Role
    text: str  # the message, or a tool's output
    call: ToolCall | None = None
    at: datetime | None = None  # the time, if the line has one
    by_program: bool = False  # whether a program may have written the message in the person's place
    folder: str = ""  # where the session was then, if the line says it


class Conversation:
    """Parses turns line by line; yields a tool call together with its result.

    Args:
        reader: The format of the lines.
        calls: Calls of other lines, by their ids.

    Attributes:
        calls: The newest calls, by their ids.
        lacks_call: Whether a result came without its call.
    """

    def __init__(self, reader: Reader, calls: Mapping[str, ToolCall] | None = None) -> None:
        self._read = self._message if reader == "messages" else self._item
        self.calls = dict(calls or {})
        self.lacks_call = False
        self._is_rollout = reader == "rollout"
        self._meta: dict[str, Any] | None = None  # of a session of Codex, by the first line of its rollout
        self._folder = ""  # the last one of a rollout

    def turns_in(self, line: bytes) -> Iterator[RawTurn]:
        """Yield the turns of a line, without private parts; an invalid line has none."""
        whole = decode_loosely(line)
        data = cut_private_in(_without_inserted(whole))
        if isinstance(data, dict):
            at = _time(data.get("timestamp"))
            is_persons = _is_persons(whole) and not _is_of_agent(self._meta or {})
            for found in self._read(data):
                turn = found._replace(at=at, folder=self._folder or _folder(data))
                if turn.role != "user":
                    yield turn
                elif is_persons:
                    yield turn._replace(by_program=turn.by_program or self._is_passed(whole))

    def _is_passed(self, line: object) -> bool:
        """Return whether a program may have written a line in the person's place."""
        if self._is_rollout:
            meta = self._meta or {}
            return not _tells_person(meta, _PERSONS_OF_CODEX) or meta.get("source") is None
        return not isinstance(line, dict) or not _tells_person(line, _PERSONS) or _has_half_a_reminder(line)

    def _message(self, data: dict[str, Any]) -> Iterator[RawTurn]:
        """Yield the turns of a line that is or has a message of blocks."""
        if any(data.get(each) for each in _OF_PROGRAMS):
            return
        message = data.get("message")
        if not isinstance(message, dict):
            return
        role = _role(data, message)
        content = message.get("content")
        for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            if isinstance(block, dict) and role in ("user", "assistant"):
                yield from self._block(role, block)

    def _block(self, role: Role, block: dict[str, Any]) -> Iterator[RawTurn]:
        match block.get("type"):
            case "text":
                yield from _spoken(role, block.get("text"))
            case "tool_use":
                self._remember(block.get("id"), parse_call(block.get("name"), block.get("input")))
            case "tool_result":
                yield self._result(
                    block.get("tool_use_id"), block.get("content"), failed=block.get("is_error") is True
                )

    def _item(self, data: dict[str, Any]) -> Iterator[RawTurn]:
        """Yield the turns of Codex's line; typed text is in events, as items contain more."""
        payload = data.get("payload")
        if not isinstance(payload, dict):
            return
        match data.get("type"), payload.get("type"):
            case "session_meta" | "turn_context", _:
                self._note(data, payload)
            case "event_msg", "user_message" if payload.get("kind", "plain") == "plain":
                yield from _spoken("user", payload.get("message"))
            case "event_msg", "item_completed":  # in later versions
                item = payload.get("item")
                if isinstance(item, dict) and item.get("type") == "UserMessage":
                    yield from _texts("user", item.get("content"))
            case "response_item", "message" if payload.get("role") == "assistant":
                yield from _texts("assistant", payload.get("content"))
            case "response_item", "function_call" | "custom_tool_call":
                given = payload.get("arguments", payload.get("input"))
                self._remember(payload.get("call_id"), parse_call(payload.get("name"), given))
            case "response_item", "local_shell_call":
                self._remember(payload.get("call_id"), parse_call("shell", payload.get("action")))
            case "response_item", "function_call_output" | "custom_tool_call_output":
                yield self._result(payload.get("call_id"), payload.get("output"))

    def _note(self, data: dict[str, Any], payload: dict[str, Any]) -> None:
        """Note where Codex is, and who began it; later such lines may be copies."""
        if data["type"] == "session_meta":
            self._meta = self._meta or payload
        self._folder = _folder(payload) or self._folder

    def _remember(self, key: object, call: ToolCall) -> None:
        if isinstance(key, str):
            self.calls[key] = call
            if len(self.calls) > _MAX_CALLS:
                del self.calls[next(iter(self.calls))]

    def _result(self, key: object, result: object, *, failed: bool = False) -> RawTurn:
        call = self.calls.get(key) if isinstance(key, str) else None
        self.lacks_call |= call is None
        done = with_result(call or ToolCall(""), result, failed=failed)
        return RawTurn("tool", done.output, done)


def _is_persons(line: object) -> bool:
    """Return whether the text of a line can be the person's, not a program's."""
    message = line.get("message") if isinstance(line, dict) else None
    if not (isinstance(line, dict) and isinstance(message, dict)):
        return True
    origin = line.get("origin")
    kind = origin.get("kind") if isinstance(origin, dict) else origin
    content = message.get("content")
    blocks = [each for each in content if isinstance(each, dict)] if isinstance(content, list) else []
    return not (
        any(line.get(each) is not None for each in _OF_TOOLS)
        or (kind is not None and kind != "human")
        or any(each.get("type") == "tool_result" for each in blocks)
        or any(str(each.get("text")).lstrip().startswith(_EXPANDED) for each in blocks)
    )


def _tells_person(line: Mapping[str, Any], values: Mapping[str, frozenset[object]]) -> bool:
    """Return whether no member of a line names another author; an unknown value names one."""
    told = ((line.get(name), good) for name, good in values.items())
    return all(value is None or (isinstance(value, str) and value in good) for value, good in told)


def _has_half_a_reminder(line: dict[str, Any]) -> bool:
    """Return whether a block has only one end of a reminder around others."""
    message = line.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    blocks = content if isinstance(content, list) else []
    texts = [str(each.get("text")) for each in blocks if isinstance(each, dict)]
    return any(each.count(_REMINDER) != each.count("</system-reminder>") for each in texts)


def _is_of_agent(meta: dict[str, Any]) -> bool:
    """Return whether a session of Codex is a sub-agent's, whose messages another agent wrote."""
    source = meta.get("source")
    return isinstance(source, dict) or str(source) in _AGENTS or meta.get("thread_source") == "subagent"


def _folder(data: Mapping[str, Any]) -> str:
    """Return the working folder that a line tells."""
    folder = data.get("cwd")
    if not isinstance(folder, str) or not os.path.isabs(folder) or "\0" in folder:  # noqa: PTH117 - as texts
        return ""
    return replace_surrogates(folder) if len(folder) <= _LONGEST_FOLDER else ""


def _without_inserted(line: object) -> object:
    """Remove what a client inserted into a user message, as it may contain private tags."""
    message = line.get("message") if isinstance(line, dict) else None
    if not (isinstance(line, dict) and isinstance(message, dict) and _role(line, message) == "user"):
        return line
    content = message.get("content")
    if isinstance(content, list):
        queries = [each for each in content if _is_query(each)]
        content = [each for block in queries or content if (each := _typed_block(block)) is not None]
    elif isinstance(content, str):
        content = _without_reminders(content)
    return line | {"message": message | {"content": content}}


def _is_query(block: object) -> bool:
    text = block.get("text") if isinstance(block, dict) else None
    return isinstance(text, str) and text.lstrip().startswith(_QUERY[0])


def _typed_block(block: object) -> object:
    text = block.get("text") if isinstance(block, dict) else None
    if not (isinstance(block, dict) and isinstance(text, str)):
        return block
    text = _without_reminders(text)
    is_typed = text.lstrip().startswith(_QUERY[0]) or not _is_inserted(text)
    return block | {"text": text} if is_typed else None


def _without_reminders(text: str) -> str:
    return re.sub(_INSERTED, "", text) if _REMINDER in text else text


def _is_inserted(text: str) -> bool:
    start = text.lstrip()
    return start.startswith("<") and re.match(_INSERTED_WHOLE, start) is not None


def _role(line: dict[str, Any], message: dict[str, Any]) -> object:
    return line.get("type") or line.get("role") or message.get("role")


def _texts(role: Role, content: object) -> Iterator[RawTurn]:
    for block in content if isinstance(content, list) else []:
        if isinstance(block, dict):
            yield from _spoken(role, block.get("text"))


def _spoken(role: Role, text: object) -> Iterator[RawTurn]:
    if not isinstance(text, str):
        return
    if role == "user":
        text = _without_reminders(text)
        if (query := text.strip()).startswith(_QUERY[0]):
            text = query.removeprefix(_QUERY[0]).partition(_QUERY[1])[0]
        if text.lstrip().startswith(_NOT_TYPED) or _is_inserted(text):
            return
    if not text.isspace() and text:
        is_clients = role == "user" and text.lstrip("# \n").startswith(_NOT_ALONE)
        yield RawTurn(role, text, by_program=is_clients)


def _time(value: object) -> datetime | None:
    """Parse a time with an offset; return None without an offset or out of range."""
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
        return at.astimezone(UTC) if at is not None and at.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None
