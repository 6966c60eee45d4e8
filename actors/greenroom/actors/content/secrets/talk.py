"""Secrets in conversations: a word for a secret, and soon after it a value.

The form of a value and the words directly before it decide. After "is" and similar words, almost anything
with a digit counts; elsewhere, a value counts only if it looks like no word or name. In code, a name that is
called, indexed or assigned is not a word for a secret; its values belong to `names`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final, Literal, NamedTuple

from greenroom.actors.content.secrets.numbers import personal_numbers
from greenroom.actors.content.secrets.plain import describes_password, is_talk, plain_secrets
from greenroom.actors.content.secrets.values import (
    Span,
    compile_pattern,
    has_digit,
    is_placeholder,
    is_random,
    is_wordy,
    stands_for_another,
)
from greenroom.actors.content.secrets.words import (
    AS,
    CODES,
    FUNCTION_WORDS,
    INTRODUCING,
    KEYS,
    LOGINS,
    NETWORKS,
    PASSWORDS,
    PLAIN_PASSWORDS,
    TECHNICAL,
)

_Kind = Literal["password", "code", "key", "login", "plain"]
_KINDS: Final[tuple[tuple[_Kind, Iterable[str]], ...]] = (
    ("code", CODES),
    ("password", PASSWORDS),
    ("key", KEYS),
    ("login", LOGINS),
    ("plain", PLAIN_PASSWORDS),
)
_WINDOW: Final = 110
"""Only this many characters after a word are searched for its value."""
_BEFORE: Final = 70
_SHORTEST: Final[dict[_Kind, int]] = {"password": 4, "code": 3, "key": 8, "login": 8}
"""At least this many characters follow a word if they contain a secret."""
_LEAST: Final = 4
_LEAST_DIGITS: Final = 3
_LEAST_LONE: Final = 7
_LEAST_KEY: Final = 12
_LEAST_RANDOM: Final = 20
_LEAST_MARKED: Final = 6
_FEWEST_WORDS: Final = 3
_SUFFIX: Final = r"[^\W\d_]{0,8}(?:'s)?"
_CODE: Final = (
    r"[ \t]?[!=]=|[\w(\[{=$@/\\|]|[.:-][\w(:=]|[\"'`] ?[\]),=:]|-?>"
    r"|[ \t]{0,4}(?:[=:]{1,2}[ \t]{0,4}[\w.]{0,40}[(\[{]|\()"
)
_SENTENCE: Final = r"[.!?\u3002\uff01\uff1f](?=\s|$)|\n"
_TEXT: Final = (
    r"[^\s\"'`\u00ab\u00bb\u201e\u201c\u201d\u2018\u2019<>()\[\]{}\u300c\u300d\u300e\u300f\uff0c\u300"
    r"2\u3001\uff1b\uff1a\uff08\uff09]{3,80}"
)
_ASCII: Final = r"[!-~]{3,80}"
_QUOTED: Final = (
    r"[\"'`\u00ab\u201e\u201c\u2018\u300c\u300e]"
    r"([^\"'`\u00bb\u201c\u201d\u2018\u2019\u300d\u300f\n]{4,60})"
    r"[\"'`\u00bb\u201c\u201d\u2018\u2019\u300d\u300f]"
)
_INTRODUCED: Final = (
    rf"(?:{INTRODUCING})(?:\s[^\W\d_]{{2,12}})?[\s\"'`\u00ab\u201e\u201c\u2018\u300c\u300e*_(]{{0,4}}$"
)
_INTRODUCED_RIGHT: Final = rf"(?:{INTRODUCING})[\s\"'`\u00ab\u201e\u201c\u2018\u300c\u300e*_(]{{0,4}}$"
_PHRASE: Final = (
    r"(?::|\b(?:is|are|ist|lautet|est"
    r"|es))\s+[\"'\u201c`]?((?:[a-z]{3,12}[ -]){3,7}[a-z]{3,12})(?=[\"'\u201d`.\n]|$)"
)
_DIGITS: Final = (
    r"[0-9]{3,24}(?:[ -][0-9]{2,6}){0,3}(?![A-Za-z0-9_%]|[.:/]\w|\s?(?:char|zeich|caract|car\u00e1c"
    r"|second|sekund|minut|day|tage|time|user|byte|bit|line|row|file|ms\b|sec|px|item|word|token|euro"
    r"|dollar))"
)
_UNITS: Final = (
    r"hash|digest|checksum|length|l\u00e4nge|min|max|limit|size|field|column|policy|expire|timeout|line"
    r"|version|issue|commit"
)
_HOST: Final = r"[A-Z]?[a-z]+[0-9]{1,3}|[a-z]+(?:[-_.][a-z0-9]+)*[-_]?[0-9]{1,3}|[0-9a-f]{7,64}"
_MIXED: Final = r"[^\W\d_].*[0-9].*|[0-9].*[^\W\d_].*"
_INNER: Final = r"\w[!#$%&*+?@^~]+\w|[^\W\d_][0-9]+[^\W\d_]|[0-9]{2}"
_MARKED: Final = r"[\w.-]*[!#$%&*+?@^~][\w!#$%&*+?@^~.-]*"
_PAIR: Final = (
    r"^(?: (?:is|are|ist|sind|sont|son|sono))?[ \t:\uff1a]{1,4}[\w.@-]{2,60}[ \t]{0,3}[/"
    r"|,:][ \t]{0,3}(\S{6,64})"
)
_LABELLED: Final = (
    r"(?m)^[ \t>*-]{0,8}[^\W\d_][\w -]{1,30}:[ \t]{1,3}[\w.@-]{2,60}[ \t]{1,3}[/|][ \t]{1,3}"
    r"([^\s/|]{6,64})"
)
_WITH: Final = (
    r"(?:\b(?:with|mit|avec|con|com|met|z|\u0441|using)|:"
    r"|\uff1a)[ \t]{1,3}(?:\S{1,30}[ \t](?:and|und|et|y|e|en|i|\u0438)[ \t])?(\S{6,64})"
)
_NOT: Final = r"\b(?:it'?s|is)[ \t]{1,3}(\S{6,40}?),?[ \t]{1,3}not[ \t]"
_ALONE: Final = (
    r"(?<!\S)(?![\w.-]{0,40}(?:\$[0-9]{1,3}(?!\w)|@@|@v?[0-9]{1,2}(?![A-Za-z0-9])))"
    r"(?:[A-Za-z]{4,20}[0-9]{2,6}[#$]{1,3}"
    r"|(?=[\w-]{0,30}[!@#$&])(?=\S{0,40}[a-z])(?=\S{0,40}[A-Z])"
    r"(?=\S{0,40}[0-9])[A-Za-z0-9][A-Za-z0-9!@#$&_.-]{7,39})"
    r"(?=[\s,;:)]|\.\s|$)"
)
"""Values that look like a password in every context."""


_Found = tuple[int, int, _Kind]
"""The span of a word, and its kind."""


class _Word(NamedTuple):
    """A word for a secret: its span, its kind, whether it may mean a place."""

    first: int
    last: int
    kind: _Kind
    is_ascii: bool
    is_place: bool = False


def spoken_secrets(text: str) -> Iterator[Span]:
    """Find secrets after a word for one."""
    lowered = text.replace("\u0130", "i").lower()  # as long as the text
    words = _words(lowered)
    if is_talk(text):
        named = [(first, last) for first, last, kind in words if kind in {"password", "plain"}]
        yield from plain_secrets(text, lowered, named)
    yield from personal_numbers(text, lowered)
    for word, end in _with_ends(words, lowered):
        if text[word.last : word.last + 3].strip() and _may_open(lowered, word):
            yield from _behind(text, lowered, word, min(end, word.last + _WINDOW))
    yield from _before_words(text, words)


def lone_secrets(text: str) -> Iterator[Span]:
    """Find values that look like a password, without a word for one near them."""
    for pattern, part in ((_LABELLED, " / "), (_NOT, " not ")):
        if part in text:
            for found in compile_pattern(pattern).finditer(text):
                if _is_lone(found[1].rstrip(".,;:)")):
                    yield _span(found.start(1), found[1], "password")
    for found in compile_pattern(_ALONE).finditer(text):
        if compile_pattern(TECHNICAL).fullmatch(found[0].rstrip(".!")) is None and _is_lone(found[0]):
            yield Span(*found.span(), "password", 2)


def _before_words(text: str, words: list[_Found]) -> Iterator[Span]:
    previous = 0
    for first, last, kind in words:
        if kind in {"password", "code"} and first - previous > _LEAST:
            yield from _ahead(text, first, kind, max(previous, first - _BEFORE))
        previous = last


def _with_ends(words: list[_Found], lowered: str) -> list[tuple[_Word, int]]:
    """Return words with enough text before the next such word, and that text's end."""
    found = []
    end = end_of_strong = len(lowered)
    for first, last, kind in reversed(words):
        if kind == "plain":
            continue
        is_strong = kind in {"password", "code"}
        room = end_of_strong if is_strong else end
        if room - last > _SHORTEST[kind]:
            word = lowered[first:last]
            found.append((_Word(first, last, kind, word.isascii(), word == "pin code"), room))
        end = first
        end_of_strong = end if is_strong else end_of_strong
    return found[::-1]


def _words(lowered: str) -> list[_Found]:
    """Return the words for secrets in order; among overlapping words, the first and longest."""
    found = [
        (each.start(), -each.end(), kind)
        for stem, kind in _stems()
        if stem in lowered
        for each in compile_pattern(_of_stem(stem, kind)).finditer(lowered)
    ]
    found.sort()
    kept: list[_Found] = []
    done = 0
    for first, last, kind in found:
        if first >= done:
            done = -last
            kept.append((first, done, kind))
    return kept


@cache
def _stems() -> tuple[tuple[str, _Kind], ...]:
    return tuple((stem.replace("_", " "), kind) for kind, stems in _KINDS for stem in stems)


def _of_stem(stem: str, kind: _Kind) -> str:
    """Return the pattern of a word; it begins with literal letters, for speed."""
    literal = re.escape(stem)
    if ord(stem[0]) >= _EASTERN:
        return literal
    compound = rf"|(?<=[^\W\d_]{literal})" if stem in _IN_COMPOUNDS else ""
    start = rf"(?:(?<![\w.$@/\\\"'`-]{literal})|(?<=[^\W\d_]-{literal}){compound})"
    is_inflected = kind == "password" and stem not in _EXACT
    end = f"(?>{_SUFFIX})" if is_inflected else "(?>(?:'s|en|[sn])?)(?![^\\W_])"
    return f"{literal}{start}{end}(?!{_CODE})"


_COMBINATIONS: Final = ("combin", "kombin")
_OF_LOCK: Final = r"(?: (?:to|for|on) [a-z' -]{1,40}?)?(?: (?:is|ist|est|es)\b|:)"
"""The text directly after the combination of a lock; other combinations are of settings or keys."""
_EASTERN: Final = 0x3000
"""The first character of the scripts that have no spaces between words."""
_IN_COMPOUNDS: Final = ("passwort", "kennwort", "wachtwoord", "lösenord", "adgangskode", "salasana", "jelszó")
"""Stems that occur at the end of compounds."""
_EXACT_STEMS: Final = """
password passwd passphrase passcode pass-phrase pw pwd psw mdp
clave parola parole losung zugangscode heslo
"""
_EXACT: Final = frozenset(_EXACT_STEMS.split())
"""Stems that have further letters only in other words or in names in code."""


def _may_open(lowered: str, word: _Word) -> bool:
    """Return whether a word does not mean a combination, or means a lock's combination."""
    is_combination = lowered.startswith(_COMBINATIONS, word.first)
    return not is_combination or compile_pattern(_OF_LOCK).match(lowered, word.last) is not None


def _behind(text: str, lowered: str, word: _Word, end: int) -> Iterator[Span]:
    """Yield the value after a word, if there is one before ``end``."""
    end = _sentences(text, word.last, end, goes_on=word.kind == "code")
    window = text[word.last : end]
    if word.kind == "login":
        for pattern in (_PAIR, _WITH):
            if (found := compile_pattern(pattern).search(window)) and _is_strong(found[1].rstrip(".,;:)")):
                yield _span(word.last + found.start(1), found[1], "password")
                return
        return
    if len(window.strip()) < (_LEAST_DIGITS if word.kind == "code" else _LEAST):
        return
    around = lowered[max(0, word.first - _BEFORE) : end]
    is_network = any(each in around for each in NETWORKS)
    if word.kind == "key" and not is_network:
        is_spaced = word.is_ascii or window.isascii() or _is_alphabetic(window)
        for token in compile_pattern(_TEXT if is_spaced else _ASCII).finditer(window):
            value = token[0].rstrip(".,;:!?)")
            if (
                len(value) >= _LEAST_KEY
                and _is_key(value)
                and (
                    _introduced(window[: token.start()])
                    or (len(value) >= _LEAST_RANDOM and not word.is_ascii)
                )
            ):
                yield _span(word.last + token.start(), value, "secret value")
        return
    if word.kind == "key":  # the key of a network is a password
        word = word._replace(kind="password")
    phrase = compile_pattern(_PHRASE).search(window) if word.kind == "password" else None
    words = re.split("[ -]", phrase[1]) if phrase else []
    if phrase and FUNCTION_WORDS.isdisjoint(words) and not describes_password(words[0]):
        yield _span(word.last + phrase.start(1), phrase[1], "password")
        return
    yield from _value(window, word)


def _sentences(text: str, first: int, end: int, *, goes_on: bool) -> int:
    """Return where a window ends: after the next sentence, or a line without final colon."""
    ends, in_list = 0, False
    for found in compile_pattern(_SENTENCE).finditer(text, first, end):
        if found[0] == "\n":
            if text[first : found.start()].rstrip()[-1:] in {":", "\uff1a"}:
                in_list = goes_on
            elif not in_list:
                return found.start()
        else:
            ends += 1
            if ends > 1:
                return found.end()
    return end


def _value(window: str, word: _Word) -> Iterator[Span]:
    token_at = compile_pattern(
        _TEXT if word.is_ascii or window.isascii() or _is_alphabetic(window) else _ASCII
    )
    quoted = compile_pattern(_QUOTED).search(window)
    if quoted and _is_quoted(quoted[1], window[: quoted.start()], word.kind):
        yield _span(word.last + quoted.start(1), quoted[1], word.kind)
        return
    if numbers := [*_numbers(window, word)]:
        yield from numbers
        return
    is_first = True
    for token in token_at.finditer(window):
        value = token[0].strip("*_").rstrip(".,;:?)\u2026")
        before = window[: token.start()]
        if _is_said(value, before, word.kind, is_first):
            yield _span(word.last + token.start() + token[0].find(value), value, word.kind)
            if word.kind != "code":
                return
            is_first = False
        elif not is_first:
            return


def _is_quoted(value: str, before: str, kind: _Kind) -> bool:
    if not _introduced(before, right=True) or "://" in value:
        return False
    if stands_for_another(value) or value[0] in "%/{$< ":
        return False
    if describes_password(value.lower()) or (kind == "code" and compile_pattern(TECHNICAL).fullmatch(value)):
        return False
    return has_digit(value) or (kind == "password" and not compile_pattern("[,=(]").search(before))


def _is_alphabetic(window: str) -> bool:
    return max(window, default="a") < "\u3000"


def _numbers(window: str, word: _Word) -> Iterator[Span]:
    """Yield digits directly after their introduction; for codes, also the digits that follow."""
    done = 0
    for digits in compile_pattern(_DIGITS).finditer(window):
        before = window[: digits.start()]
        size = len(digits[0])
        is_next = word.kind == "code" and not before.strip() and not word.is_place
        if done and window[done : digits.start()].strip(" \n,;-"):
            return
        if not done and (
            (before[-1:].isalnum() and before[-1:].isascii())
            or before[-1:] in {"-", ".", "/", "#", "_", "+"}
            or size < (_LEAST if word.kind == "password" else _LEAST_DIGITS)
            or ("=" in before and before.strip() != "=")
            or not (_introduced(before, right=True) or is_next)
            or compile_pattern(_UNITS).search(before.lower())
        ):
            continue
        yield _span(word.last + digits.start(), digits[0], word.kind)
        if word.kind != "code":
            return
        done = digits.end()


def _is_said(value: str, before: str, kind: _Kind, is_first: bool) -> bool:  # noqa: FBT001 - a private helper
    if len(value) < _LEAST or is_placeholder(value) or compile_pattern(TECHNICAL).fullmatch(value):
        return False
    if "://" in value:
        return False
    if compile_pattern(_UNITS).search(before.lower()) or value[0] in "/~$<%@{-&":
        return False
    is_mixed = compile_pattern(_MIXED).fullmatch(value) is not None
    is_name = (
        "_" in value
        and value.isidentifier()
        and not value[-2:].isdigit()
        and is_wordy(value)
        and value.islower()
    )
    if not is_first or (_introduced(before) and not is_name):
        is_marked = len(value) >= _LEAST_MARKED and compile_pattern(_MARKED).fullmatch(value[:-1]) is not None
        return is_mixed or (kind == "password" and is_marked) or _is_diceware(value)
    is_next = not before.strip() and value[-2:].isdigit() and len(value) > _LEAST
    return is_mixed and kind != "key" and (is_next or _is_lone(value))


def _is_diceware(value: str) -> bool:
    parts = value.split("-")
    return (
        len(parts) >= _FEWEST_WORDS
        and all(part.islower() and part.isalpha() for part in parts)
        and FUNCTION_WORDS.isdisjoint(parts)
    )


def _is_lone(value: str) -> bool:
    """Return whether a value looks like a password without an introduction."""
    return (
        len(value) >= _LEAST_LONE
        and compile_pattern(_MIXED).fullmatch(value) is not None
        and compile_pattern(_INNER).search(value) is not None
        and not (
            compile_pattern(TECHNICAL).fullmatch(value)
            or compile_pattern(_HOST).fullmatch(value)
            or is_placeholder(value)
        )
        and (
            not value.isidentifier()
            or value.isalnum()
            or not (is_wordy(value) and value.islower())
            or value[-4:].isdigit()
        )
    )


def _is_strong(value: str) -> bool:
    """Return whether a value satisfies `_is_lone`, or has both cases, a digit and a mark."""
    has_all = all(re.search(part, value) for part in ("[a-z]", "[A-Z]", "[0-9]", "[_.-]"))
    return _is_lone(value) or (has_all and compile_pattern(TECHNICAL).fullmatch(value) is None)


def _is_key(value: str) -> bool:
    if compile_pattern(TECHNICAL).fullmatch(value) or is_placeholder(value) or not has_digit(value):
        return False
    return (
        is_random(value)
        if len(value) >= _LEAST_RANDOM
        else not is_wordy(value) and not compile_pattern(_HOST).fullmatch(value)
    )


def _introduced(before: str, *, right: bool = False) -> bool:
    """Return whether the text before a value introduces it; with ``right``, directly before."""
    return (
        compile_pattern(_INTRODUCED_RIGHT if right else _INTRODUCED).search(before[-30:].lower()) is not None
    )


_BEFORE_WORD: Final = frozenset(AS.split("|"))
_MOST_BETWEEN: Final = 2
_LONGEST_BETWEEN: Final = 8


def _ahead(text: str, last: int, kind: _Kind, first: int) -> Iterator[Span]:
    """Yield a value that stands before its word: "use … as the password"."""
    if not text[last - 1].isspace():
        return
    parts = text[first:last].split()
    for at in range(len(parts) - 1, max(0, len(parts) - 2 - _MOST_BETWEEN), -1):
        if parts[at].lower() in _BEFORE_WORD:
            value = parts[at - 1].strip("\"'`").strip(".,;:()")
            if _is_lone(value):
                yield _span(text.rindex(value, first, last), value, kind)
            return
        if len(parts[at]) > _LONGEST_BETWEEN or not parts[at].isalpha():
            return


def _span(first: int, value: str, kind: str) -> Span:
    return Span(
        first,
        first + len(value.rstrip(".,;:")),
        {"key": "secret value", "login": "password"}.get(kind, kind),
        1,
    )
