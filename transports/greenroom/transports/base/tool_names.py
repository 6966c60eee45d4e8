"""Find, replace and leave out the names of tools in sentences to a client."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

Renamed = Callable[[str], str | None]
"""Returns the replacement for a tool's name; None if there is none."""


@cache
def _parts() -> re.Pattern[str]:
    """Compile the pattern for quotes, ends of clauses and tool names."""
    from greenroom.actors.app.requests import REQUESTS  # noqa: PLC0415 - many commands have no use for requests

    longer_first = sorted((name for name in REQUESTS if "_" in name), key=len, reverse=True)
    return re.compile(
        r"""(?<!\w)(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")(?!\w)"""  # quoted: a user's own name
        r"|(?P<end>; |\. )"
        rf"|(?<![\w`])(?P<tool>{'|'.join(longer_first)})(?!\w)"
    )


def tools_in(sentence: str) -> list[str]:
    """Return the tools that a sentence names, outside of quotes."""
    return [found["tool"] for found in _parts().finditer(sentence) if found["tool"]]


def with_tools(sentence: str, renamed: Renamed) -> str:
    """Replace a sentence's tool names; drop a clause if its tool has no replacement.

    Clauses end with a semicolon or a full stop. The first clause stays, without the name.
    """
    if not tools_in(sentence):
        return sentence
    clauses, text, is_kept, last = [], "", True, 0
    for found in _parts().finditer(sentence):
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
