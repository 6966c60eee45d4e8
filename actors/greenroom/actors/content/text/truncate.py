"""Labels: the beginning of a text that somebody wrote, as one line that hides nothing."""

from __future__ import annotations

import re
from typing import Final

LABEL: Final = 60
"""Characters of a label."""
_HIDDEN: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]+"
)
_ELLIPSIS: Final = "\u2026"


def label(text: str) -> str:
    """Return a text as one line that is short, in which nothing is hidden and no letters turn round."""
    line = " ".join(_HIDDEN.sub(" ", text).split())
    return line if len(line) <= LABEL else f"{line[: LABEL - 1].rstrip()}{_ELLIPSIS}"
