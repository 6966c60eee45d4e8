"""Differences between two texts, word by word; of long texts line by line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from rapidfuzz.distance import Indel

MOST_PARTS: Final = 5_000
"""Words, or else lines, that are compared of each text; it bounds the time to some milliseconds."""
MOST_CHARACTERS: Final = 100_000
"""Characters of each text, likewise: to find the words of a megabyte takes longer than others should wait."""
_WORDS: Final = re.compile(r"\s+|\w+|[^\w\s]")


class Stretch(NamedTuple):
    """A stretch of text: in both, in the older one alone, or in the newer one alone."""

    kind: Literal["same", "gone", "new"]
    text: str


def differences(before: str, after: str) -> list[Stretch] | None:
    """Return the stretches of two texts in order; None of texts that are too long to compare."""
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
