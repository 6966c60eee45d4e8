"""Lines of transcripts as turns: who said what, which tools were called, and how that went."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final, Literal, NamedTuple

from greenroom.transports.clients.hooks.dialects import Reader
from greenroom.transports.clients.hooks.tool_calls import ToolCall, asked, with_result
from greenroom.transports.hooks.loose_json import decoded

Role = Literal["user", "assistant", "tool"]
_MAX_OPEN: Final = 200
"""Calls without a result that are remembered."""
_INSERTED: Final = re.compile(r"<system-reminder>.*?(?:</system-reminder>|\Z)", re.DOTALL)
_QUERY: Final = re.compile(r"\A\s*<user_query>(.*)</user_query>\s*\Z", re.DOTALL)
_NOT_TYPED: Final = (
    *("<command-", "<local-command-", "<bash-", "<task-notification", "Caveat: The messages below"),
    *("This session is being continued from a previous conversation", "[Request interrupted by user"),
)
"""How what a client writes in the person's name begins."""


_INSERTED_WHOLE: Final = re.compile(r"\s*<(?:[a-z]+[-_][a-z_-]+|channel)[\s>]")
"""How what others said begins where it stands in the person's name: what is selected in an editor, a message
of another agent or of a channel. Clients name such tags with a mark that no tag of HTML has."""


class RawTurn(NamedTuple):
    """A turn as the transcript has it.

    Attributes:
        role: Who said it.
        text: What was said; of a tool what came back.
        call: The tool's call.
        at: When, if the line tells.
    """

    role: Role
    text: str
    call: ToolCall | None = None
    at: datetime | None = None


class Conversation:
    """Turns that come line by line: a call is told with its result.

    Args:
        reader: How the lines are spelled.
    """

    def __init__(self, reader: Reader) -> None:
        self._read = self._message if reader == "messages" else self._item
        self._open: dict[str, ToolCall] = {}

    def turns_in(self, line: bytes) -> Iterator[RawTurn]:
        """Yield the turns of a line; none of one that cannot be understood."""
        told = decoded(line)
        if isinstance(told, dict):
            at = _time(told.get("timestamp"))
            for turn in self._read(told):
                yield turn._replace(at=at)

    def _message(self, told: dict[str, Any]) -> Iterator[RawTurn]:
        """Yield the turns of a line that is a message of blocks, or that has one."""
        if told.get("isMeta") or told.get("isSidechain") or told.get("isCompactSummary"):
            return
        message = told.get("message")
        if not isinstance(message, dict):
            return
        role = told.get("type") or told.get("role") or message.get("role")
        content = message.get("content")
        for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            if isinstance(block, dict) and role in ("user", "assistant"):
                yield from self._block(role, block)

    def _block(self, role: Role, block: dict[str, Any]) -> Iterator[RawTurn]:
        match block.get("type"):
            case "text":
                yield from _spoken(role, block.get("text"))
            case "tool_use":
                self._remember(block.get("id"), asked(block.get("name"), block.get("input")))
            case "tool_result":
                yield self._result(
                    block.get("tool_use_id"), block.get("content"), failed=block.get("is_error") is True
                )

    def _item(self, told: dict[str, Any]) -> Iterator[RawTurn]:
        """Yield the turns of a line of Codex's; what the person typed is an event, since items have more."""
        payload = told.get("payload")
        if not isinstance(payload, dict):
            return
        match told.get("type"), payload.get("type"):
            case "event_msg", "user_message":
                yield from _spoken("user", payload.get("message"))
            case "event_msg", "item_completed":  # of later versions
                item = payload.get("item")
                if isinstance(item, dict) and item.get("type") == "UserMessage":
                    yield from _texts("user", item.get("content"))
            case "response_item", "message" if payload.get("role") == "assistant":
                yield from _texts("assistant", payload.get("content"))
            case "response_item", "function_call" | "custom_tool_call":
                given = payload.get("arguments", payload.get("input"))
                self._remember(payload.get("call_id"), asked(payload.get("name"), given))
            case "response_item", "local_shell_call":
                self._remember(payload.get("call_id"), asked("shell", payload.get("action")))
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


def _texts(role: Role, content: object) -> Iterator[RawTurn]:
    for block in content if isinstance(content, list) else []:
        if isinstance(block, dict):
            yield from _spoken(role, block.get("text"))


def _spoken(role: Role, text: object) -> Iterator[RawTurn]:
    if not isinstance(text, str):
        return
    if role == "user":
        text = _INSERTED.sub("", text)
        text = query[1] if (query := _QUERY.match(text)) else text
        if text.lstrip().startswith(_NOT_TYPED) or _INSERTED_WHOLE.match(text):
            return
    if not text.isspace() and text:
        yield RawTurn(role, text)


def _time(value: object) -> datetime | None:
    """Return a time that says its offset; None for one that in UTC is none, since no owner would take it."""
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
        return at.astimezone(UTC) if at is not None and at.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None
