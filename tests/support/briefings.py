"""Briefings, read as an agent reads them."""

from __future__ import annotations

import re

_WHOLE = re.compile(r"<(greenroom-notes-[0-9a-f]{12})>\n(.+)\n</\1>", re.DOTALL)
_TAG = re.compile(r"<\s*[/!|?A-Za-z]")


def lines_of(briefing: str) -> list[str]:
    """Return the lines of data in a briefing, which is one block that nothing in it closes."""
    found = _WHOLE.fullmatch(briefing)
    assert found is not None, briefing
    inside = found[2]
    assert _TAG.search(inside) is None, inside
    return [line.removeprefix("- ") for line in inside.splitlines() if line.startswith("- ")]
