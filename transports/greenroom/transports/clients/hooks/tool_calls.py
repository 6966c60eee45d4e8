"""Calls of tools, as clients tell them: the command that ran, the file written, whether it failed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

WRITERS: Final = frozenset(
    {"Write", "Edit", "MultiEdit", "NotebookEdit", "write_file", "replace", "apply_patch", "search_replace"}
)
"""Tools of the known clients that write a file."""
_PATHS: Final = ("file_path", "notebook_path", "path", "filePath", "absolute_path")
_COMMANDS: Final = ("command", "cmd", "script")
_OUTPUTS: Final = ("stdout", "stderr", "output", "content", "text", "llmContent", "error", "message")
_CODES: Final = ("exit_code", "exitCode")
_PATCHED: Final = re.compile(r"^\*\*\* (?:Add|Update) File: (.{1,4000})$", re.MULTILINE)
_EXITED: Final = re.compile(
    r"^(?:exit code:?|process exited with code) (\d{1,5})\b", re.IGNORECASE | re.MULTILINE
)
_HEAD: Final = 500
_DEPTH: Final = 4


class ToolCall(NamedTuple):
    """A call of a tool.

    Attributes:
        tool: Its name.
        command: The shell command that it ran.
        path: The file that it read or wrote.
        wrote: Whether it wrote that file.
        failed: Whether it is said that it failed.
        output: What came back.
    """

    tool: str
    command: str = ""
    path: str = ""
    wrote: bool = False
    failed: bool = False
    output: str = ""

    @property
    def is_telling(self) -> bool:
        """Whether it did more than to look at something."""
        return bool(self.command) or self.wrote


def tool_call(told: Mapping[str, Any]) -> ToolCall:
    """Return the call of which an event tells after it."""
    response = next((told[name] for name in ("tool_response", "tool_output", "error") if name in told), None)
    return with_result(
        asked(told.get("tool_name"), told.get("tool_input")), response, failed=bool(told.get("error"))
    )


def asked(tool: object, given: object) -> ToolCall:
    """Return a call before its result.

    Args:
        tool: The tool's name, if it is a text.
        given: What it was called with: an object, or a text, which may be one.
    """
    name = tool if isinstance(tool, str) else ""
    given = _object_in(given)
    arguments: Mapping[str, Any] = given if isinstance(given, dict) else {}
    patch = next((each for each in (given, *arguments.values()) if _is_patch(each)), None)
    if patch is not None:
        found = _PATCHED.search(patch)
        return ToolCall(name, path=found[1].strip() if found else "", wrote=True)
    path = _text(arguments, _PATHS)
    return ToolCall(name, _text(arguments, _COMMANDS), path, wrote=bool(path) and name in WRITERS)


def with_result(call: ToolCall, result: object, *, failed: bool = False) -> ToolCall:
    """Return a call with its result.

    Args:
        call: The call.
        result: What the client tells of it: a text, an object or blocks.
        failed: Whether it is known already that it failed.
    """
    result = _object_in(result)
    output = output_of(result)
    return call._replace(output=output, failed=failed or _failed(result) or _exited(output))


def output_of(result: object, depth: int = _DEPTH) -> str:
    """Return the text in a result."""
    if isinstance(result, str):
        return result
    if depth and isinstance(result, list):
        return "\n".join(filter(None, (output_of(each, depth - 1) for each in result)))
    if depth and isinstance(result, dict):
        return "\n".join(filter(None, (output_of(result.get(name), depth - 1) for name in _OUTPUTS)))
    return ""


def _object_in(value: object) -> object:
    """Return the object that a text spells, if it does; some clients spell results so."""
    if isinstance(value, str) and value.lstrip()[:1] == "{":
        try:
            return msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return value
    return value


def _text(arguments: Mapping[str, Any], names: tuple[str, ...]) -> str:
    for name in names:
        value = arguments.get(name)
        if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
            return shlex.join(value)
        if isinstance(value, str) and value:
            return value
    return ""


def _is_patch(value: object) -> bool:
    return isinstance(value, str) and "*** Begin Patch" in value[:_HEAD]


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


def _exited(output: str) -> bool:
    found = _EXITED.search(output[:_HEAD])
    return found is not None and int(found[1]) != 0
