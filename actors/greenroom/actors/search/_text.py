"""Text to tokens: what counts as a word, and which spellings count as the same word.

Rules, in the order in which they apply:

1. Invisible characters (joiners, direction marks, variation selectors) are dropped.
2. A token is a word, an emoji, or a run of symbols; single prose punctuation is no token.
3. A word is folded: case, accents and compatibility forms (full width, ligatures) do not count.
4. snake_case and camelCase are one word and also their parts; 2024-05-08 is a year, a month and a day.
5. Scripts written without spaces become pairs of neighbouring characters.
6. A word is reduced to its stem, by the stemmers of all languages of its script, one after the other.
   So several languages may be mixed; words of languages that nobody set are reduced alike on both sides.

Each token has a *piece*, which stands for it in a text's phrase key, and *terms*, by which
postings know it. Folding works on short stretches because normalising a long run of
combining marks takes quadratic time (1.3 s for 40,000; measured).
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import Stemmer  # type: ignore[import-not-found]  # PyStemmer has no type information

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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
"""Characters of a word that tell it apart in the postings; the phrase key keeps the whole word."""

_STRETCH = 64
_MAX_STEM = 32  # nothing longer is a word of a language
_MIN_STEM = 3
_DATE = r"\b[0-9]{4}-(?:0[1-9]|1[0-2])-[0-3][0-9](?![0-9])"
# Vowel signs and the like are part of a word in these scripts, but `\w` leaves them out.
_SIGNS = "".join(
    chr(code) for code in range(0x0300, 0x1D00) if unicodedata.category(chr(code)).startswith("M")
)
_EMOJI_RANGES = "\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
_CONTROLS = r"\x00-\x1f\x7f"
_TOKEN = re.compile(
    _DATE + rf"|[\w{_SIGNS}]+|[{_EMOJI_RANGES}]" + rf"|[^\w\s{_CONTROLS}{_SIGNS}{_EMOJI_RANGES}]{{2,}}|[#+$%]"
)
_EMOJI = re.compile(f"[{_EMOJI_RANGES}]")
# The same for ASCII, with classes spelt out, which is twice as fast; and faster still without dates.
_ASCII_FORMS = r"[A-Za-z0-9_]+|[!-/:-@\[-^`{-~]{2,}|[#+$%]"
_ASCII_TOKEN = re.compile(f"{_DATE}|{_ASCII_FORMS}")
_DATELESS_TOKEN = re.compile(_ASCII_FORMS)
_INVISIBLE = re.compile(
    "[\xad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff\U0001f3fb-\U0001f3ff]"
)
# Accents and pointing that readers of Latin, Greek, Cyrillic, Hebrew and Arabic leave out when they type.
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
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|[0-9]+|[^A-Za-z0-9_]+")
_ISO_DATE = re.compile(_DATE)
_NUMBER = re.compile(r"0*(\d+?)(?:st|nd|rd|th)?", re.ASCII)  # 08 and 8th are 8
_SPACE = re.compile(r"\s")
_REMARK = re.compile(r"(?:\[[^\[\]]*\]|\([^()]*\))\s*\Z")
_END = 256  # characters in which a text's end is looked for

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
"""What words of languages are written in; all others are written in Latin letters."""
_VERSION = 1  # of these rules: another one means that every index is made anew


@dataclass(slots=True)
class _Languages:
    """What follows from the languages that are set.

    Attributes:
        stemmers: What a word of a language looks like when it is folded, and what stems it.
        stop_words: Words that are no terms.
        months: The stems of the months' English names.
        analysis: See `analysis`.
    """

    stemmers: Sequence[tuple[re.Pattern[str], Callable[[str], str]]]
    stop_words: frozenset[str]
    months: tuple[str, ...]
    analysis: str


_set = _Languages((), frozenset(), (), "")


class Token(NamedTuple):
    """One token of a text.

    Attributes:
        piece: What stands for it in a phrase key; "" for nothing.
        terms: What a query with this token asks for: independent terms, each with terms that do as well
            if a text has all of them. Empty for stop words and symbols.
        posted: What a text with this token is found by.
    """

    piece: str
    terms: tuple[tuple[str, tuple[str, ...]], ...] = ()
    posted: tuple[str, ...] = ()


def use_languages(names: Sequence[str]) -> None:
    """Set the languages of all texts of this process, those of an index included.

    Stop words are left out for English alone: lists for other languages that are kept with as much
    care as stemmers are did not turn up, and words that are in every text weigh little anyway.

    Args:
        names: Snowball's names of the languages, as "english"; none for no stemming at all.

    Raises:
        ValueError: there is no stemmer for a language.
    """
    known = Stemmer.algorithms()
    for name in names:
        if name not in known:
            raise ValueError(f"there is no language {name!r}; there are {', '.join(known)}")
    _set.stemmers = tuple(
        (_SCRIPTS.get(name, _LATIN), Stemmer.Stemmer(name, 0).stemWord) for name in dict.fromkeys(names)
    )
    _set.stop_words = STOP_WORDS if "english" in names else frozenset()
    _set.months = tuple(map(_stemmed, _YEAR.split()))
    _set.analysis = " ".join((str(_VERSION), *dict.fromkeys(names)))
    _cached_token.cache_clear()


def analysis() -> str:
    """Return what stands for the rules by which texts become terms now."""
    return _set.analysis


def is_unspaced(text: str) -> bool:
    """Return whether ``text`` is written entirely in a script without spaces."""
    return _UNSPACED.fullmatch(text) is not None


def spans(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and spelling of the tokens in order."""
    return ((found.start(), found.end(), found[0]) for found in _TOKEN.finditer(text))


def tokens(text: str) -> list[Token]:
    """Return the tokens of ``text`` in order."""
    if not text.isascii():
        words = _TOKEN.findall(_INVISIBLE.sub("", text))
    else:
        words = (_ASCII_TOKEN if "-" in text else _DATELESS_TOKEN).findall(text)
    # Long words, which would fill the cache with what never comes again, are the exception.
    if max(map(len, words), default=0) <= MAX_TERM:
        return [*map(_cached_token, words)]
    return [*map(_token, words)]


def stretches(text: str, size: int) -> Iterator[str]:
    """Cut a long text after white space into stretches of about ``size`` characters.

    A stretch never exceeds twice that: a longer word is cut.
    """
    start = 0
    while len(text) - start > size:
        space = _SPACE.search(text, start + size, start + 2 * size)
        end = space.end() if space else start + 2 * size
        yield text[start:end]
        start = end
    yield text[start:]


def asks(text: str) -> bool:
    """Return whether a text ends as a question does; a remark in brackets after it is not the end."""
    return _REMARK.sub("", text[-_END:]).rstrip().endswith(("?", "\uff1f", "\u061f"))


def _token(word: str) -> Token:
    return _cached_token(word) if len(word) <= MAX_TERM else _analyse(word)


def _analyse(word: str) -> Token:
    folded = _fold(word)
    first = folded[:1]
    if not (first.isalnum() or first == "_"):
        # An emoji is a term; other symbols live in the phrase key only.
        return _one(folded, folded) if _EMOJI.fullmatch(folded) else Token(folded)
    bare = folded.replace("_", "")
    if not bare or folded in _set.stop_words:
        return Token(folded)
    if _UNSPACED.search(folded):
        return _analyse_unspaced(folded)
    if _ISO_DATE.fullmatch(folded):
        return _analyse_date(folded)
    parts = _parts(word, folded)
    if not parts:
        return _one(_stemmed(bare), _term(bare))
    # A phrase finds user_name as two words, but getUserName as the one that its folded form is.
    piece = " ".join(parts) if "_" in folded else _stemmed(bare)
    return Token(piece, ((_term(bare), parts),), (_term(bare), *parts))


_cached_token = lru_cache(maxsize=16_384)(_analyse)


def _one(piece: str, term: str) -> Token:
    return Token(piece, ((term, ()),), (term,))


def _analyse_unspaced(folded: str) -> Token:
    terms: list[str] = []
    pieces: list[str] = []
    characters: list[str] = []
    for run in _SCRIPT_RUN.findall(folded):
        if is_unspaced(run):
            pieces.extend(run)
            terms.extend([run[i : i + 2] for i in range(max(1, len(run) - 1))])
            characters.extend(run)
        else:
            pieces.append(_stemmed(run))
            terms.append(_term(run))
    return Token(" ".join(pieces), tuple((term, ()) for term in terms), (*terms, *characters))


def _analyse_date(date: str) -> Token:
    year, month, day = map(_term, date.split("-"))
    name = _set.months[int(month) - 1]
    return Token(date.replace("-", " "), ((year, ()), (month, (name,)), (day, ())), (year, month, name, day))


def _parts(word: str, folded: str) -> tuple[str, ...]:
    if "_" not in word.strip("_") and not _CAMEL.search(word):
        return ()
    found = _PART.findall(word) if word.isascii() else folded.split("_")
    parts = tuple(_term(part.lower()) for part in found if len(part) > 1 or part.isdigit())
    return parts if len(parts) > 1 else ()


def _fold(word: str) -> str:
    if word.isascii():
        return word.lower()
    if len(word) > _STRETCH:
        return "".join(_fold(word[i : i + _STRETCH]) for i in range(0, len(word), _STRETCH))
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    return unicodedata.normalize("NFC", _ACCENTS.sub("", decomposed)).casefold() or word


def _term(word: str) -> str:
    number = _NUMBER.fullmatch(word) if len(word) <= MAX_TERM else None
    return number[1] if number else _stemmed(word)[:MAX_TERM]


def _stemmed(word: str) -> str:
    if _MIN_STEM <= len(word) <= _MAX_STEM:
        for script, stem in _set.stemmers:
            if script.fullmatch(word):
                word = stem(word)
    return word


use_languages(["english"])
