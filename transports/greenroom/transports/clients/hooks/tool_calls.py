"""Tool calls in the clients' formats: command, written file, result and failure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from greenroom.actors.content.text.private_parts import cut_private_in

WRITERS: Final = frozenset(
    {"Write", "Edit", "MultiEdit", "NotebookEdit", "write_file", "replace", "apply_patch", "search_replace"}
)
"""The known clients' tools that write files."""
_PATHS: Final = ("file_path", "notebook_path", "path", "filePath", "absolute_path")
_COMMANDS: Final = ("command", "cmd", "script")
_OUTPUTS: Final = ("stdout", "stderr", "output", "content", "text", "llmContent", "error", "message")
_CODES: Final = ("exit_code", "exitCode")
_PATCHED: Final = r"(?m)^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.{1,4000})$"
_EXITED: Final = r"(?im)^(?:exit code:?|process exited with code) (\d{1,5})\b"
"""Both are compiled at first use, since each run of a hook imports this module."""
_HEAD: Final = 500
_DEPTH: Final = 4


class ToolCall(NamedTuple):
    """A call of a tool."""

    tool: str
    command: str = ""
    path: str = ""
    wrote: bool = False
    failed: bool = False  # whether the client reports a failure
    output: str = ""
    others: tuple[str, ...] = ()  # further files of a patch

    @property
    def has_effect(self) -> bool:
        """Whether the call ran a command or wrote a file."""
        return bool(self.command) or self.wrote


def tool_call(event: Mapping[str, Any]) -> ToolCall:
    """Parse the finished tool call in an event."""
    names = ("tool_response", "tool_output", "error")
    response = next((event[name] for name in names if name in event), None)
    return with_result(
        parse_call(event.get("tool_name"), event.get("tool_input")), response, failed=bool(event.get("error"))
    )


def parse_call(tool: object, given: object) -> ToolCall:
    """Parse a call without its result."""
    name = tool if isinstance(tool, str) else ""
    given = _object_in(given)
    arguments: Mapping[str, Any] = given if isinstance(given, dict) else {}
    texts = (each for each in (given, *arguments.values()) if isinstance(each, str))
    patch = next((each for each in texts if "*** Begin Patch" in each[:_HEAD]), None)
    if patch is not None:
        path, *others = [each.strip() for each in re.findall(_PATCHED, patch)] or [""]
        return ToolCall(name, path=path, wrote=True, others=tuple(others))
    path = _text(arguments, _PATHS)
    return ToolCall(name, _text(arguments, _COMMANDS), path, wrote=bool(path) and name in WRITERS)


def with_result(call: ToolCall, result: object, *, failed: bool = False) -> ToolCall:
    """Add the result to a call."""
    result = _object_in(result)
    output = output_of(result)
    exited = re.search(_EXITED, output[:_HEAD])
    failed = failed or _failed(result) or (exited is not None and int(exited[1]) != 0)
    return call._replace(output=output, failed=failed)


def output_of(result: object, depth: int = _DEPTH) -> str:
    """Return the text of a result."""
    if isinstance(result, str):
        return result
    if depth and isinstance(result, list):
        return "\n".join(filter(None, (output_of(each, depth - 1) for each in result)))
    if depth and isinstance(result, dict):
        return "\n".join(filter(None, (output_of(result.get(name), depth - 1) for name in _OUTPUTS)))
    return ""


def _object_in(value: object) -> object:
    """Decode an object in a text, because some clients send results as text."""
    if isinstance(value, str) and value.lstrip()[:1] == "{":
        try:
            return cut_private_in(json.loads(value))  # escapes may have hidden private parts
        except (ValueError, RecursionError):
            return value
    return value


def _text(arguments: Mapping[str, Any], names: tuple[str, ...]) -> str:
    for name in names:
        value = arguments.get(name)
        if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
            import shlex  # noqa: PLC0415 - most clients send a text

            return shlex.join(value)
        if isinstance(value, str) and value:
            return value
    return ""


def _failed(result: object) -> bool:
    if not isinstance(result, dict):
        return False
    if result.get("is_error") is True or result.get("success") is False or result.get("error"):
        return True
    codes = [
        holder.get(name)
        for holder in (result, result.get("metadata"))
        if isinstance(holder, dict)
        for name in _CODES
    ]
    return any(isinstance(code, int) and code != 0 for code in codes)
