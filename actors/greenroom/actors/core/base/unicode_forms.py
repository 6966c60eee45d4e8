"""Unicode's composed and decomposed forms of a text, which compare as equal.

What is stored stays as it was given; only what is compared is composed (NFC).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Final, Literal

_STRETCH: Final = 64
_PILE: Final = 32
"""Characters that are composed at once, and more that join them: a run of marks takes quadratic time."""
_ALL_MIXES: Final = 3
_ONE_CHANGE: Final = 8
"""Characters with two forms in a text of which all mixes are looked at, and those with one change."""
_JAMO: Final = ("\u1160", "\u11ff")
"""Vowels and finals of Hangul, which are no marks, and join the syllable before them."""


def composed(text: str) -> str:
    """Return the text's composed form (NFC)."""
    return text if text.isascii() else _normalized("NFC", text)


def forms(text: str) -> tuple[str, ...]:
    """Return the forms that a text may be stored in: composed, as given, decomposed; each once."""
    if text.isascii():
        return (text,)
    return tuple(dict.fromkeys((composed(text), text, _normalized("NFD", text))))


def mixed_forms(text: str) -> tuple[str, ...]:
    """Return `forms`, and those in which only some characters are composed, as far as they are few.

    All mixes of three characters; of up to eight those with one change, as where two texts were joined.
    """
    found = dict.fromkeys(forms(text))
    if len(found) == 1 or len(text) > _STRETCH:
        return tuple(found)
    whole = composed(text)
    apart = [_normalized("NFD", each) for each in whole]
    places = [place for place, each in enumerate(whole) if apart[place] != each]
    mixes: Iterable[Iterable[bool]] = ()
    if len(places) <= _ALL_MIXES:
        mixes = product((False, True), repeat=len(places))
    elif len(places) <= _ONE_CHANGE:
        mixes = (
            [first] * cut + [not first] * (len(places) - cut)
            for cut in range(1, len(places))
            for first in (False, True)
        )
    for mix in mixes:
        is_apart = dict(zip(places, mix, strict=True))
        found["".join(apart[place] if is_apart.get(place) else each for place, each in enumerate(whole))] = (
            None
        )
    return tuple(found)


def same_text(text: str, other: str) -> bool:
    """Return whether two texts are equal but for their forms."""
    return text == other or (not (text.isascii() and other.isascii()) and composed(text) == composed(other))


def place_in(text: str, at: int) -> int:
    """Return the offset in a text for an offset in its composed form."""
    if text.isascii():
        return at
    for start, stretch in _stretches(text):
        size = len(unicodedata.normalize("NFC", stretch))
        if at < size:
            return start + _place_in_stretch(stretch, at)
        at -= size
    return len(text)


def begins(text: str, prefix: str) -> bool:
    """Return whether a text begins with another one, whatever the forms of both."""
    return composed(text).startswith(composed(prefix))


def composed_bytes(text: bytes) -> bytes:
    """Return UTF-8 in its composed form."""
    return text if text.isascii() else composed(text.decode()).encode()


def _normalized(form: Literal["NFC", "NFD"], text: str) -> str:
    if len(text) <= _STRETCH:
        return unicodedata.normalize(form, text)
    return "".join([unicodedata.normalize(form, each) for _, each in _stretches(text)])


def _stretches(text: str) -> Iterator[tuple[int, str]]:
    """Yield a long text in parts that nothing joins, each with where it begins."""
    start = 0
    while start < len(text):
        end = min(len(text), start + _STRETCH)
        last = min(len(text), end + _PILE)
        while end < last and _joins(text[end]):
            end += 1
        yield start, text[start:end]
        start = end


def _place_in_stretch(text: str, at: int) -> int:
    begin = 0
    while begin < len(text):
        end = begin + 1
        while end < len(text) and _joins(text[end]):
            end += 1
        size = len(unicodedata.normalize("NFC", text[begin:end]))
        if at < size:
            return min(begin + at, end)
        at -= size
        begin = end
    return begin


def _joins(character: str) -> bool:
    """Return whether a character may become one with what is before it."""
    if character.isascii():
        return False
    return unicodedata.category(character).startswith("M") or _JAMO[0] <= character <= _JAMO[1]
