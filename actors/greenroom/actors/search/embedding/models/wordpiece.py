"""WordPiece, the tokenizer of lower-case BERT models: from text to numbers of tokens.

A text is split at blanks and around punctuation, without case and accents. A word is split from its
beginning: first the longest entry of the vocabulary, then the longest continuations (written with ``##``), up
to its end. If this fails, the whole word is one unknown token. Names of special tokens, such as ``[SEP]``,
are ordinary text.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

UNKNOWN: Final = "[UNK]"
_GOES_ON: Final = "##"
_LONGEST_WORD: Final = 100  # characters; the limit of the model's makers
_WORDS_KEPT: Final = 16_384
_CHARACTERS_KEPT: Final = 16_384
_DROPPED: Final = frozenset({"Cc", "Cf", "Co", "Cs"})
_CHINESE: Final = (
    range(0x3400, 0x4DC0),
    range(0x4E00, 0xA000),
    range(0xF900, 0xFB00),
    range(0x20000, 0x2A6E0),
    range(0x2A700, 0x2B740),
    range(0x2B740, 0x2B820),
    range(0x2B920, 0x2CEB0),
    range(0x2F800, 0x2FA20),
)


class Token(NamedTuple):
    """A token and its position in the text; ``end`` is after its last character."""

    id: int
    start: int
    end: int


class WordPiece:
    """The tokenizer of a vocabulary, for several threads at once."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self._vocabulary = vocabulary
        self._unknown = vocabulary[UNKNOWN]
        self._longest = max(map(len, vocabulary))
        self._ids_of_word = lru_cache(_WORDS_KEPT)(self._ids_of_new_word)

    def ids(self, text: str) -> list[int]:
        """Return the numbers of a text's tokens, without special ones."""
        return [id_ for word in spread(text).split() for id_ in self._ids_of(word)]

    def tokens(self, text: str) -> list[Token]:
        """Return a text's tokens with their positions; several times as slow as `ids`."""
        found: list[Token] = []
        word: list[str] = []
        places: list[int] = []
        for place, character in enumerate(text + " "):
            for each in _SPREAD[ord(character)]:
                if each != " ":
                    word.append(each)
                    places.append(place)
                elif word:
                    pieces = self._split("".join(word))
                    found += [Token(id_, places[start], places[end - 1] + 1) for id_, start, end in pieces]
                    word, places = [], []
        return found

    def _ids_of(self, word: str) -> tuple[int, ...]:
        # Longer words are not cached: 16,384 of them would take 500 MB.
        return self._ids_of_word(word) if len(word) <= _LONGEST_WORD else (self._unknown,)

    def _ids_of_new_word(self, word: str) -> tuple[int, ...]:
        return tuple(id_ for id_, _, _ in self._split(word))

    def _split(self, word: str) -> list[Token]:
        """Return the pieces of a word, from its beginning on, or the unknown token."""
        unknown = [Token(self._unknown, 0, len(word))]
        if len(word) > _LONGEST_WORD:
            return unknown
        found: list[Token] = []
        start = 0
        while start < len(word):
            piece = self._longest_piece(word, start)
            if piece is None:
                return unknown
            found.append(piece)
            start = piece.end
        return found

    def _longest_piece(self, word: str, start: int) -> Token | None:
        mark = _GOES_ON if start else ""
        for end in range(min(len(word), start + self._longest), start, -1):
            id_ = self._vocabulary.get(mark + word[start:end])
            if id_ is not None:
                return Token(id_, start, end)
        return None


def spread(text: str) -> str:
    """Return a text without case and accents, with blanks around punctuation and Chinese characters."""
    return text.translate(_SPREAD)


class _Spread(dict[int, str]):
    """A table for `str.translate`, from code points to replacements, that fills itself on use.

    Blanks and line ends become a blank, control characters vanish. Punctuation and Chinese characters get
    blanks around them, so that blanks separate all words.
    """

    def __missing__(self, code: int) -> str:
        made = _spread_character(chr(code))
        if len(self) < _CHARACTERS_KEPT:
            self[code] = made
        return made


def _spread_character(character: str) -> str:
    if character.isspace() and (character in "\t\n\r" or unicodedata.category(character) != "Cc"):
        return " "
    if character in "\0\ufffd" or unicodedata.category(character) in _DROPPED:
        return ""
    plain = (each for each in unicodedata.normalize("NFD", character) if unicodedata.category(each) != "Mn")
    made = "".join(f" {each} " if _is_punctuation(each) else each.lower() for each in plain)
    return f" {made} " if any(ord(character) in each for each in _CHINESE) else made


def _is_punctuation(character: str) -> bool:
    """Return whether a character is punctuation in Unicode, or a symbol in ASCII."""
    return unicodedata.category(character)[0] == "P" or (
        character.isascii() and character.isprintable() and not character.isalnum() and character != " "
    )


_SPREAD: Final = _Spread()
