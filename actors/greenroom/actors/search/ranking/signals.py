"""Signals: for one query an array of values over the rows, by the name of the signal.

`weights` says what each is for and how much it counts. Everything here is counted over the
visible rows only, and knows nothing of the filters: these choose among rows whose values they
do not change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from greenroom.actors.search.ranking import lexical
from greenroom.actors.search.ranking import meaning as ranking_meaning
from greenroom.actors.search.ranking.dates import Calendar, near
from greenroom.actors.search.ranking.query import partly_named
from greenroom.actors.search.ranking.spelling import Correction, corrections
from greenroom.actors.search.ranking.view import is_nothing
from greenroom.runtime import Slices

if TYPE_CHECKING:
    from greenroom.actors.search.ranking.lexical import TermVariants
    from greenroom.actors.search.ranking.query import RankQuery, Term
    from greenroom.actors.search.ranking.view import Floats, View

    Mask = npt.NDArray[np.bool_]
    Values = dict[str, Floats]


TOKENS_BEFORE, TOKENS_AFTER = (1.0, 0.9), (0.9, 0.8)
"""What it counts when one of the 1 or 2 memories before or after has something for a word of the query."""
_MISTYPED = 10
"""A word that may be mistyped means what one does that every so many-th memory says."""


class QueryReading(NamedTuple):
    """A query resolved against the visible memories: its terms, names and corrections.

    Attributes:
        groups: The terms that are looked for in texts.
        mentions: Terms that name an author, likewise.
        authors: The numbers of the authors named, by name.
        unknown: Terms that no visible memory holds, and that nothing is like.
        counts: In how many visible rows each term of the query occurs as it was typed.
    """

    groups: Sequence[TermVariants]
    mentions: Sequence[TermVariants]
    authors: Sequence[Mask]
    unknown: Sequence[str]
    counts: dict[str, int]

    @property
    def corrected(self) -> dict[str, tuple[str, ...]]:
        """What was looked for instead of terms that no memory holds."""
        return {group.asked: group.meant for group in self.groups if group.meant != (group.asked,)}


def read(view: View, query: RankQuery, should_yield: Callable[[], bool]) -> Slices[QueryReading]:
    """Look up the query's terms, and find who is named and what is mistyped."""
    authors, names = yield from _named(view, query, should_yield)
    groups: list[TermVariants] = []
    mentions: list[TermVariants] = []
    unknown: list[str] = []
    counts: dict[str, int] = {}
    for term in query.terms:
        meant = [Correction(term.term, 1.0, 0)]
        group = lexical.matching_rows(view, term.term, meant)
        counts[term.term] = len(group.rows)
        if term.term in names:
            mentions.append(group)
        elif len(group.rows) or len(view.postings("tags", term.term)[0]):
            groups.append(group)
        else:
            found = _instead(view, term)
            if not found:
                meant = yield from corrections(view, term, should_yield)
                found = [lexical.matching_rows(view, term.term, meant)] if meant else []
            groups.extend(found)
            if not found:
                unknown.append(term.term)
        if should_yield():
            yield
    return QueryReading(groups, mentions, authors, unknown, counts)


def _instead(view: View, term: Term) -> list[TermVariants]:
    """Return what does as well: the parts of a compound, the name of a month."""
    found = [lexical.matching_rows(view, part, [Correction(part, 1.0, 0)]) for part in term.instead]
    return [group for group in found if len(group.rows)]


def _named(
    view: View, query: RankQuery, should_yield: Callable[[], bool]
) -> Slices[tuple[list[Mask], set[str]]]:
    """Return for each author that the query names in full which rows are by them, and the names' terms."""
    asked = [term.term for term in query.terms]
    spoken = set(pairwise(asked))
    masks: list[Mask] = []
    names: set[str] = set()
    for number, name in (yield from partly_named(view, asked, should_yield)).items():
        if set(name) <= set(asked) and spoken.issuperset(pairwise(name)):
            masks.append(view.visible & (view.corpus.author == number))
            names.update(name)
            if should_yield():
                yield
    return masks, names


def lexical_signals(
    view: View, query: RankQuery, reading: QueryReading, should_yield: Callable[[], bool]
) -> Slices[Values]:
    """Return the signals that need no embedder."""
    zeros = view.nothing
    values: Values = {}
    values["words"] = yield from lexical.own_score(view, reading.groups, should_yield)
    values["covered"] = yield from _covered(view, reading, values["words"], should_yield)
    values["mention"] = yield from lexical.own_score(view, reading.mentions, should_yield)
    values["nearby"] = yield from lexical.neighbourhood_score(
        view, reading.groups, values["words"], should_yield
    )
    values["conversation"] = yield from lexical.conversation_score(view, reading.groups, should_yield)
    values["tags"] = yield from _tags(view, reading, should_yield)
    values["key"] = yield from _keys(view, query, should_yield)

    named = [mask.astype(np.float32) for mask in reading.authors]
    values["author"] = named[0] if len(named) == 1 else zeros
    values["company"] = (yield from _company(view, reading.authors, should_yield)) if named else zeros

    values["question"] = view.question
    values["temporal"] = view.temporal
    values["when"] = view.temporal if query.wants_time else zeros
    values["length"] = view.length
    values["opening"] = view.opening
    values["reply"] = view.reply
    values["answer"] = zeros
    if not (is_nothing(view.reply) or is_nothing(values["words"])):
        values["answer"] = view.reply * view.shifted(values["words"], view.before)
    if should_yield():
        yield
    values["month"] = values["day"] = zeros
    if query.dates:
        calendar = Calendar(view.corpus.created, query.offset)
        if should_yield():
            yield
        values["month"] = calendar.within(query.dates)
        if should_yield():
            yield
        values["day"] = calendar.close_to(query.dates)
        if should_yield():
            yield
    values["time"] = zeros
    if query.times:
        values["time"] = near(view.corpus.created, query.times)
        if should_yield():
            yield
    return values


def vector_signals(
    view: View, query: RankQuery, reading: QueryReading, should_yield: Callable[[], bool]
) -> Slices[Values]:
    """Return the signals of the embedder; empty when the query or all visible rows have no vectors."""
    vectors = query.vectors
    if vectors is None:
        return {}
    weights = query_weights(view, query, reading)
    towards = ranking_meaning.query_vector(vectors, weights)
    if towards is None:
        return {}
    cosine = yield from ranking_meaning.cosines(view, vectors.space, towards, should_yield)
    if cosine is None:
        return {}
    best = ranking_meaning.best_of_conversation(view, cosine)
    if should_yield():
        yield
    return {"meaning": cosine, "theme": best}


def query_weights(view: View, query: RankQuery, reading: QueryReading) -> Floats:
    """Return the weight of each of the embedder's words of the query."""
    assert query.vectors is not None, "only asked for a query with vectors"
    names = {group.asked for group in reading.mentions}
    # The vector of a mistyped word is that of nothing. But it may also be one that no memory says.
    counts = reading.counts | dict.fromkeys(reading.corrected, view.count // _MISTYPED)
    return ranking_meaning.word_weights(
        view, query.vectors.words, names, counts, in_context=query.vectors.sentence is not None
    )


def token_signals(
    view: View,
    query: RankQuery,
    reading: QueryReading,
    rows: npt.NDArray[np.intp],
    should_yield: Callable[[], bool],
) -> Slices[Values]:
    """Return, for ``rows`` only, what needs vectors of tokens; empty when there are none."""
    vectors = query.vectors
    assert vectors is not None, "only asked for a query with vectors"
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
    found = yield from ranking_meaning.max_similarities(view, vectors, every, should_yield)
    best = np.zeros((len(view.visible) + 1, len(weights)), np.float32)
    best[every] = found
    own = best[rows]
    nearby = own.copy()
    for count, at in around:
        np.maximum(nearby, np.float32(count) * best[at], out=nearby)
    if should_yield():
        yield
    return {"tokens": own @ weights, "tokens nearby": nearby @ weights}


def _covered(
    view: View, reading: QueryReading, words: Floats, should_yield: Callable[[], bool]
) -> Slices[Floats]:
    """Return the score of the words as far as they are what is asked; nothing where there are no notes."""
    if is_nothing(words) or not view.has_notes:
        return view.nothing
    share = yield from lexical.share_said(view, reading.groups, len(reading.unknown), should_yield)
    return words * share


def _company(view: View, authors: Sequence[Mask], should_yield: Callable[[], bool]) -> Slices[Floats]:
    """Return 1 where all who are named wrote in the same conversation."""
    number = view.corpus.conversation
    inside = number >= 0
    everyone = np.ones(view.conversations + 1, np.bool_)
    alone = np.ones(len(number), np.bool_)
    for mask in authors:
        wrote = np.zeros(view.conversations + 1, np.bool_)
        wrote[number[mask & inside]] = True
        everyone &= wrote
        alone &= mask
        if should_yield():
            yield
    found: Floats = np.where(inside, everyone[number], alone).astype(np.float32)
    return found


def _tags(view: View, reading: QueryReading, should_yield: Callable[[], bool]) -> Slices[Floats]:
    found = view.nothing
    for group in (*reading.groups, *reading.mentions):
        for term in group.meant:
            rows, _ = view.postings("tags", term)
            if len(rows):
                found = _writable(found)
                found[rows] += np.float32(lexical.idf(len(rows), view.count))
        if should_yield():
            yield
    return found


def _keys(view: View, query: RankQuery, should_yield: Callable[[], bool]) -> Slices[Floats]:
    """Return which part of a key's terms the query says.

    Numbers alone do not count, for keys are often numbered; and no statistics of keys are made, so
    that another key changes nothing but its own memory's score.
    """
    found = view.nothing
    for term in query.terms:
        if not term.term.isdigit():
            rows, times = view.postings("key", term.term)
            if len(rows):
                found = _writable(found)
                found[rows] += np.minimum(times, 1)
        if should_yield():
            yield
    if is_nothing(found):
        return found
    lengths = view.corpus.lengths("key")
    said = np.flatnonzero(found)
    found[said] = np.minimum(1, found[said] / np.maximum(1, lengths[said]))
    return found


def _writable(signal: Floats) -> Floats:
    return np.zeros(len(signal), np.float32) if is_nothing(signal) else signal
