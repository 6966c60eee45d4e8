"""Clusters of memories by meaning, and their names. Needs numpy.

Equal vectors and labels get equal clusters and names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from math import isqrt, log
from typing import Final, NamedTuple

import numpy as np

from greenroom.actors.app.map.layout import Floats, Places
from greenroom.actors.content.text.analyze import STOP_WORDS, tokens
from greenroom.actors.memories.requests.map_replies import MappedMemory

LEAST: Final = 12
"""Fewer memories with vectors have no clusters: they are seen at a glance."""
MOST: Final = 8
_TURNS: Final = 12
_NAMED_BY: Final = 2
"""A name has at most this many words."""
_LEAST_HAVING: Final = 2
"""At least this many of a cluster's memories have a word of its name."""
_TAGGED: Final = 3
"""A tag counts as much as this many words."""
_LIKE: Final = 28
"""The characters of a label that names a cluster whose memories share no word."""
_GENERIC_WORDS: Final = """
after again also always because before between day days each every first from last made make many
more most must need needs never new next not now once one only other our over same second
should since some take takes than them then there they this three today two under until use used
uses using want wants we went were when where which while will with without work worked works
year years yesterday your
"""
_GENERIC: Final = frozenset(_GENERIC_WORDS.split())
"""Words that name no matter, besides the stop words of searches."""
_WORD: Final = re.compile(r"[^\W\d_][\w'-]{2,}")
_GATHERED: Final = 0.72
"""How much of its distance to the middle of its cluster a memory keeps."""


class Clusters(NamedTuple):
    """The names of clusters, largest first, and for each vector its cluster and cosine."""

    names: list[str]
    of: Places
    closeness: Floats


NONE: Final = Clusters([], np.zeros(0, np.intp), np.zeros(0, np.float32))


def clusters_of(vectors: Floats, memories: Sequence[MappedMemory], check: Callable[[], None]) -> Clusters:
    """Return the clusters of memories by unit vectors, named by words of their own."""
    if len(vectors) < LEAST:
        return NONE
    centred = vectors - vectors.mean(axis=0)
    centred /= np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), np.float32(1e-6))
    of, closeness = _grouped(centred, min(MOST, max(2, isqrt(len(vectors)) // 2 + 1)), check)
    sizes = np.bincount(of)
    order = np.argsort(-sizes, kind="stable")
    order = order[sizes[order] > 0]
    numbers = np.zeros(len(sizes), np.intp)
    numbers[order] = np.arange(len(order))
    of = numbers[of]
    return Clusters(_names(of, closeness, memories, len(order)), of, closeness)


def _grouped(vectors: Floats, count: int, check: Callable[[], None]) -> tuple[Places, Floats]:
    """Return the group of each vector, and its cosine with the middle, by k-means."""
    centres = [vectors[int((vectors @ vectors.sum(axis=0)).argmax())]]
    nearest = vectors @ centres[0]
    while len(centres) < count:
        centres.append(vectors[int(nearest.argmin())])
        nearest = np.maximum(nearest, vectors @ centres[-1])
    middles = np.stack(centres)
    for _ in range(_TURNS):
        check()
        of = (vectors @ middles.T).argmax(axis=1)
        for group in range(count):
            members = vectors[of == group]
            if len(members):
                middle = members.sum(axis=0)
                middles[group] = middle / max(float(np.linalg.norm(middle)), 1e-6)
    cosines = vectors @ middles.T
    return cosines.argmax(axis=1), cosines.max(axis=1)


def _names(of: Places, closeness: Floats, memories: Sequence[MappedMemory], count: int) -> list[str]:
    """Return a name for each group: words of many memories there and of few others."""
    spelled: dict[str, Counter[str]] = {}
    within = [Counter[str]() for _ in range(count)]
    for group, memory in zip(of.tolist(), memories, strict=True):
        for term, (word, weight) in _words(memory).items():
            within[group][term] += weight
            spelled.setdefault(term, Counter())[word] += 1
    everywhere = Counter[str]()
    for each in within:
        everywhere.update(each)
    names: list[str] = []
    for group, counts in enumerate(within):
        weighed = {
            term: own * own / everywhere[term] * log(1 + len(memories) / everywhere[term])
            for term, own in counts.items()
            if own >= _LEAST_HAVING
        }
        best = sorted(weighed, key=lambda term: (-weighed[term], -len(term), term))[:_NAMED_BY]
        words = [spelled[term].most_common(1)[0][0] for term in best]
        if not words:
            nearest = int(np.where(of == group, closeness, -2).argmax())
            words = [memories[nearest].label[:_LIKE].rstrip() + "…"]
        names.append(", ".join(words))
    return names


def _words(memory: MappedMemory) -> dict[str, tuple[str, int]]:
    """Return the words that may name a memory's group, by their terms, with their weights."""
    found: dict[str, tuple[str, int]] = {}
    for text, weight in ((" ".join(memory.tags), _TAGGED), (memory.label, 1)):
        for word in _WORD.findall(text):
            if word.casefold() not in STOP_WORDS | _GENERIC:
                for token in tokens(word):
                    if token.posted:
                        found.setdefault(token.posted[0], (word, weight))
    return found


def gathered(places: Floats, clusters: Clusters, nodes: Places) -> Floats:
    """Return positions in which each cluster lies closer together, with gaps around."""
    places = places.copy()
    for group in range(len(clusters.names)):
        members = nodes[clusters.of == group]
        middle = places[members].mean(axis=0)
        places[members] = middle + np.float32(_GATHERED) * (places[members] - middle)
    return places
