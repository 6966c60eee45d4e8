"""Texts of others, made safe to print: what would command a terminal is shown instead."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Final

_PICTURES: Final = 0x2400  # the Unicode block that pictures the control characters 0-31 in order
_DELETE: Final = 0x7F
_DELETE_PICTURE: Final = "\N{SYMBOL FOR DELETE}"
_JOINERS: Final = frozenset("\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}")  # part of many a word and emoji
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def visible(text: str) -> str:
    """Returns the text on one line, with every character that would not be seen as itself shown.

    A control character becomes its picture (an escape is ``␛``, a line end ``␊``). Any other
    invisible character, such as those that turn the direction of writing, becomes its number.
    """
    return text if text.isprintable() else "".join(map(_shown, text))


@lru_cache(maxsize=256)
def _shown(character: str) -> str:
    code = ord(character)
    if code < ord(" "):
        return chr(_PICTURES + code)
    if code == _DELETE:
        return _DELETE_PICTURE
    if unicodedata.category(character) in _UNSEEN and character not in _JOINERS:
        return f"<U+{code:04X}>"
    return character
