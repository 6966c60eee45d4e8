"""What somebody said in their own words: a turn without quotations, code, pasted files and what a program put in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

LONGEST_SENTENCE: Final = 400
"""Characters of a sentence; a longer one is no statement that reads alone."""
_MOST: Final = 20_000
_FENCE: Final = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_PUT_IN: Final = re.compile(r"<([a-z][a-z0-9_-]{1,40})(?:\s[^<>]{0,200})?>")
_QUOTE: Final = re.compile(r"\s{0,3}(?:>|\|)")
_INDENTED: Final = re.compile(r"(?: {4}|\t)")
_PASTED: Final = re.compile(
    r"(?:\b(?:here(?:'s| is| are)|this is|see|below|following|attached|pasted?|contents? of|says?|reads?|output"
    r"|log|error|trace(?:back)?|stack|readme|file|docs?|document|spec|e-?mail|message|ticket|issue|hier ist"
    r"|folgende[rsn]?)\b[^\n]{0,120}):\s*$",
    re.IGNORECASE,
)
_ITEM: Final = re.compile(r"\s*(?:[-*+\u2022]|[0-9]{1,3}[.)])\s+")
_END: Final = re.compile(r"(?<=[.!?\u2026])[\"')\]]{0,2}\s+(?=[^a-z\s])|\n")
_STOP: Final = re.compile(r"[.!?\u2026]*[\"')\]]*$")


class Sentence(NamedTuple):
    """A sentence that somebody said; whether it asks."""

    text: str
    asks: bool


def own_sentences(text: str) -> Iterator[Sentence]:
    """Yield the sentences of a turn that are its speaker's own words.

    What follows a line that announces a file, a log or a message ("here is the output:") is not theirs, to the
    end of the turn: nobody says where a pasted text ends.
    """
    for paragraph in _own_paragraphs(text[:_MOST]):
        for part in _END.split(paragraph):
            said = " ".join(_ITEM.sub("", part, count=1).replace("**", "").split())
            if 0 < len(said) <= LONGEST_SENTENCE:
                yield Sentence(said, said.rstrip("\"')] ").endswith("?"))


def _own_paragraphs(text: str) -> Iterator[str]:
    lines: list[str] = []
    fence = put_in = ""
    for line in text.splitlines():
        if put_in:
            put_in = "" if f"</{put_in}>" in line else put_in
        elif fence:
            fence = "" if line.strip().startswith(fence) else fence
        elif (opened := _FENCE.match(line)) is not None:
            fence = opened[1]
        elif (tag := _PUT_IN.match(line.strip())) is not None:
            put_in = "" if f"</{tag[1]}>" in line else tag[1]
        elif _QUOTE.match(line) is None and _INDENTED.match(line) is None:
            if _PASTED.search(line):
                break
            lines.append(line)
            continue
        lines.append("")
    yield from "\n".join(lines).split("\n\n")
