"""Texts with gaps: `{n}`, the call's number; `{n%100}`, its remainder; `{client}` and other names."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

_GAP = re.compile(r"\{([a-z_]+)(?:%([1-9][0-9]*))?\}")
_NUMBER = "n"


class Template:
    """A text in which everything is fixed but the call's number.

    Args:
        text: The text; a brace that no name and its closing brace follow is a brace.
        names: What stands for the names.

    Raises:
        ValueError: a name is unknown.
    """

    def __init__(self, text: str, names: Mapping[str, str]) -> None:
        self._moduli: list[int] = []
        parts = []
        last = 0
        for gap in _GAP.finditer(text):
            name, modulus = gap.groups()
            parts.append(text[last : gap.start()].replace("%", "%%"))
            last = gap.end()
            if name == _NUMBER:
                parts.append("%d")
                self._moduli.append(int(modulus or 0))
            elif name in names and modulus is None:
                parts.append(_inside(names[name]).replace("%", "%%"))
            else:
                known = ", ".join(f"{{{each}}}" for each in (_NUMBER, "n%2", *names))
                raise ValueError(f"{gap[0]} is none of {known}")
        parts.append(text[last:].replace("%", "%%"))
        self._format = "".join(parts).encode()

    def fill(self, number: int) -> bytes:
        """Return the text for a call."""
        return self._format % tuple(number % each if each else number for each in self._moduli)


def _inside(value: str) -> str:
    """Return a text as it stands inside a JSON string."""
    return msgspec.json.encode(value).decode()[1:-1]
