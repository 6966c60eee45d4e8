"""Analysis of one word into terms, by the rules of `analyze`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import NamedTuple

import Stemmer  # type: ignore[import-not-found]  # PyStemmer has no type information

_COMMON = """
a about after again all also am an and any are aren as at be because been before being both but by can
could couldn d did didn do does doesn doing don dont down each else few for from further had hadn has hasn
have haven having he her here hers him his how i if in into is isn it its itself just let ll m me more most
mustn my no nor not of off on once only or other our ours out over own re s same shan she should shouldn so
some such t than that the their theirs them then there these they this those through to too under until up
us ve very was wasn we were weren what when where which while who whom whose why will with won would
wouldn you your yours
"""
_YEAR = "january february march april may june july august september october november december"
STOP_WORDS = frozenset(_COMMON.split())
MAX_TERM = 64
"""Postings have at most this many characters of a word; the phrase key has the whole word."""

_STRETCH = 64
_MAX_STEM = 32  # no word of a language has a longer stem
_MIN_STEM = 3
DATE = r"\b[0-9]{4}-(?:0[1-9]|1[0-2])-[0-3][0-9](?![0-9])"
EMOJI_RANGES = "\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
_EMOJI = re.compile(f"[{EMOJI_RANGES}]")
# Accents and vowel points that people omit when they type Latin, Greek, Cyrillic, Hebrew and Arabic.
_ACCENTS = re.compile(
    "[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a"
    "\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u1ab0-\u1aff"
    "\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+"
)
# Thai, Lao, Myanmar, Khmer, kana, Han, Hangul.
_UNSPACED_RANGES = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U000323af"
)
_UNSPACED = re.compile(f"[{_UNSPACED_RANGES}]+")
_SCRIPT_RUN = re.compile(f"[{_UNSPACED_RANGES}]+|[^{_UNSPACED_RANGES}]+")
_CAMEL = re.compile(r"[a-z0-9][A-Z]")
_CODE_CAMEL = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]{2}")  # HTTPServer, but not URLs
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|[0-9]+|[^A-Za-z0-9_]+")
_ISO_DATE = re.compile(DATE)
_NUMBER = re.compile(r"0*(\d+?)(?:st|nd|rd|th)?", re.ASCII)  # 08 and 8th are 8
_LATIN = re.compile("[0-9a-z\u00df-\u024f\u1e00-\u1eff]+")
_SCRIPTS = {
    "arabic": re.compile("[0-9\u0600-\u06ff]+"),
    "armenian": re.compile("[0-9\u0530-\u058f]+"),
    "greek": re.compile("[0-9\u0370-\u03ff\u1f00-\u1fff]+"),
    "hindi": re.compile("[0-9\u0900-\u097f]+"),
    "nepali": re.compile("[0-9\u0900-\u097f]+"),
    "persian": re.compile("[0-9\u0600-\u06ff]+"),
    "russian": re.compile("[0-9\u0400-\u052f]+"),
    "serbian": re.compile("[0-9a-z\u00df-\u024f\u0400-\u052f]+"),
    "tamil": re.compile("[0-9\u0b80-\u0bff]+"),
    "yiddish": re.compile("[0-9\u0590-\u05ff]+"),
}
"""The scripts of languages; all others use Latin letters."""
_VERSION = "1"  # a change rebuilds every index
_CODE = "code "


class Token(NamedTuple):
    """A token: its piece of a phrase key, its query terms, and its posted terms.

    A term of a query comes with further terms; a text that has all of these counts as well.
    """

    piece: str
    terms: tuple[tuple[str, tuple[str, ...]], ...] = ()
    posted: tuple[str, ...] = ()


class TextRules:
    """The rules of analysis for a choice of languages.

    Only English stop words are dropped. No lists of similar quality were found for other languages, and very
    frequent words weigh little anyway.

    Args:
        languages: Snowball's names of the languages, such as "english"; empty for no stemming.
        remembered: The size of the cache, in words; a word takes half a kilobyte.

    Attributes:
        name: The identity of these rules, with the version of the analysis.

    Raises:
        ValueError: there is no stemmer for a language.
    """

    def __init__(self, languages: Sequence[str], remembered: int = 16_384) -> None:
        known = Stemmer.algorithms()
        for language in languages:
            if language not in known:
                raise ValueError(f"there is no language {language!r}; there are {', '.join(known)}")
        distinct = list(dict.fromkeys(languages))
        self.languages = tuple(distinct)
        self.name = " ".join((_VERSION, *distinct))
        self._stemmers = [(_SCRIPTS.get(name, _LATIN), Stemmer.Stemmer(name, 0)) for name in distinct]
        self._stop_words = STOP_WORDS if "english" in distinct else frozenset()
        self._months = tuple(map(self._stemmed, _YEAR.split()))
        self.cached_token = lru_cache(maxsize=remembered)(self._analyse)

    _compound = _CAMEL

    def labels(self, tags: Sequence[str]) -> Sequence[str]:
        """Return the index labels of tags: the tags themselves."""
        return tags

    def token(self, word: str) -> Token:
        """Return the token of a word."""
        # Long words would fill the cache and rarely recur.
        return self.cached_token(word) if len(word) <= MAX_TERM else self._analyse(word)

    def terms(self, words: AbstractSet[str]) -> set[str]:
        """Return the terms of hundreds of lower-case ASCII words, ten times as fast as `token`."""
        if not self._stop_words.isdisjoint(words):
            words = words - self._stop_words
        kept = list(words)
        others: list[str] = []
        lengths = set(map(len, kept))
        if lengths and not _MIN_STEM <= min(lengths) <= max(lengths) <= _MAX_STEM:
            others = [word for word in kept if not _MIN_STEM <= len(word) <= _MAX_STEM]
            kept = [word for word in kept if _MIN_STEM <= len(word) <= _MAX_STEM]
        for script, stemmer in self._stemmers:
            # All stemmers for the script with this letter accept these words; the others accept none.
            if script.fullmatch("a"):
                kept = stemmer.stemWords(kept)
        return {*kept, *others}

    def _analyse(self, word: str) -> Token:
        folded = _fold(word)
        first = folded[:1]
        if not (first.isalnum() or first == "_"):
            # An emoji is a term; other symbols are only in the phrase key.
            return _one(folded, folded) if _EMOJI.fullmatch(folded) else Token(folded)
        bare = folded.replace("_", "")
        if not bare or folded in self._stop_words:
            return Token(folded)
        if not folded.isascii() and _UNSPACED.search(folded):
            return self._analyse_unspaced(folded)
        if first.isdigit() and _ISO_DATE.fullmatch(folded):
            return self._analyse_date(folded)
        parts = self._parts(word, folded)
        if not parts:
            stem = self._stemmed(bare)
            return _one(stem, stem[:MAX_TERM] if bare.isalpha() else self._term(bare))
        # In phrases user_name is two words, but getUserName is one, its folded form.
        piece = " ".join(parts) if "_" in folded else self._stemmed(bare)
        return Token(piece, ((self._term(bare), parts),), (self._term(bare), *parts))

    def _analyse_unspaced(self, folded: str) -> Token:
        terms: list[str] = []
        pieces: list[str] = []
        characters: list[str] = []
        for run in _SCRIPT_RUN.findall(folded):
            if is_unspaced(run):
                pieces.extend(run)
                terms.extend([run[i : i + 2] for i in range(max(1, len(run) - 1))])
                characters.extend(run)
            else:
                pieces.append(self._stemmed(run))
                terms.append(self._term(run))
        return Token(" ".join(pieces), tuple((term, ()) for term in terms), (*terms, *characters))

    def _analyse_date(self, date: str) -> Token:
        year, month, day = map(self._term, date.split("-"))
        name = self._months[int(month) - 1]
        return Token(
            date.replace("-", " "), ((year, ()), (month, (name,)), (day, ())), (year, month, name, day)
        )

    def _parts(self, word: str, folded: str) -> tuple[str, ...]:
        if "_" not in word.strip("_") and not self._compound.search(word):
            return ()
        found = _PART.findall(word) if word.isascii() else folded.split("_")
        parts = tuple(self._term(part.lower()) for part in found if len(part) > 1 or part.isdigit())
        return parts if len(parts) > 1 else ()

    def _term(self, word: str) -> str:
        number = _NUMBER.fullmatch(word) if len(word) <= MAX_TERM else None
        return number[1] if number else self._stemmed(word)[:MAX_TERM]

    def _stemmed(self, word: str) -> str:
        if _MIN_STEM <= len(word) <= _MAX_STEM:
            for script, stemmer in self._stemmers:
                if script.fullmatch(word):
                    word = stemmer.stemWord(word)
        return word


class CodeRules(TextRules):
    """The rules of analysis for source code: HTTPServer is two words, and tags are symbols.

    The part of a symbol before the last dot is its scope; a scope counts only as words. The label of a symbol
    is its name; getUser, get_user and GetUser have the same label.
    """

    _compound = _CODE_CAMEL

    def __init__(self, languages: Sequence[str]) -> None:
        super().__init__(languages)
        self.name = f"{_CODE}{self.name}"

    def labels(self, tags: Sequence[str]) -> Sequence[str]:
        """Return the labels of symbols: their normalized names."""
        names = (symbol_name(tag.rpartition(".")[2]) for tag in tags)
        return [name for name in names if name]


def symbol_name(name: str) -> str:
    """Normalize the name of a symbol: without underscores, in lower case."""
    return name.replace("_", "").lower()[:MAX_TERM]


@lru_cache(maxsize=8)
def rules_named(name: str) -> TextRules | None:
    """Return the rules with a name; None for another version of the analysis."""
    version, *languages = name.removeprefix(_CODE).split(" ")
    kind = CodeRules if name.startswith(_CODE) else TextRules
    try:
        return kind(languages) if version == _VERSION else None
    except ValueError:
        return None


def is_unspaced(text: str) -> bool:
    """Return whether all of a text is in a script without spaces."""
    return _UNSPACED.fullmatch(text) is not None


def _one(piece: str, term: str) -> Token:
    return Token(piece, ((term, ()),), (term,))


def _fold(word: str) -> str:
    if word.isascii():
        return word.lower()
    if len(word) > _STRETCH:
        return "".join(_fold(word[i : i + _STRETCH]) for i in range(0, len(word), _STRETCH))
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    return unicodedata.normalize("NFC", _ACCENTS.sub("", decomposed)).casefold() or word
