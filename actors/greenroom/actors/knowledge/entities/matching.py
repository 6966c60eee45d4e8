"""Find names in texts with an Aho-Corasick automaton: all names in one pass.

Marks surround the words of texts and names. So only whole words match, and the longest name at each place.
For any names, a text has no more matches than characters.

1. A name is a whole word: no letter or digit stands before or after it, and no ``+`` or ``#`` after it, so
   that C is not found in C++.
2. If names overlap, the name that begins first counts; if several begin there, the longest counts.
3. A name that is declared ambiguous, or that several entities have, needs a context: another name of the
   entity or of a related entity in the same chunk, or else in the same document. A name in backquotes, or
   after ``import``, ``install`` or ``require``, is plainly code and needs no context.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from greenroom.actors.core.base.optional_packages import Part
from greenroom.actors.knowledge.entities.names import fold, list_spellings, normalise
from greenroom.runtime import Slices

if TYPE_CHECKING:
    from ahocorasick_rs import AhoCorasick

NAMES: Final = Part("finding names of entities", ("ahocorasick-rs",))
_BEGIN: Final = "\0"
_END: Final = "\1"
_NO_MARKS: Final = str.maketrans(_BEGIN + _END, "\ufffd\ufffd")
_WORD: Final = re.compile(r"[^\W_]+")
_ADDED: Final = "+#"
_PLUSES: Final = re.compile(r"\++")


class MatchedNames(msgspec.Struct, frozen=True):
    """The names of an entity to find; ambiguous names need a context.

    Names of ``related`` entities count as context, too.
    """

    key: int
    names: Sequence[str]
    ambiguous: Sequence[str] = ()
    related: frozenset[int] = frozenset()


class _Doubt(NamedTuple):
    """A name that needs a context, and the entities that it may mean."""

    keys: tuple[int, ...]


class _Found(NamedTuple):
    """Names found in a text: entities, and names that need a context."""

    sure: Counter[int]
    doubts: Counter[_Doubt]


class EntityMatcher:
    """Finds names of entities; immutable: if a name changes, make a new matcher."""

    def __init__(self, entities: Iterable[MatchedNames]) -> None:
        from ahocorasick_rs import AhoCorasick, MatchKind  # noqa: PLC0415 - it may be missing

        sure: dict[str, set[int]] = {}
        doubtful: dict[str, set[int]] = {}
        self._related: dict[int, frozenset[int]] = {}
        for entity in entities:
            self._related[entity.key] = entity.related | {entity.key}
            ambiguous = {fold(name) for name in entity.ambiguous}
            for name in entity.names:
                meant = doubtful if fold(name) in ambiguous else sure
                for spelling in list_spellings(name):
                    meant.setdefault(spelling, set()).add(entity.key)
        patterns = sorted(spelling for spelling in {*sure, *doubtful} if spelling)
        self._meanings: list[int | _Doubt] = []
        for spelling in patterns:
            keys = sure.get(spelling, set()) | doubtful.get(spelling, set())
            only = next(iter(keys)) if len(keys) == 1 and spelling in sure else None
            self._meanings.append(_Doubt(tuple(sorted(keys))) if only is None else only)
        marked = list(map(_mark, patterns))
        self._automaton: AhoCorasick | None = (
            AhoCorasick(marked, matchkind=MatchKind.LeftmostLongest, store_patterns=False) if marked else None
        )

    def match(self, texts: Iterable[str], context: str) -> Slices[list[dict[int, int]]]:
        """Count each entity's mentions in the chunks of a document.

        ``context`` is the rest of the document's text; it only gives context, and its mentions do not count.
        """
        found: list[_Found] = []
        for text in texts:
            found.append(self._find(text))
            yield
        present = set(self._find(context).sure)
        for each in found:
            present |= each.sure.keys()
        return [self._resolve(each, present) for each in found]

    def mentions(self, text: str) -> dict[int, int]:
        """Count each entity's mentions in a short text that stands alone."""
        found = self._find(text)
        return self._resolve(found, set(found.sure))

    def _resolve(self, found: _Found, present: set[int]) -> dict[int, int]:
        counts = dict(found.sure)
        for doubt, count in found.doubts.items():
            near = [key for key in doubt.keys if self._related[key] & found.sure.keys()]
            meant = near or [key for key in doubt.keys if self._related[key] & present]
            for key in meant:
                counts[key] = counts.get(key, 0) + count
        return counts

    def _find(self, text: str) -> _Found:
        found = _Found(Counter(), Counter())
        if self._automaton is None:
            return found
        searched = _mark(normalise(text))
        for pattern, first, last in self._automaton.find_matches_as_indexes(searched):
            meaning = self._meanings[pattern]
            if isinstance(meaning, int):
                found.sure[meaning] += 1
            elif len(meaning.keys) == 1 and _is_code(searched, first, last):
                found.sure[meaning.keys[0]] += 1
            else:
                found.doubts[meaning] += 1
        return found


def _mark(text: str) -> str:
    """Mark where words begin and end; ``+`` or ``#`` after a word belong to it."""
    # Before Python 3.12, a template would take twice as long.
    text = _WORD.sub(lambda word: f"{_BEGIN}{word[0]}{_END}", text.translate(_NO_MARKS))
    for each in _ADDED:
        text = text.replace(_END + each, each)
    return _PLUSES.sub(rf"\g<0>{_END}", text) if "+" in text else text


_INTRODUCED: Final = tuple(map(_mark, ("import ", "install ", "require ", "require('", 'require("')))
_LONGEST_INTRODUCTION: Final = max(map(len, _INTRODUCED))


def _is_code(text: str, first: int, last: int) -> bool:
    if text[first - 1 : first] == text[last : last + 1] == "`":
        return True
    return text[max(0, first - _LONGEST_INTRODUCTION) : first].endswith(_INTRODUCED)
