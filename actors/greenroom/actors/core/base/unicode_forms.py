"""Comparison of texts in Unicode's composed and decomposed forms.

Stored texts stay unchanged; texts are composed (NFC) only to compare them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Final, Literal

_STRETCH: Final = 64
_PILE: Final = 32
"""At most `_STRETCH` characters are normalized at once, with at most `_PILE` more that join them.

Longer runs of marks would take quadratic time.
"""
_ALL_MIXES: Final = 3
_ONE_CHANGE: Final = 8
"""For up to `_ALL_MIXES` characters with two forms, all mixes are tried.

For up to `_ONE_CHANGE`, only the mixes in which the form changes once are tried.
"""
_JAMO: Final = ("\u1160", "\u11ff")
"""Hangul vowels and finals: they are no marks, but join the syllable before them."""


def compose(text: str) -> str:
    """Return the composed form (NFC) of a text."""
    return text if text.isascii() else _normalized("NFC", text)


def forms(text: str) -> tuple[str, ...]:
    """Return the forms in which a text may be stored: composed, as given, decomposed."""
    if text.isascii():
        return (text,)
    return tuple(dict.fromkeys((compose(text), text, _normalized("NFD", text))))


def mixed_forms(text: str) -> tuple[str, ...]:
    """Return `forms`, and mixed forms in which only some characters are composed.

    For up to three characters with two forms, these are all mixes. For up to eight, these are the mixes in
    which the form changes once, as where two texts were joined.
    """
    found = dict.fromkeys(forms(text))
    if len(found) == 1 or len(text) > _STRETCH:
        return tuple(found)
    whole = compose(text)
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
    """Return whether two texts are equal, whatever their forms."""
    return text == other or (not (text.isascii() and other.isascii()) and compose(text) == compose(other))


def map_offset(text: str, at: int) -> int:
    """Map an offset in the composed form to the offset in the text."""
    if text.isascii():
        return at
    for start, stretch in _stretches(text):
        size = len(unicodedata.normalize("NFC", stretch))
        if at < size:
            return start + _place_in_stretch(stretch, at)
        at -= size
    return len(text)


def starts_with(text: str, prefix: str) -> bool:
    """Return whether a text starts with another one, whatever their forms."""
    return compose(text).startswith(compose(prefix))


def compose_bytes(text: bytes) -> bytes:
    """Return the composed form (NFC) of UTF-8; no character joins another line."""
    if text.isascii():
        return text
    lines = text.split(b"\n")
    return b"\n".join([line if line.isascii() else compose(line.decode()).encode() for line in lines])


def _normalized(form: Literal["NFC", "NFD"], text: str) -> str:
    if len(text) <= _STRETCH:
        return unicodedata.normalize(form, text)
    return "".join([unicodedata.normalize(form, each) for _, each in _stretches(text)])


def _stretches(text: str) -> Iterator[tuple[int, str]]:
    """Yield the parts of a long text and their offsets; no character joins two parts."""
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
    """Return whether a character may combine with the one before it."""
    if character.isascii():
        return False
    return unicodedata.category(character).startswith("M") or _JAMO[0] <= character <= _JAMO[1]
