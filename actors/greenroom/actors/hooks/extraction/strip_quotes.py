"""Reduce a turn to its author's own words: no quotations, code or pasted text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

LONGEST_SENTENCE: Final = 400
"""A sentence with more than this many characters is no statement."""
_MOST_LINES: Final = 60
_LINES_OF_LONG: Final = 10
"""People do not type more than `_MOST_LINES` lines: of a longer turn, only this many lines count as typed."""
_FENCE: Final = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_ELEMENT: Final = re.compile(r"<([A-Za-z][A-Za-z0-9_-]{1,40})(?:\s[^<>]{0,200})?>")
_QUOTE: Final = re.compile(r"\s{0,3}[>|]")
_INDENTED: Final = re.compile(r"(?: {4}|\t)")
_ITEM: Final = re.compile(r"\A\s*(?:[-*+\u2022]|[0-9]{1,3}[.)])\s+")
_ANNOUNCES: Final = re.compile(
    r"\b(?:here(?:'s| is| are)?|this is|these are|see|below|following|attached|pasted?|contents?|says?|said"
    r"|wrote|reads?|output|logs?|errors?|trace(?:back)?|stack|readme|files?|docs?|documents?|spec|e-?mails?|messages?"
    r"|mails?|tickets?|issues?|article|page|hier ist|hier sind|folgende[rns]?|ausgabe|datei)\b[^\n]{0,120}:$",
    re.IGNORECASE,
)
_BETWEEN_QUOTES: Final = re.compile(
    r"\"[^\"\n]{1,400}\"|[\u201c\u201e][^\u201c\u201d\n]{1,400}[\u201c\u201d]"
)
_QUOTED: Final = re.compile(r"\"[^\"]*\"|[\u201c\u201e][^\u201c\u201d]*[\u201c\u201d]")
_LONG_QUOTE: Final = 40
_LEFT_OUT: Final = "\u201c\u2026\u201d"
"""Replaces a long quotation."""
_GOES_ON: Final = re.compile(r"(?<=[^\s.!?:;])\n(?=[a-z(`])")
_CURLY: Final = re.compile(r"(?<=\w)\u2019(?=\w)")
"""An apostrophe of a phone's keyboard."""
_END: Final = re.compile(r"(?<=[.!?\u2026])[)\]]{0,2} +(?=[^a-z\s])|\n")
_ASKS: Final = re.compile(r"\?[\"')\]\s]*$")


class Sentence(NamedTuple):
    """A sentence in its author's own words, in one line; whether it is a question."""

    text: str
    asks: bool


def strip_quotes(text: str, *, pastes: bool = True) -> list[str]:
    """Return an author's own sentences; leave out the long quotations in them."""

    def shorten(quoted: re.Match[str]) -> str:
        return quoted[0] if len(quoted[0]) < _LONG_QUOTE else _LEFT_OUT

    return [_QUOTED.sub(shorten, each.text) for each in split_sentences(text, pastes=pastes)]


def split_sentences(text: str, *, pastes: bool = True) -> Iterator[Sentence]:
    """Yield the sentences of a turn that are its author's own words.

    If ``pastes``, the author may have pasted text. A line that announces a file, a log or a message ("here
    is the output:") then ends the author's words, because the end of the pasted text is unknown.
    """
    for paragraph in "\n".join(_own_lines(_CURLY.sub("'", text), pastes=pastes)).split("\n\n"):
        # A quotation within a sentence does not end it, nor does a wrapped line.
        kept = _BETWEEN_QUOTES.sub(lambda quoted: quoted[0].replace(" ", "\u00a0"), paragraph)
        kept = _GOES_ON.sub(" ", kept)
        for part in _END.split(kept):
            sentence = " ".join(_ITEM.sub("", part, count=1).replace("**", "").split())
            if 0 < len(sentence) <= LONGEST_SENTENCE:
                yield Sentence(sentence, _ASKS.search(sentence) is not None)


def _own_lines(text: str, *, pastes: bool) -> Iterator[str]:
    """Yield the author's own lines, and an empty line in place of each other line."""
    lines = text.splitlines()
    fence = element = ""
    for line in lines[: _LINES_OF_LONG if pastes and len(lines) > _MOST_LINES else None]:
        if element:
            element = "" if f"</{element}>" in line else element
        elif fence:
            fence = "" if line.strip().startswith(fence) else fence
        elif (opened := _FENCE.match(line)) is not None:
            fence = opened[1]
        elif (tag := _ELEMENT.match(line.strip())) is not None:
            element = "" if f"</{tag[1]}>" in line else tag[1]
        elif _QUOTE.match(line) is None and _INDENTED.match(line) is None:
            if pastes and _ANNOUNCES.search(line.rstrip()):
                return
            yield line
            continue
        yield ""
