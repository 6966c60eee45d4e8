"""Weights of the signals: the one table behind the order of search results.

    strength = sum of weight * signal

Strength is absolute: it does not depend on what else is found. `relevance` says what it is worth. `bench/`
has the program that fits the weights to questions whose answers are known, and measures them on
conversations that they were not fitted to. A weight that is 0 leaves its signal out in that situation.

A situation is what vectors there are (none, or not yet; static ones of words; those of sentences; and
those of sentences and of tokens) times the kind of memory. A store holds several kinds: those of each are
weighed by the table of their own.

A note is found by what it means more than a turn of a conversation is, which has its neighbours to be found
by; and words that it shares with the query count the more, the more of the query they are (`covered`). That
does not hold where the query names a time: few notes are of it, so a single word tells them apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final, Literal, get_args

VectorSet = Literal["words", "static", "sentences", "tokens"]
"""What vectors there are, in the order of the columns of each table."""
Kind = Literal["note", "conversation", "dated note"]
"""Kinds of memories: one that stands alone, a turn of a conversation, and a note asked for by its time.

Where a query names a time of which there is anything, all notes are of the last kind.
"""

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
VECTOR_SETS: Final[tuple[VectorSet, ...]] = get_args(VectorSet)


_Table = Mapping[str, tuple[float, float, float, float]]

# fmt: off
_CONVERSATION: Final[_Table] = {
    #                 words  static  sentences tokens
    "words":         (  0.09,   0.00,   0.00,   0.00),
    "covered":       (  0.00,   0.00,   0.00,   0.00),
    "nearby":        (  0.36,   0.35,   0.36,   0.20),
    "conversation":  (  0.16,   0.10,   0.14,   0.11),
    "tags":          (  0.40,   0.40,   0.40,   0.30),
    "key":           (  4.00,   4.00,   4.00,   4.00),
    "mention":       (  0.22,   0.24,   0.00,   0.00),
    "author":        (  2.09,   2.10,   2.63,   2.49),
    "company":       (  2.44,   2.59,   2.57,   2.24),
    "question":      ( -0.45,  -0.47,  -0.50,  -0.54),
    "reply":         (  0.24,   0.22,   0.23,   0.20),
    "answer":        (  0.14,   0.13,   0.12,   0.13),
    "opening":       (  0.49,   0.54,   0.48,   0.41),
    "length":        (  0.26,   0.34,   0.30,   0.09),
    "when":          (  1.46,   1.46,   1.47,   1.45),
    "temporal":      (  0.25,   0.25,   0.27,   0.25),
    "month":         (  3.59,   3.50,   3.53,   3.24),
    "day":           (  9.76,   9.54,   9.55,   9.43),
    "time":          (  9.50,   9.50,   9.50,   9.50),
    "meaning":       (  0.00,   2.93,   5.30,   2.42),
    "theme":         (  0.00,   1.85,   0.00,   1.21),
    "tokens":        (  0.00,   0.00,   0.00,   2.47),
    "tokens nearby": (  0.00,   0.00,   0.00,   4.32),
}
_NOTE: Final[_Table] = {
    # Without vectors it is as in conversations, where more questions say what a signal is worth.
    #                 words  static  sentences tokens
    "words":         (  0.09,   0.00,   0.00,   0.00),
    "covered":       (  0.00,   0.50,   0.20,   0.04),
    "nearby":        (  0.36,   0.00,   0.00,   0.00),
    "conversation":  (  0.16,   0.00,   0.00,   0.00),
    "tags":          (  0.40,   0.20,   0.20,   0.20),
    "key":           (  4.00,   3.60,   2.30,   2.10),
    "mention":       (  0.22,   0.66,   0.00,   0.00),
    "author":        (  2.09,   1.53,   2.41,   2.39),
    "company":       (  2.44,   0.00,   0.00,   0.00),
    "question":      ( -0.45,   0.00,   0.00,   0.00),
    "length":        (  0.26,   0.10,   0.00,   0.00),
    "when":          (  1.46,   0.00,   0.00,   0.00),
    "temporal":      (  0.25,   0.00,   0.00,   0.00),
    "meaning":       (  0.00,   9.00,  16.09,  12.08),
    "tokens":        (  0.00,   0.00,   0.00,   6.91),
}
# fmt: on
SIGNALS: Final[Mapping[str, str]] = {
    "words": "A memory that says the query's words is wanted; rare words say more than common ones (BM25).",
    "covered": "... and what says more of the query says it less by chance.",
    "nearby": "What belongs together is told in several turns: what is said around a memory counts too.",
    "conversation": "A conversation about what is asked is where to look, even if the answer uses others.",
    "tags": "Who tags a memory says what it is to be found by.",
    "key": "Who asks for a memory by its key wants that one.",
    "mention": "A memory that speaks of the person who is asked about; less than being by them.",
    "author": "Who is named in the query most often said themselves what is asked for.",
    "company": "When people are named, a conversation in which all of them took part is meant.",
    "question": "A question seldom answers one.",
    "reply": "What follows another person's question answers something.",
    "answer": "... and that question's words say what it answers.",
    "opening": "News are told first: a conversation opens with what happened since the last.",
    "length": "A longer memory says more; what is short is often mere courtesy.",
    "when": "Asked when something was, a memory that names a time can say it.",
    "temporal": "A memory that names a time tells of something that happened.",
    "month": "A month or year that the query names is when the memory was made.",
    "day": "A day that the query names: made on it, soon after, or just before what was planned for it.",
    "time": "The query says in its own words when it was: two weeks ago, last summer.",
    "meaning": "The memory means what is asked, whatever its words.",
    "theme": "Something in the same conversation means what is asked.",
    "tokens": "For each word of the query something in the memory means it: finer than one vector a text.",
    "tokens nearby": "... in it, or in what stands next to it.",
}
"""The signals, and why there is each."""

_TABLES: Final[Mapping[Kind, _Table]] = {
    "note": _NOTE,
    "conversation": _CONVERSATION,
    "dated note": _CONVERSATION,
}


@cache
def weights(kind: Kind, vectors: VectorSet) -> Mapping[str, float]:
    """Return the weights of the signals that count in a situation."""
    column = VECTOR_SETS.index(vectors)
    return {name: row[column] for name, row in _TABLES[kind].items() if row[column]}
