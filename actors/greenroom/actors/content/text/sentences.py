"""Split texts into sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from greenroom.actors.content.text.analyze import stretches

STRETCH: Final = 2_000
"""Characters searched for ends of sentences at once, about."""
END: Final = re.compile(
    # Lookbehinds after the mark, so that few places are tried.
    r"[.!?\u2026](?<!\b[A-Z].)(?<!\bMr.)(?<!\bMrs.)(?<!\bDr.)(?<!\bSt.)(?<!\bvs.)(?<!\be\.g.)(?<!\bi\.e.)"
    r"[\"'\u201d\u2019)\]*_`]{0,4}(?:\[\d{1,4}\]){0,4}\s+(?=[^a-z\s])"
    r"|[\u3002\uff01\uff1f]"
)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text without the space around them."""
    for stretch in stretches(text, STRETCH):
        first = 0
        for found in END.finditer(stretch):
            if sentence := stretch[first : found.end()].strip():
                yield sentence
            first = found.end()
        if rest := stretch[first:].strip():
            yield rest
