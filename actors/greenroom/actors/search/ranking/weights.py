"""Weights of the signals: the one table behind the order of all search results.

    strength = sum of weight * signal

`sums.weigh` is the only function that multiplies signals by weights. A strength is absolute: it does not
depend on the other results. `relevance` turns it into a probability. The programs in `bench/` fit the
weights to questions with known answers, and measure them on conversations that were held out. A weight of 0
leaves its signal out in that situation.

For memories, a situation combines the available vectors (none, static word vectors, sentence vectors, or
sentence and token vectors) with the kind of memory. A store holds several kinds, each with its own table.

Meaning finds a note more often than a turn of a conversation, which is also found by its neighbours. The
words that a note shares with the query count more if they are a larger part of the query (`covered`). That
does not hold if the query names a time: few notes are of that time, so a single word distinguishes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final, Literal, get_args

VectorSet = Literal["words", "static", "sentences", "tokens"]
"""The available vectors, in the order of the columns of each table."""
Kind = Literal["note", "conversation", "dated note"]
"""Kinds of memories: a note that stands alone, a turn of a conversation, a note searched by its time.

If the query names a time and any memory is from that time, all notes are of the last kind.
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
    # Without vectors the weights of conversations apply; they were fitted to more questions.
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
    "words": "The memory contains the query's words; rare words count more than common ones (BM25).",
    "covered": "Like words, but a memory with more of the query's words gets more.",
    "nearby": "The words of the memory and its neighbours: a topic is discussed over several turns.",
    "conversation": "The conversation is about the query, even if the answer uses other words.",
    "tags": "Tags are what the memory is meant to be found by.",
    "key": "The query is the memory's key, or a part of it.",
    "mention": "The memory mentions the person in the query; this counts less than being by them.",
    "author": "The memory is by the person in the query, who most often knows the answer.",
    "company": "All people that the query names took part in the conversation.",
    "question": "A question seldom answers another one.",
    "reply": "A memory that follows another person's question answers something.",
    "answer": "The words of that question say what the memory answers.",
    "opening": "News comes first: a conversation opens with what happened since the last one.",
    "length": "A longer memory says more; a short one is often mere courtesy.",
    "when": "The query asks for a time, and the memory names one.",
    "temporal": "A memory that names a time tells of an event.",
    "month": "The memory was made in a month or year that the query names.",
    "day": "The memory was made on a day that the query names, soon after, or just before a plan for it.",
    "time": "The memory was made at a time that the query describes: two weeks ago, last summer.",
    "meaning": "The memory means what the query means, in whatever words.",
    "theme": "Something in the same conversation means what the query means.",
    "tokens": "For each word of the query, a word of the memory with the same meaning.",
    "tokens nearby": "The same, in the memory or its neighbours.",
}
"""The signals of memories, with the reason for each."""
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


# -- messages of a session ---------------------------------------------------------------------

MESSAGE_SIGNALS: Final[Mapping[str, str]] = {
    **SIGNALS,
    "around": "The words around a message count too, nearer ones more.",
}
"""The signals of messages: the signals of memories, and one more for a search within one session."""
_REPLACED: Final = frozenset({"conversation", "company", "theme", "meaning"})
"""Signals that distinguish conversations, so they are useless within one, and signals with another weight."""
_MESSAGE_MEANING: Final[Mapping[VectorSet, float]] = {"static": 6.0, "sentences": 8.0}
"""These are higher than for conversations, which lose nothing by it: much that agents write stands alone."""


@cache
def message_weights(vectors: VectorSet) -> Mapping[str, float]:
    """Return the weights of the signals of messages: a conversation's weights, with four exceptions."""
    table = weights("conversation", vectors)
    found = {name: weight for name, weight in table.items() if name not in _REPLACED} | {"around": 0.16}
    if "meaning" in table:
        found |= {"meaning": _MESSAGE_MEANING.get(vectors, table["meaning"]), "theme": 3.0}
    return found


# -- documents ---------------------------------------------------------------------------------

DOCUMENT_WEIGHTS: Final[Mapping[str, float]] = {
    "text": 1.0,
    "headings": 0.6,
    "heading": 0.6,
    "path": 0.2,
    "file": 0.3,
    "coverage": 4.0,
    "titled": 4.0,
    "meaning": 12.0,
}
"""Round numbers, chosen before anything was measured; see `documents` for why they stayed."""
DOCUMENT_SIGNALS: Final[Mapping[str, str]] = {
    "text": "The chunk contains the query's words; rare words count more than common ones (BM25).",
    "headings": "The document's title and the headings above a chunk say what it is about (BM25).",
    "heading": "The same for the nearest heading, which says most.",
    "path": "Files and folders are named after what they are about (BM25).",
    "file": "The whole document is about the query (BM25 of all its chunks together).",
    "coverage": "The share of the query, by rarity, that the chunk and its headings contain.",
    "titled": "The nearest heading is the query, or a share of it (both ways, by rarity).",
    "meaning": "The chunk means what the query means, in whatever words (cosine).",
}
"""The signals of chunks of documents, with the reason for each."""

# -- source code -------------------------------------------------------------------------------

CODE_WEIGHTS: Final[Mapping[str, float]] = {
    "passage": 0.07,
    "spread": 0.025,
    "file": 0.25,
    "path": 0.25,
    "stem": 2.0,
    "compound": 2.0,
    "defined": 2.5,
    "size": 0.25,
    "test": -2.5,
    "aside": -1.5,
    "prose": -2.5,
    "made": -3.0,
    "copy": -1.0,
}
CODE_SIGNALS: Final[Mapping[str, str]] = {
    "passage": "A passage contains the query's words, or defines symbols of these names (BM25).",
    "spread": "Several passages contain some of them: the root of the sum of their squares.",
    "file": "The whole file is about the query (BM25).",
    "path": "Folders and files are named after what they are about: what the words in the path are worth.",
    "stem": "The file's name is the query, or a share of the name is (by rarity).",
    "compound": "Words of the query, joined together, are a name within the file's name.",
    "defined": "The file defines a symbol named like the query, or like a share of its words.",
    "size": "There are more questions about larger files: the logarithm of the number of words.",
    "test": "A test is seldom the answer, unless the question mentions tests.",
    "aside": "Examples, tools, documentation and vendored code are seldom the answer.",
    "prose": "The answer is source code, not text about it.",
    "made": "A program wrote the file, as its text or the repository's attributes say.",
    "copy": "The file repeats other files, and comes behind them.",
}
"""The signals of files of source code, with the reason for each."""
LIKENESS_WEIGHTS: Final[Mapping[str, float]] = {"terms": 0.57, "name": 0.17, "imports": 0.17, "linked": 0.09}
"""The weights of what two files of source code have in common; each signal goes from 0 to 1.

``terms``: The other file contains the terms that characterize this one (BM25, as a share of the file's own).
``name``: The share of words, weighted by rarity, that both file names have in common.
``imports``: The share of imports that both files have in common.
``linked``: One file imports the other.
"""
