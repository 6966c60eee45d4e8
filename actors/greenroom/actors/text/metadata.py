"""Metadata as text to be searched."""

from __future__ import annotations

import json
from typing import Any


def metadata_text(metadata: bytes | str) -> str:
    """Return the values of a JSON object, at any depth, as lines of text; names of fields are left out.

    Numbers stand as they were written. ``null`` is no value.

    Raises:
        ValueError: ``metadata`` is not JSON.
        RecursionError: It is nested thousands of levels deep.
    """
    if len(metadata) <= len("{}"):
        return ""
    lines: list[str] = []
    waiting: list[Any] = [json.loads(metadata, parse_int=str, parse_float=str)]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(reversed(value.values()))
        elif isinstance(value, list):
            waiting.extend(reversed(value))
        elif isinstance(value, bool):
            lines.append("true" if value else "false")
        elif value is not None:
            lines.append(value)
    return "\n".join(lines)
