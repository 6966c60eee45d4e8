"""What two texts differ in, by words or by lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from rapidfuzz.distance import Indel

MOST_PARTS: Final = 5_000
"""The most words, or lines, of a text to compare; this limits the time to a few milliseconds."""
MOST_CHARACTERS: Final = 100_000
"""The most characters of a text to compare: to split a megabyte into words would block others."""
_WORDS: Final = re.compile(r"\s+|\w+|[^\w\s]")


class Stretch(NamedTuple):
    """A stretch of text that both texts have, or that only one of them has."""

    kind: Literal["same", "gone", "new"]
    text: str


def differences(before: str, after: str) -> list[Stretch] | None:
    """Compare two texts by words, or by lines if long; return None if too long."""
    if max(len(before), len(after)) > MOST_CHARACTERS:
        return None
    parts = _WORDS.findall(before), _WORDS.findall(after)
    if max(map(len, parts)) > MOST_PARTS:
        parts = before.splitlines(keepends=True), after.splitlines(keepends=True)
        if max(map(len, parts)) > MOST_PARTS:
            return None
    return list(_stretches(*parts))


def _stretches(before: Sequence[str], after: Sequence[str]) -> list[Stretch]:
    found: list[Stretch] = []
    gone = new = ""
    for step in Indel.opcodes(before, after):
        if step.tag == "equal":
            found += _changed(gone, new)
            gone = new = ""
            found.append(Stretch("same", "".join(before[step.src_start : step.src_end])))
        else:
            gone += "".join(before[step.src_start : step.src_end])
            new += "".join(after[step.dest_start : step.dest_end])
    return found + _changed(gone, new)


def _changed(gone: str, new: str) -> list[Stretch]:
    return [stretch for stretch in (Stretch("gone", gone), Stretch("new", new)) if stretch.text]
