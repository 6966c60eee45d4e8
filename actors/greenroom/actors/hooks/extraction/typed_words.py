"""Choose the findings that the person typed, and that order the model nothing about itself.

They are given to later sessions before a review, so each doubt counts against them. A short sentence
that was pasted looks like a typed one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final
from zlib import crc32

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


MOST_HEARD: Final = 4_000
"""At most this many beginnings of clauses of tools and models are carried over: the newest ones."""
_BEGINNING: Final = 5
_MARGIN: Final = re.compile(
    r"^[ \t]*(?:[0-9]{1,6}(?:\u2192|[:|\t]))?[ \t]*(?:#+|//+|/?\*+/?|--|;+|>+|<!--|[-+\u2022])?[ \t]*",
    re.MULTILINE,
)
"""A line number and the mark of a comment, as tools print them."""
_BEGINS: Final = frozenset(
    {"always", "never", "i", "we", "from", "don't", "do", "remember", "prefer", "in", "going"}
    | {"verwende", "benutze", "nutze", "schreibe", "nimm", "ich", "wir"}
)
"""Words that may begin a statement in the middle of a clause."""
_ENDS: Final = (".", "!", "?", ":", ";", ",", '"', "'", "`", ")", "\u201d")


def typed_in(
    findings: Iterable[Finding],
    turns: Sequence[Turn],
    before: Sequence[Turn] = (),
    heard: Iterable[int] = (),
) -> list[Finding]:
    """Return the findings that the person typed.

    Args:
        findings: What the rules found in the turns.
        turns: The turns of an event.
        before: Turns that were carried over.
        heard: What `heard_in` returned for the events before.
    """
    known = frozenset(heard)
    waiting = {
        _plain(each.text): each
        for each in findings
        if each.rule in RULES_OF_WORDS
        and not orders_model(each.text)
        and _digest(_bare(each.text)) not in known
    }
    typed: list[Finding] = []
    others: list[str] = []
    for turn in (*before, *turns):
        if turn.role != "user":
            others.append(_plain(_MARGIN.sub("", turn.text)))
            continue
        if not waiting or turn.by_program or is_pasted(turn.text):
            continue
        words = _plain(" ".join(_own_words(turn.text)))
        own = [each for each in waiting if each in words and not any(each in other for other in others)]
        typed += [waiting.pop(each) for each in own]
    return sorted(typed, key=lambda each: each.turn)


def heard_in(turns: Iterable[Turn], before: Sequence[int] = ()) -> list[int]:
    """Return digests of the beginnings of clauses of tools and models.

    A person may repeat words of an earlier event, whose digests are ``before``.
    """
    heard = dict.fromkeys(before)
    for turn in turns:
        if turn.role != "user":
            for digest in _beginnings(_MARGIN.sub("", turn.text)):
                heard.pop(digest, None)
                heard[digest] = None
    return list(heard)[-MOST_HEARD:]


def _beginnings(text: str) -> Iterator[int]:
    lines = [line.split() for line in text.casefold().replace("\u2019", "'").splitlines()]
    words = [word for line in lines for word in line]
    starts = set(accumulate((len(line) for line in lines), initial=0))
    for place, word in enumerate(words):
        if (
            place in starts
            or word in _BEGINS
            or words[place - 1].endswith(_ENDS)
            or words[place - 1] == "that"
        ):
            yield _digest(_bare(" ".join(words[place : place + _BEGINNING])))


def _bare(text: str) -> list[str]:
    """Return the first words of a sentence, without punctuation."""
    found: list[str] = []
    for word in text.casefold().split()[:_BEGINNING]:
        found.append(word.strip(".,:;!?\"'`()*\u201c\u201d"))
        if word.endswith((".", "!", "?", ";")):
            break
    return found


def _digest(words: Iterable[str]) -> int:
    return crc32(" ".join(words).encode(errors="replace"))


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
    return " ".join(text.casefold().replace("\u2019", "'").split())
