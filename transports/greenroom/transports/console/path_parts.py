"""Names as parts of paths: browsers take `.` and `..` for steps between folders, even percent-encoded."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

_MARK: Final = "~"
_STEPS: Final = frozenset({".", ".."})


def path_part(name: object) -> str:
    """Return a name as one part of a path; `name_of` reads it again once its percent-encoding is undone."""
    text = str(name)
    return quote(_MARK + text if text.lstrip(_MARK) in _STEPS else text, safe="")


def name_of(part: str) -> str:
    """Return the name that a part of a path stands for."""
    is_marked = part.startswith(_MARK) and part.lstrip(_MARK) in _STEPS
    return part[len(_MARK) :] if is_marked else part
