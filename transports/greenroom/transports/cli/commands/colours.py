"""Colours for a terminal, for commands that print line after line."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

_CODES: Final[Mapping[str, str]] = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}


def draws(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal that understands more than text."""
    return stream is not None and stream.isatty() and os.environ.get("TERM", "dumb") not in {"dumb", ""}


def paints(stream: TextIO | None) -> bool:
    """Whether what goes to a stream is to be coloured; ``NO_COLOR`` says no (no-color.org)."""
    return draws(stream) and not os.environ.get("NO_COLOR")


def painted(text: str, *styles: str) -> str:
    """Returns a text in these styles; the text must hold no control characters."""
    return f"\x1b[{';'.join(_CODES[style] for style in styles)}m{text}\x1b[0m" if styles else text
