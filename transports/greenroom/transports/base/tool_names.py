"""Tools that sentences name: found, and left out where their reader may not or cannot call them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from greenroom.actors.core.auth.scopes import TOOLS

_LONGER_FIRST = sorted((name for name in TOOLS if "_" in name), key=len, reverse=True)
_PARTS: Final = re.compile(
    r"""(?<!\w)(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")(?!\w)"""  # what somebody named so
    r"|(?P<end>; |\. )"
    rf"|(?<![\w`])(?P<tool>{'|'.join(_LONGER_FIRST)})(?!\w)"
)

Renamed = Callable[[str], str | None]
"""Returns what is said in the place of a tool's name; None where nothing may be."""


def tools_in(sentence: str) -> list[str]:
    """Return the tools that a sentence names, outside of quotes."""
    return [found["tool"] for found in _PARTS.finditer(sentence) if found["tool"]]


def with_tools(sentence: str, renamed: Renamed) -> str:
    """Return a sentence with other names of tools, without the clauses that name one which has none.

    Clauses end with a semicolon or a full stop. The first one says what happened and stays, without the name.
    """
    if not tools_in(sentence):
        return sentence
    clauses, text, is_kept, last = [], "", True, 0
    for found in _PARTS.finditer(sentence):
        text += sentence[last : found.start()]
        last = found.end()
        if found["end"]:
            clauses.append((text, found["end"], is_kept))
            text, is_kept = "", True
            continue
        name = renamed(found["tool"]) if found["tool"] else found[0]
        is_kept = is_kept and name is not None
        text += "a tool that is closed to you" if name is None else name
    clauses.append((text + sentence[last:], "", is_kept))
    (said, end, _), *others = clauses
    for clause, following, stays in others:
        if stays:
            said += end + clause
            end = following
    return said + end.strip().rstrip(";")
