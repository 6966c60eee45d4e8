"""Briefings, read as an agent reads them."""

from __future__ import annotations

import re

_WHOLE = re.compile(r"<(greenroom-notes-[0-9a-f]{12})>\n(.+)\n</\1>", re.DOTALL)
_TAG = re.compile(r"<\s*[/!|?A-Za-z]")


def lines_of(briefing: str) -> list[str]:
    """Return the lines of data in a briefing, with whole names; nothing in it closes its one block."""
    found = _WHOLE.fullmatch(briefing)
    assert found is not None, briefing
    inside = found[2]
    assert _TAG.search(inside) is None, inside
    names: dict[str, str] = {}
    lines: list[str] = []
    for line in inside.splitlines()[1:]:
        short, colon, said = line.partition(": ")
        if short == "Who":
            names = dict(each.split("=") for each in said.split(", "))
        elif not line.startswith("## "):
            lines.append(f"{names[short]}{colon}{said}" if short in names else line)
    return lines
