"""Shorten texts: to a label of one line, or to the beginning and the end."""

from __future__ import annotations

import re
from typing import Final

LABEL: Final = 60
"""The number of characters in a label."""
_HIDDEN: Final = (
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]+"
)
"""Compiled at first use: hooks import this."""
_ELLIPSIS: Final = "\u2026"


def make_label(text: str) -> str:
    """Shorten a text to one line without hidden characters or direction marks."""
    line = " ".join(re.sub(_HIDDEN, " ", text).split())
    return line if len(line) <= LABEL else f"{line[: LABEL - 1].rstrip()}{_ELLIPSIS}"


def truncate_middle(text: str, most: int, gap: str = "\u2026") -> str:
    """Cut out the middle of a text if the text is too long."""
    half = (most - len(gap)) // 2
    if len(text) <= most:
        return text
    return f"{text[:half]}{gap}{text[-half:]}" if half > 0 else text[:most]
