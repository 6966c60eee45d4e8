"""Paths under ``/memories``, and the keys of their memories."""

from __future__ import annotations

import re
from urllib.parse import unquote

from anthropic.lib.tools import ToolError

ROOT = "/memories"
MOST_KEY = 255
"""The most characters of a key; each byte of a character that keys cannot have takes three."""

_NOT_IN_KEYS = re.compile(r'[%/\\:*?"<>|]')
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def inside(path: object) -> str:
    """Return a path relative to ``/memories``, without ``.``, ``..`` and empty parts; may be empty.

    Names are compared character by character, as on Linux: nothing is normalized.
    """
    if not isinstance(path, str) or not (path == ROOT or path.startswith(ROOT + "/")):
        raise ToolError(f"Path must start with {ROOT}, got: {path}")
    if _CONTROL.search(path) is not None:
        raise ToolError(f"Path {path!r} has a control character. Please provide a valid path.")
    parts: list[str] = []
    for part in path[len(ROOT) :].split("/"):
        if part == "..":
            if not parts:
                raise _escape(path)
            parts.pop()
        elif part not in {"", "."}:
            _check_name(part, path)
            parts.append(part)
    relative = "/".join(parts)
    if len(key_of(relative)) > MOST_KEY:
        raise ToolError(
            f"Path {path[:60]}… is too long: below {ROOT} it may have {MOST_KEY} characters, "
            "where / and other special characters count as three. Please provide a shorter path."
        )
    return relative


def _check_name(part: str, path: str) -> None:
    """Refuse backslashes and percent-encoded dots and slashes: other programs may follow them outside."""
    name = part
    while True:
        if "\\" in name:
            raise _escape(path)
        plain = unquote(name)
        if plain == name:
            return
        if plain in {".", ".."} or "/" in plain:
            raise _escape(path)
        name = plain


def _escape(path: str) -> ToolError:
    return ToolError(f"Path {path} would escape {ROOT} directory")


def key_of(relative: str) -> str:
    """Return the key of a file: its path, with characters that keys cannot have percent-encoded."""
    return _NOT_IN_KEYS.sub(lambda found: f"%{ord(found[0]):02X}", relative)


def path_of(key: str) -> str | None:
    """Return the path of a key; None for a key that is no path."""
    try:
        path = unquote(key, errors="strict")
        return path if key_of(path) == key and inside(f"{ROOT}/{path}") == path else None
    except (UnicodeDecodeError, ToolError):
        return None


def parents_of(relative: str) -> list[str]:
    """Return the directories above a path, without ``/memories``."""
    parts = relative.split("/")[:-1]
    return ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
