"""Turns in a transcript's lines: messages and tool calls with their results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final, Literal, NamedTuple

from greenroom.actors.content.text.private_parts import cut_private_in
from greenroom.transports.clients.hooks.client_json import decode_loosely
from greenroom.transports.clients.hooks.dialects import Reader
from greenroom.transports.clients.hooks.tool_calls import ToolCall, parse_call, with_result

Role = Literal["user", "assistant", "tool"]
_MAX_OPEN: Final = 200
"""At most this many calls without a result are remembered."""
_REMINDER: Final = "<system-reminder>"
_INSERTED: Final = rf"(?s){_REMINDER}.*?(?:</system-reminder>|\Z)"  # compiled at first use, as below
_QUERY: Final = ("<user_query>", "</user_query>")
"""Delimiters of the typed text; a private part may have removed the second one."""
_NOT_TYPED: Final = (
    *("<command-", "<local-command-", "<bash-", "<task-notification", "Caveat: The messages below"),
    *("This session is being continued from a previous conversation", "[Request interrupted by user"),
)
"""Prefixes of texts that a client writes in the user's name."""
_EXPANDED: Final = ("<command-", "<local-command-", "<bash-")
"""Prefixes of blocks beside which a client writes what a command stands for."""
_OF_PROGRAMS: Final = (
    "isMeta",
    "isSidechain",
    "isCompactSummary",
    "isSynthetic",
    "agentId",
    "parent_tool_use_id",
)
"""Members of lines that a client or a sub-agent wrote."""
_OF_TOOLS: Final = ("toolUseResult", "sourceToolUseID", "sourceToolAssistantUUID")
"""Members of lines with a tool's result; text beside it is not the person's."""


_INSERTED_WHOLE: Final = r"<(?:[a-z]+[-_][a-z_-]+|channel)[\s>]"
"""The prefix of text that is not the user's: an editor's selection, a message of another agent or channel.
Clients use a hyphen or underscore in such tags, unlike any tag of HTML."""


class RawTurn(NamedTuple):
    """A turn as in the transcript."""

    role: Role
    text: str  # the message, or a tool's output
    call: ToolCall | None = None
    at: datetime | None = None  # the time, if the line has one
    by_program: bool = False  # whether a program passed the message to the client in the person's place


class Conversation:
    """Parses turns line by line; yields a tool call together with its result."""

    def __init__(self, reader: Reader) -> None:
        self._read = self._message if reader == "messages" else self._item
        self._open: dict[str, ToolCall] = {}
        self._source: object = None  # who began a session of Codex, by the first line of its rollout

    def turns_in(self, line: bytes) -> Iterator[RawTurn]:
        """Yield the turns of a line, without private parts; an invalid line has none."""
        whole = decode_loosely(line)
        data = cut_private_in(_without_inserted(whole))
        if isinstance(data, dict):
            at = _time(data.get("timestamp"))
            is_persons = _is_persons(whole) and not _is_of_agent(self._source)
            for turn in self._read(data):
                if turn.role != "user":
                    yield turn._replace(at=at)
                elif is_persons:
                    yield turn._replace(at=at, by_program=_is_passed(data) or self._source == "exec")

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
            case "session_meta", _:
                self._source = payload.get("source")
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

    def _remember(self, key: object, call: ToolCall) -> None:
        if isinstance(key, str):
            self._open[key] = call
            if len(self._open) > _MAX_OPEN:
                del self._open[next(iter(self._open))]

    def _result(self, key: object, result: object, *, failed: bool = False) -> RawTurn:
        call = self._open.pop(key, ToolCall("")) if isinstance(key, str) else ToolCall("")
        done = with_result(call, result, failed=failed)
        return RawTurn("tool", done.output, done)


def _is_persons(line: object) -> bool:
    """Return whether the text of a line can be the person's, not a program's."""
    message = line.get("message") if isinstance(line, dict) else None
    if not (isinstance(line, dict) and isinstance(message, dict)):
        return True
    origin = line.get("origin")
    content = message.get("content")
    blocks = [each for each in content if isinstance(each, dict)] if isinstance(content, list) else []
    return not (
        any(line.get(each) for each in _OF_TOOLS)
        or (isinstance(origin, dict) and origin.get("kind", "human") != "human")
        or any(each.get("type") == "tool_result" for each in blocks)
        or any(str(each.get("text")).lstrip().startswith(_EXPANDED) for each in blocks)
    )


def _is_passed(line: dict[str, Any]) -> bool:
    """Return whether a program started Claude Code with this message."""
    return line.get("promptSource") == "sdk" or str(line.get("entrypoint")).startswith("sdk")


def _is_of_agent(source: object) -> bool:
    """Return whether a session of Codex is a sub-agent's, whose messages another agent wrote."""
    return isinstance(source, dict) or str(source) in {"subagent", "sub_agent"}


def _without_inserted(line: object) -> object:
    """Remove what a client inserted into a user message, as it may contain private tags."""
    message = line.get("message") if isinstance(line, dict) else None
    if not (isinstance(line, dict) and isinstance(message, dict) and _role(line, message) == "user"):
        return line
    content = message.get("content")
    if isinstance(content, list):
        content = [each for block in content if (each := _typed_block(block)) is not None]
    elif isinstance(content, str):
        content = _without_reminders(content)
    return line | {"message": message | {"content": content}}


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
            text = query.removeprefix(_QUERY[0]).removesuffix(_QUERY[1])
        if text.lstrip().startswith(_NOT_TYPED) or _is_inserted(text):
            return
    if not text.isspace() and text:
        yield RawTurn(role, text)


def _time(value: object) -> datetime | None:
    """Parse a time with an offset; return None without an offset or out of range."""
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
        return at.astimezone(UTC) if at is not None and at.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None
