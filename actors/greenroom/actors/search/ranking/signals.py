"""Signals of memories: for one query, an array over the rows for each signal.

`weights` has the purpose and the weight of each. All statistics are of the visible rows alone. Filters only
select rows; they change no value here.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from greenroom.actors.search.ranking import lexical
from greenroom.actors.search.ranking import meaning as ranking_meaning
from greenroom.actors.search.ranking.dates import Calendar, closeness
from greenroom.actors.search.ranking.lexical import TermVariants
from greenroom.actors.search.ranking.query import RankQuery, match_names
from greenroom.actors.search.ranking.spelling import find_corrections
from greenroom.actors.search.ranking.sums import is_nothing
from greenroom.actors.search.ranking.view import Floats, Mask, View
from greenroom.runtime import Slices

Values = dict[str, Floats]


TOKENS_BEFORE, TOKENS_AFTER = (1.0, 0.9), (0.9, 0.8)
"""The weight of a token match in the memories 1 or 2 places before or after."""
_MISTYPED = 10
"""A word that may be mistyped counts like a word in every tenth memory."""


class QueryReading(NamedTuple):
    """A query resolved against the visible memories: its terms, names and corrections.

    Attributes:
        authors: For each author that the query names in full, the rows that this author wrote.
        unknown: Terms that no visible memory holds and that resemble no known term.
        counts: In how many visible rows each term of the query occurs as it was typed.
    """

    groups: Sequence[TermVariants]
    mentions: Sequence[TermVariants]
    authors: Sequence[Mask]
    unknown: Sequence[str]
    counts: dict[str, int]

    @property
    def corrected(self) -> dict[str, tuple[str, ...]]:
        """For each term that no memory holds, the terms that were looked up instead."""
        return {group.term: group.meant for group in self.groups if group.meant != (group.term,)}


def read(view: View, query: RankQuery) -> Slices[QueryReading]:
    """Look up the query's terms, find the authors that it names, and correct its spelling."""
    authors, names = yield from _find_authors(view, query)
    groups: list[TermVariants] = []
    mentions: list[TermVariants] = []
    unknown: list[str] = []
    counts: dict[str, int] = {}
    for term in query.terms:
        group = lexical.matching_rows(view, term.term)
        counts[term.term] = len(group.rows)
        if term.term in names:
            mentions.append(group)
        elif len(group.rows) or len(view.postings("tags", term.term)[0]):
            groups.append(group)
        else:
            parts = [lexical.matching_rows(view, part) for part in term.instead]
            found = [each for each in parts if len(each.rows)]
            if not found:
                meant = yield from find_corrections(view, term)
                found = [lexical.matching_rows(view, term.term, meant)] if meant else []
            groups.extend(found)
            if not found:
                unknown.append(term.term)
        yield
    return QueryReading(groups, mentions, authors, unknown, counts)


def _find_authors(view: View, query: RankQuery) -> Slices[tuple[list[Mask], set[str]]]:
    """Return the rows that each author named in full wrote, and the names' terms."""
    terms = [term.term for term in query.terms]
    pairs = set(pairwise(terms))
    masks: list[Mask] = []
    names: set[str] = set()
    for number, name in (yield from match_names(view, terms)).items():
        if set(name) <= set(terms) and pairs.issuperset(pairwise(name)):
            masks.append(view.visible & (view.corpus.author == number))
            names.update(name)
            yield
    return masks, names


def lexical_signals(view: View, query: RankQuery, reading: QueryReading) -> Slices[Values]:
    """Return the signals that need no embedder."""
    zeros = view.nothing
    values: Values = {}
    values["words"] = yield from lexical.own_score(view, reading.groups)
    values["covered"] = yield from _covered(view, reading, values["words"])
    values["mention"] = yield from lexical.own_score(view, reading.mentions)
    values["nearby"] = yield from lexical.neighbourhood_score(view, reading.groups, values["words"])
    values["conversation"] = yield from lexical.conversation_score(view, reading.groups)
    values["tags"] = yield from _tags(view, reading)
    values["key"] = yield from _keys(view, query)

    named = [mask.astype(np.float32) for mask in reading.authors]
    values["author"] = named[0] if len(named) == 1 else zeros
    values["company"] = (yield from _company(view, reading.authors)) if named else zeros

    values["question"] = view.question
    values["temporal"] = view.temporal
    values["when"] = view.temporal if query.wants_time else zeros
    values["length"] = view.length
    values["opening"] = view.opening
    values["reply"] = view.reply
    values["answer"] = zeros
    if not (is_nothing(view.reply) or is_nothing(values["words"])):
        values["answer"] = view.reply * view.shifted(values["words"], view.before)
    yield
    values["month"] = values["day"] = zeros
    if query.dates:
        calendar = Calendar(view.corpus.created, query.offset)
        yield
        values["month"] = calendar.within(query.dates)
        yield
        values["day"] = calendar.close_to(query.dates)
        yield
    values["time"] = zeros
    if query.times:
        values["time"] = closeness(view.corpus.created, query.times)
        yield
    return values


def vector_signals(view: View, query: RankQuery, reading: QueryReading) -> Slices[Values]:
    """Return the signals of the embedder; empty without vectors."""
    vectors = query.vectors
    if vectors is None:
        return {}
    weights = query_weights(view, query, reading)
    towards = ranking_meaning.query_vector(vectors, weights)
    if towards is None:
        return {}
    cosine = yield from ranking_meaning.cosines(view, vectors.space, towards)
    if cosine is None:
        return {}
    best = ranking_meaning.best_of_conversation(view, cosine)
    yield
    return {"meaning": cosine, "theme": best}


def query_weights(view: View, query: RankQuery, reading: QueryReading) -> Floats:
    """Return the weight of each of the embedder's words of the query."""
    assert query.vectors is not None, "the query has vectors"
    names = {group.term for group in reading.mentions}
    # The vector of a mistyped word means nothing. But the word may also be spelled right and in no memory.
    counts = reading.counts | dict.fromkeys(reading.corrected, view.count // _MISTYPED)
    return ranking_meaning.word_weights(
        view.count, query.vectors.words, names, counts, in_context=query.vectors.sentence is not None
    )


def token_signals(
    view: View,
    query: RankQuery,
    reading: QueryReading,
    rows: npt.NDArray[np.intp],
) -> Slices[Values]:
    """Return the signals of token vectors for ``rows`` alone; empty if there are none."""
    vectors = query.vectors
    assert vectors is not None, "the query has vectors"
    weights = query_weights(view, query, reading)
    if not weights.any():
        return {}
    weights /= weights.sum()
    around: list[tuple[float, npt.NDArray[np.integer[Any]]]] = []
    for step, counts in ((view.before, TOKENS_BEFORE), (view.after, TOKENS_AFTER)):
        at: npt.NDArray[np.integer[Any]] = rows
        for count in counts:
            at = step[at]
            around.append((count, at))
    every = np.unique(np.concatenate([rows, *(at for _, at in around)]))
    every = every[every >= 0]
    found = yield from ranking_meaning.max_similarities(view, vectors, every)
    best = np.zeros((len(view.visible) + 1, len(weights)), np.float32)
    best[every] = found
    own = best[rows]
    nearby = own.copy()
    for count, at in around:
        np.maximum(nearby, np.float32(count) * best[at], out=nearby)
    yield
    return {"tokens": own @ weights, "tokens nearby": nearby @ weights}


def _covered(view: View, reading: QueryReading, words: Floats) -> Slices[Floats]:
    """Return the score of the words, times the share of the query."""
    if is_nothing(words) or not view.has_notes:
        return view.nothing
    share = yield from lexical.coverage(view, reading.groups, len(reading.unknown))
    return words * share


def _company(view: View, authors: Sequence[Mask]) -> Slices[Floats]:
    """Return 1 for conversations in which all named authors wrote."""
    number = view.corpus.conversation
    inside = number >= 0
    everyone = np.ones(view.conversations + 1, np.bool_)
    alone = np.ones(len(number), np.bool_)
    for mask in authors:
        wrote = np.zeros(view.conversations + 1, np.bool_)
        wrote[number[mask & inside]] = True
        everyone &= wrote
        alone &= mask
        yield
    found: Floats = np.where(inside, everyone[number], alone).astype(np.float32)
    return found


def _tags(view: View, reading: QueryReading) -> Slices[Floats]:
    found = view.nothing
    for group in (*reading.groups, *reading.mentions):
        for term in group.meant:
            rows, _ = view.postings("tags", term)
            if len(rows):
                found = _writable(found)
                found[rows] += np.float32(lexical.idf(len(rows), view.count))
        yield
    return found


def _keys(view: View, query: RankQuery) -> Slices[Floats]:
    """Return the share of each key's terms that the query has.

    Numbers alone do not count, since keys are often numbered. There are no statistics of keys, so a key
    changes only the score of its own memory.
    """
    found = view.nothing
    for term in query.terms:
        if not term.term.isdigit():
            rows, times = view.postings("key", term.term)
            if len(rows):
                found = _writable(found)
                found[rows] += np.minimum(times, 1)
        yield
    if is_nothing(found):
        return found
    lengths = view.corpus.lengths("key")
    matching = np.flatnonzero(found)
    found[matching] = np.minimum(1, found[matching] / np.maximum(1, lengths[matching]))
    return found


def _writable(signal: Floats) -> Floats:
    return np.zeros(len(signal), np.float32) if is_nothing(signal) else signal
