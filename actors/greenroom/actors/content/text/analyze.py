"""Analysis of texts into sentences and tokens: words, and which spellings count as equal.

Rules, in the order in which they apply:

1. Invisible characters (joiners, direction marks, variation selectors) are dropped.
2. A token is a word, an emoji, or a run of symbols; single punctuation marks are dropped.
3. A word is folded: case, accents and compatibility forms (full width, ligatures) are ignored.
4. snake_case and camelCase are one word and also their parts; 2024-05-08 is a year, a month and a day.
5. Scripts written without spaces become pairs of adjacent characters.
6. A word is stemmed by the stemmers of all set languages that use its script, one after the other. So
   languages may be mixed. Words of other languages are stemmed the same way in texts and in queries.

Each token has a *piece* for the phrase key of a text, and *terms* for postings. Texts are folded in short
stretches, because normalizing a long run of combining marks takes quadratic time (1.3 s for 40,000).
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from greenroom.actors.content.text.words import DATE, EMOJI_RANGES, MAX_TERM, CodeRules, TextRules
from greenroom.actors.content.text.words import STOP_WORDS as STOP_WORDS
from greenroom.actors.content.text.words import Token as Token
from greenroom.actors.content.text.words import is_unspaced as is_unspaced
from greenroom.runtime import current_settings

# Vowel signs and similar marks are part of words, but `\w` excludes them.
_SIGNS = "".join(
    chr(code) for code in range(0x0300, 0x1D00) if unicodedata.category(chr(code)).startswith("M")
)
_CONTROLS = r"\x00-\x1f\x7f"
_TOKEN = re.compile(
    DATE + rf"|[\w{_SIGNS}]+|[{EMOJI_RANGES}]" + rf"|[^\w\s{_CONTROLS}{_SIGNS}{EMOJI_RANGES}]{{2,}}|[#+$%]"
)
# Explicit classes for ASCII are twice as fast, and even faster without dates.
_ASCII_FORMS = r"[A-Za-z0-9_]+|[!-/:-@\[-^`{-~]{2,}|[#+$%]"
_ASCII_TOKEN = re.compile(f"{DATE}|{_ASCII_FORMS}")
_DATELESS_TOKEN = re.compile(_ASCII_FORMS)
_INVISIBLE = re.compile(
    "[\xad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff\U0001f3fb-\U0001f3ff]"
)
_SPACE = re.compile(r"\s")
_REMARK = re.compile(r"(?:\[[^\[\]]*\]|\([^()]*\))\s*\Z")
_QUESTION_MARKS = frozenset("?\uff1f\u061f")
_END = 256  # characters searched for the end of a text


@dataclass(frozen=True, slots=True)
class TextSettings:
    """The rules of a store for texts and source code; see the runtime's `current_settings`."""

    rules: TextRules
    code: CodeRules


@lru_cache(maxsize=8)
def text_settings(languages: tuple[str, ...], most_words: int | None = None) -> TextSettings:
    """Return the rules for languages, cached; a `ValueError` if a language has no stemmer."""
    rules = TextRules(languages) if most_words is None else TextRules(languages, most_words)
    return TextSettings(rules, CodeRules(languages))


_DEFAULT = text_settings(("english",))


def _current() -> TextSettings:
    settings: TextSettings | None = current_settings()
    return _DEFAULT if settings is None else settings


def current_rules() -> TextRules:
    """Return the rules of the current store for texts."""
    return _current().rules


def code_rules() -> CodeRules:
    """Return the rules of the current store for source code."""
    return _current().code


def spans(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the start, end and spelling of each token, in order."""
    return ((found.start(), found.end(), found[0]) for found in _TOKEN.finditer(text))


def without_invisible(text: str) -> str:
    """Remove invisible characters; they neither belong to a word nor end it."""
    return text if text.isascii() else _INVISIBLE.sub("", text)


def tokens(text: str, rules: TextRules | None = None) -> list[Token]:
    """Return the tokens of ``text`` in order, by the current rules or by ``rules``."""
    if not text.isascii():
        words = _TOKEN.findall(without_invisible(text))
    else:
        words = (_ASCII_TOKEN if "-" in text else _DATELESS_TOKEN).findall(text)
    if rules is None:
        rules = current_rules()
    # Long words, which are not cached, are rare.
    if max(map(len, words), default=0) <= MAX_TERM:
        return [*map(rules.cached_token, words)]
    return [*map(rules.token, words)]


def stretches(text: str, size: int) -> Iterator[str]:
    """Cut a long text after white space, into stretches of ``size`` to twice ``size`` characters."""
    start = 0
    while len(text) - start > size:
        space = _SPACE.search(text, start + size, start + 2 * size)
        end = space.end() if space else start + 2 * size
        yield text[start:end]
        start = end
    yield text[start:]


def is_question(text: str) -> bool:
    """Return whether a text ends like a question; a remark in brackets may follow."""
    end = text[-_END:]
    if _QUESTION_MARKS.isdisjoint(end):
        return False
    return _REMARK.sub("", end).rstrip()[-1:] in _QUESTION_MARKS


def metadata_text(metadata: bytes | str) -> str:
    """Return the values of a JSON object, at any depth, as lines without field names.

    Numbers keep their spelling. ``null`` is left out.

    Raises:
        ValueError: ``metadata`` is not JSON.
        RecursionError: ``metadata`` is nested thousands of levels deep.
    """
    if len(metadata) <= len("{}"):
        return ""
    lines: list[str] = []
    waiting: list[Any] = [json.loads(metadata, parse_int=str, parse_float=str)]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(reversed(value.values()))
        elif isinstance(value, list):
            waiting.extend(reversed(value))
        elif isinstance(value, bool):
            lines.append("true" if value else "false")
        elif value is not None:
            lines.append(value)
    return "\n".join(lines)


SENTENCE_STRETCH: Final = 2_000
"""About this many characters are searched for ends of sentences at once."""
SENTENCE_END: Final = re.compile(
    # The lookbehinds come after the mark, so that few places are tried.
    r"[.!?\u2026](?<!\b[A-Z].)(?<!\bMr.)(?<!\bMrs.)(?<!\bDr.)(?<!\bSt.)(?<!\bvs.)(?<!\be\.g.)(?<!\bi\.e.)"
    r"[\"'\u201d\u2019)\]*_`]{0,4}(?:\[\d{1,4}\]){0,4}\s+(?=[^a-z\s])"
    r"|[\u3002\uff01\uff1f]"
)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text without the space around them."""
    for stretch in stretches(text, SENTENCE_STRETCH):
        first = 0
        for found in SENTENCE_END.finditer(stretch):
            if sentence := stretch[first : found.end()].strip():
                yield sentence
            first = found.end()
        if rest := stretch[first:].strip():
            yield rest
