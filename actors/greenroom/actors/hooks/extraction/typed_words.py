"""Choose the findings that the person typed, and that order the model nothing about itself.

They are given to later sessions before a review, so each doubt counts against them. A short sentence
that was pasted looks like a typed one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from greenroom.actors.hooks.extraction.findings import Finding, Rule
from greenroom.actors.hooks.extraction.orders import orders_model
from greenroom.actors.hooks.extraction.strip_quotes import split_sentences
from greenroom.actors.sessions.requests.hook_events import Turn

MOST_LINES: Final = 10
MOST_CHARACTERS: Final = 1_000
"""A turn with more lines or characters counts as pasted."""
RULES_OF_WORDS: Final[tuple[Rule, ...]] = ("decision", "preference", "remember")
"""The rules whose findings a person can have typed."""
_MARKUP: Final = re.compile(
    r"^\s{0,3}(?:#{1,6}\s|>|\||```|~~~|(?:={3,}|-{3,}|\*{3,})\s*$)"  # heading, quotation, table, fence, rule
    r"|^\s*(?:[-*+\u2022]|[0-9]{1,3}[.)])\s"  # a list
    r"|^(?: {4}|\t)\s*\S"  # code
    r"|\*\*|(?<![\w])</?(?![A-Z][a-z]+\w*>)[A-Za-z!][^<>\n]{0,200}>|</|<!--|&(?:#[0-9]+|[A-Za-z]{2,8});"
    r"|!?\[[^\]\n]{0,200}\](?:\(|:\s)|\[Pasted text|\w://|\bwww\.\w"
    r"|\b[\w-]+\.(?:com|net|org|io|dev|app|ai|example|xyz|info|biz|ru|cn|cloud|site|online|top)\b"
    r"|\S@\S+\.\w",
    re.MULTILINE,
)
"""A heading, a link, or other mark-up; types such as ``Vec<T>`` and ``<Button>`` are none."""
_ITEM: Final = re.compile(r"\A\s{0,3}[-*] (?=\S)")
_QUOTATION: Final = re.compile(
    r"(?P<name>\"[\w-]+(?: [\w-]+)?\"|(?<!\w)'[\w-]+(?: [\w-]+)?'(?!\w))"
    r"|\"[^\"]*\s[^\"]*(?:\"|\Z)|[\u201c\u201e\u00ab][^\u201c\u201d\u00bb]*\s[^\u201c\u201d\u00bb]*(?:[\u201c\u201d\u00bb]|\Z)"
    r"|(?<!\w)['\u2018][^'\u2018\u2019\n]*\s[^'\u2018\u2019\n]*['\u2019](?!\w)"
)
"""A quotation; group `name` is one or two words, too few for a statement."""


def typed_in(
    findings: Iterable[Finding], turns: Sequence[Turn], before: Sequence[Turn] = ()
) -> list[Finding]:
    """Return the findings that the person typed; ``before`` are turns that were carried over."""
    waiting = {
        _plain(each.text): each
        for each in findings
        if each.rule in RULES_OF_WORDS and not orders_model(each.text)
    }
    typed: list[Finding] = []
    others: list[str] = []
    for turn in (*before, *turns):
        if turn.role != "user":
            others.append(_plain(turn.text))
            continue
        if not waiting or turn.by_program or is_pasted(turn.text):
            continue
        words = _plain(" ".join(_own_words(turn.text)))
        own = [each for each in waiting if each in words and not any(each in other for other in others)]
        typed += [waiting.pop(each) for each in own]
    return sorted(typed, key=lambda each: each.turn)


def is_pasted(text: str) -> bool:
    """Return whether a turn is long, or has what people do not type."""
    if "\n" not in text.strip():
        text = _ITEM.sub("", text)
    return (
        len(text) > MOST_CHARACTERS
        or len(text.strip().splitlines()) > MOST_LINES
        or _MARKUP.search(text) is not None
        or _has_hidden(text)
    )


def _own_words(text: str) -> Iterator[str]:
    for sentence in split_sentences(_QUOTATION.sub(lambda found: found["name"] or "\u2026", text)):
        yield sentence.text


def _has_hidden(text: str) -> bool:
    """Return whether a text has characters of pages and programs, not of a keyboard."""
    return any(
        each == "\u00a0" or unicodedata.category(each) in {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}
        for each in text
        if each not in "\n\r\t"
    )


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
