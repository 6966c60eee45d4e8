"""Cut out the parts of a text between ``<private>`` and ``</private>``.

A part without an end reaches to the end of the text.
"""

from __future__ import annotations

import re
from typing import Final

PRIVATE: Final = "[private part left out]"
"""Replaces a private part in a text."""
_TAG: Final = r"(?i)<private(?=[\s/>])|</\s{0,9}private\s{0,99}>"
"""A start tag up to its attributes, which are cut as well; or a whole end tag. Compiled at first
use, since hooks import this."""
_OF_BLOCKS: Final = frozenset({"type", "id", "name", "role", "call_id", "tool_use_id", "is_error"})
"""Members of a block in a message that have no spoken text."""
_DEEPEST: Final = 100
"""A value is searched to this many levels; deeper values are cut."""


def cut_private(text: str) -> str:
    """Replace each private part of a text by a mark. Parts may be nested."""
    return _cut(text, 0)[0]


def cut_private_in(value: object) -> object:
    """Return a JSON value without the private parts of its texts.

    The blocks of a list are one message: a part may begin in one block and end in another.
    """
    return _cut_value(value, 0)[0]


def _cut(text: str, depth: int) -> tuple[str, int]:
    """Return a text without private parts, and how many stay open; ``depth`` are open before."""
    if not depth and "<" not in text:
        return text, 0
    kept = [PRIVATE] if depth else []
    done = 0
    last = text.rfind(">")
    for tag in re.finditer(_TAG, text):
        if not tag[0].startswith("</"):
            if tag.end() > last:  # not a tag
                break
            if not depth:
                kept += (text[done : tag.start()], PRIVATE)
            depth += 1
        elif depth:
            depth -= 1
            done = tag.end()
    return "".join(kept if depth else (*kept, text[done:])), depth


def _cut_value(value: object, depth: int, level: int = 0, *, is_block: bool = False) -> tuple[object, int]:
    """Cut all texts in a value; ``depth`` parts of its message are open before."""
    if isinstance(value, str):
        return _cut(value, depth)
    if level > _DEEPEST:
        return None, depth
    if isinstance(value, list):
        parts = []
        for each in value:
            part, depth = _cut_value(each, depth, level + 1, is_block=True)
            parts.append(part)
        return parts, depth
    if isinstance(value, dict):
        members = {}
        for name, each in value.items():
            if is_block and name in _OF_BLOCKS:
                members[name] = each
            else:
                members[name], end = _cut_value(each, depth, level + 1, is_block=is_block)
                depth = end if is_block else depth
        return members, depth
    return value, depth
