"""Literals in code after a secret's name, with something between them.

That is a type, an index, a default, a comma of a call, or the end of an element.
"""

from __future__ import annotations

import re
from typing import Final

from greenroom.actors.content.secrets.values import compile_pattern

_DECLARED: Final = (
    r"(?:\\{0,3}[\"'`])?(?:\][ \t]{0,4})?(?:[ \t]{0,4}\[\w{0,40}\])?"
    r"(?:[ \t]{0,4}:[ \t]{0,4}[\w.|\[\]<> ]{1,60}?)?"
    r"(?P<sign>[ \t]{0,80}(?::=|=>|={1,2}|:)[ \t]{0,80})"
    r"(?:[bru]{1,2}(?=[\"']))?\\{0,3}(?P<quote>[\"'`])"
)
"""``char password[32] = "``, ``["password"] = "``, ``api_key: str = "``, ``password         = b"``."""
_OTHERWISE: Final = (
    r"\\{0,3}[\"']?[\])]{0,2}(?P<sign>\s{0,9}(?:\|\||\?\?|\?:|\bor\b)\s{0,9})\\{0,3}(?P<quote>[\"'`])"
)
"""``process.env.DB_PASSWORD || "``, ``getenv("DB_PASSWORD") or "``."""
_ARGUMENT: Final = (
    r"\\{0,3}[\"'](?P<sign>,\s{0,9})(?:(?:default|fallback)[ \t]{0,4}=[ \t]{0,4})?\\{0,3}(?P<quote>[\"'`])"
)
"""``getenv("DB_PASSWORD", "``, after a name as the first argument of a call."""
_ASKS: Final = (
    r"\b(?:getenv|get|env|config|setting|property|getproperty|setproperty|getstring)"
    r"\(\s{0,9}\\{0,3}[\"'][\w.-]{0,60}$"
)
_SHELL: Final = r"(?P<sign>:?[=-])(?P<quote>)"
_EXPANDS: Final = r"\$\{\w{0,60}$"
"""``${DB_PASSWORD:-``."""
_BLOCK: Final = r"(?P<sign>:)[ \t]{1,8}[|>][+-]?[ \t]{0,8}\r?\n[ \t]{1,40}(?P<quote>)"
"""``password: |``, and the value in the next line."""
_SETTER: Final = r"(?P<sign>\()\s{0,9}\\{0,3}(?P<quote>[\"'])"
_SETS: Final = r"(?:\.|set_?|with_?)$"
"""``.setPassword("``, ``.password("``."""
_ELEMENT: Final = r"(?P<sign>[\"']>)(?P<quote>)"
_OPENED: Final = r"<(?:entry|string|property|item|add|param|setting)\s{1,4}(?:key|name)=[\"'][\w.-]{0,60}$"
"""``<entry key="db.password">``."""
_CALLED: Final = 100
"""Characters before a name that are searched for its call or element."""


def between_literal(folded: str, first: int, last: int) -> re.Match[str] | None:
    """Match the text between a name and a literal, in one of these forms."""
    for pattern in (_DECLARED, _OTHERWISE, _BLOCK):
        if found := compile_pattern(pattern).match(folded, last):
            return found
    for pattern, opening in ((_ARGUMENT, _ASKS), (_ELEMENT, _OPENED), (_SETTER, _SETS), (_SHELL, _EXPANDS)):
        found = compile_pattern(pattern).match(folded, last)
        if found and compile_pattern(opening).search(folded, max(0, first - _CALLED), first):
            return found
    return None
